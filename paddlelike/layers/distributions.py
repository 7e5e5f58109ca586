"""The names of Fluid's ``layers.distributions``: see the folder ``random``."""

from paddlelike.layers.fluid_modules import make_fluid_module

__getattr__, __dir__ = make_fluid_module("distributions")
