"""The names of Fluid's ``layers.control_flow``: see the folder ``control``."""

from paddlelike.layers.fluid_modules import make_fluid_module

__getattr__, __dir__ = make_fluid_module("control_flow")
