"""The names of ``fluid.contrib.slim.quantization`` and where each is defined."""

from paddlelike.fluid.contrib.slim.quantization.activations import (
    AddQuantDequantPass as AddQuantDequantPass,
    OutScaleForInferencePass as OutScaleForInferencePass,
    OutScaleForTrainingPass as OutScaleForTrainingPass,
)
from paddlelike.fluid.contrib.slim.quantization.freeze import (
    ConvertToInt8Pass as ConvertToInt8Pass,
    QuantizationFreezePass as QuantizationFreezePass,
    TransformForMobilePass as TransformForMobilePass,
)
from paddlelike.fluid.contrib.slim.quantization.post_training_quantization import (
    PostTrainingQuantization as PostTrainingQuantization,
    WeightQuantization as WeightQuantization,
)
from paddlelike.fluid.contrib.slim.quantization.transform import (
    QuantizationTransformPass as QuantizationTransformPass,
)
