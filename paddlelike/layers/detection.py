"""The names of Fluid's ``layers.detection``, as far as they are here: see the folder ``loss``."""

from paddlelike.layers.fluid_modules import make_fluid_module

__getattr__, __dir__ = make_fluid_module("detection")
