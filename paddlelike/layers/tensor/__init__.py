"""Tensors: constants, parts, shapes; the package lists the names of Fluid's ``layers.tensor``."""
