"""The names of Fluid's ``layers.ops``: see the folder ``elementwise``."""

from paddlelike.layers.fluid_modules import make_fluid_module

__getattr__, __dir__ = make_fluid_module("ops")
