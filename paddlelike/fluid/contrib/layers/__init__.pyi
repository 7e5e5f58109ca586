"""The names of ``fluid.contrib.layers`` and where each is defined."""

from paddlelike.layers.detection.suppression import multiclass_nms2

__all__ = ["multiclass_nms2"]
