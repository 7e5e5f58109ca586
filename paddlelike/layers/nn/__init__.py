"""Layers of neural networks; the package lists the names of Fluid's ``layers.nn``."""
