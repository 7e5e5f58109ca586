"""The names of ``fluid.contrib`` and where each is defined."""

from paddlelike.fluid.contrib import layers
from paddlelike.fluid.contrib.layers import multiclass_nms2
from paddlelike.fluid.contrib.reader import distributed_batch_reader

__all__ = ["distributed_batch_reader", "layers", "multiclass_nms2"]
