"""The names of Fluid's ``layers.rnn``: see the folder ``recurrent``."""

from paddlelike.layers.fluid_modules import make_fluid_module

__getattr__, __dir__ = make_fluid_module("rnn")
