"""The names of ``fluid.contrib.slim.quantization`` and where each is defined."""

from paddlelike.fluid.contrib.slim.quantization.activations import (
    AddQuantDequantPass,
    OutScaleForInferencePass,
    OutScaleForTrainingPass,
)
from paddlelike.fluid.contrib.slim.quantization.freeze import (
    ConvertToInt8Pass,
    QuantizationFreezePass,
    TransformForMobilePass,
)
from paddlelike.fluid.contrib.slim.quantization.post_training_quantization import (
    PostTrainingQuantization,
    WeightQuantization,
)
from paddlelike.fluid.contrib.slim.quantization.transform import QuantizationTransformPass

__all__ = [
    "AddQuantDequantPass",
    "ConvertToInt8Pass",
    "OutScaleForInferencePass",
    "OutScaleForTrainingPass",
    "PostTrainingQuantization",
    "QuantizationFreezePass",
    "QuantizationTransformPass",
    "TransformForMobilePass",
    "WeightQuantization",
]
