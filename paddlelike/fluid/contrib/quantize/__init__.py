"""``fluid.contrib.quantize``: :class:`QuantizeTranspiler`."""

from paddlelike.fluid.contrib.quantize import quantize_transpiler
from paddlelike.fluid.contrib.quantize.quantize_transpiler import QuantizeTranspiler

__all__ = ["QuantizeTranspiler", "quantize_transpiler"]
