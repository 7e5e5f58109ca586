"""The names of Fluid's ``layers.sequence_lod``: see the folder ``sequence``."""

from paddlelike.layers.fluid_modules import make_fluid_module

__getattr__, __dir__ = make_fluid_module("sequence_lod")
