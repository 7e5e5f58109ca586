"""Conversion between file formats, the HDF5 recipe of TensorFlow users, models of ONNX and of CNTK."""

from paddlelike import lazy as _lazy

__all__, __getattr__, __dir__ = _lazy.attach_stub(__name__, f"{__file__}i")

_lazy.keep_functions(__name__, "convert")
