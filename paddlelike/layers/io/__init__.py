"""Inputs of programs and readers; the package lists the names of Fluid's ``layers.io``."""

from paddlelike.layers.fluid_modules import make_fluid_module

__getattr__, __dir__ = make_fluid_module("io")
