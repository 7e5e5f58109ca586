"""Paddle's inference engine: ``paddle.inference``, and the names of ``fluid.core`` before it.

A predictor runs a saved model for prediction. Here it is :class:`~paddlelike.Executor` behind their API:

>>> import tempfile
>>> import numpy as np
>>> import paddlelike as fluid
>>> from paddlelike import inference
>>> main, startup = fluid.Program(), fluid.Program()
>>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
...     out = fluid.layers.reduce_sum(fluid.data("x", [None, 4]), dim=1)
>>> exe, home = fluid.Executor(), tempfile.mkdtemp()
>>> names = fluid.io.save_inference_model(home, ["x"], [out], exe, main)
>>> predictor = inference.create_predictor(inference.Config(home))
>>> predictor.get_input_handle("x").copy_from_cpu(np.ones((2, 4), "float32"))
>>> predictor.run()
True
>>> predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
array([4., 4.], dtype=float32)
"""

from __future__ import annotations

from paddlelike.inference.config import AnalysisConfig, NativeConfig, Precision
from paddlelike.inference.predictor import PaddlePredictor, PredictorPool, create_paddle_predictor
from paddlelike.inference.tensors import (
    PaddleBuf,
    PaddleDType,
    PaddlePlace,
    PaddleTensor,
    ZeroCopyTensor,
    paddle_dtype_size,
    paddle_tensor_to_bytes,
)

__all__ = [
    "AnalysisConfig",
    "AnalysisPredictor",
    "Config",
    "DataType",
    "NativeConfig",
    "PaddleBuf",
    "PaddleDType",
    "PaddlePlace",
    "PaddlePredictor",
    "PaddleTensor",
    "PlaceType",
    "PrecisionType",
    "Predictor",
    "PredictorPool",
    "Tensor",
    "ZeroCopyTensor",
    "create_paddle_predictor",
    "create_predictor",
    "find_name",
    "get_num_bytes_of_data_type",
    "get_version",
    "paddle_dtype_size",
    "paddle_tensor_to_bytes",
]

AnalysisPredictor = PaddlePredictor
# Paddle 2's names.
Config, PrecisionType = AnalysisConfig, Precision
Predictor, create_predictor = PaddlePredictor, create_paddle_predictor
Tensor, DataType, PlaceType = ZeroCopyTensor, PaddleDType, PaddlePlace
get_num_bytes_of_data_type = paddle_dtype_size


def get_version() -> str:
    """Return the Paddle version of this API, in the engine's format."""
    return "version: 1.8.5\n"


def find_name(name: str) -> object:
    """Return the object of that name in this package, where ``fluid.core`` has the engine's names too."""
    return globals()[name]
