"""``fluid.contrib.slim.quantization``: training with quantization, and quantization of saved models.

In training, each input of a quantized operator passes through ``fake_quantize_*``, which rounds it to whole
steps, and ``fake_*dequantize_*``, which converts these back to floats. A frozen graph has weights of whole
numbers; an operator after each quantized one divides its result by the scales of both inputs. The graphs
equal Fluid 1.8.5's.

Jacob et al., Quantization and training of neural networks for integer-arithmetic-only inference, 2018.

Parameters
----------
graph
    An IrGraph, which is changed in place.
scope
    The scope with the values; scales get their first values there.
place
    The place that the network runs on: a CPU.
weight_bits
    The bits of weights.
activation_bits, quant_bits
    The bits of activations.
weight_quantize_type
    How the scale of weights is found: ``"abs_max"`` of the whole weight, ``"channel_wise_abs_max"`` for each
    filter of a convolution.
moving_rate
    The share that a moving average keeps.
skip_pattern
    Text, or a list of texts; an operator whose name scope contains one is left as it is.
quantizable_op_type
    The types of the operators that are quantized.
"""

from paddlelike import lazy as _lazy

__all__, __getattr__, __dir__ = _lazy.attach_stub(__name__, f"{__file__}i")
