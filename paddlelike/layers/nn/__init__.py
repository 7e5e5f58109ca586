"""Layers of neural networks; the package lists the names of Fluid's ``layers.nn``."""

from paddlelike.layers.fluid_modules import make_fluid_module

__getattr__, __dir__ = make_fluid_module("nn")
