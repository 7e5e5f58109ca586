"""Inputs of programs, and readers; the package lists the names of Fluid's ``layers.io``."""
