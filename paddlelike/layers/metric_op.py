"""The names of Fluid's ``layers.metric_op``: see the folder ``metric``."""

from paddlelike.layers.fluid_modules import make_fluid_module

__getattr__, __dir__ = make_fluid_module("metric_op")
