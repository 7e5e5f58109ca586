"""The layers of ``fluid.dygraph.nn``: objects that create parameters first, and operators at each call.

Parameters
----------
num_channels
    The number of channels of the input.
param_attr, bias_attr
    The weight and the bias: a :class:`~paddlelike.ParamAttr`, a name, or an initializer; None for the
    defaults. False for no bias.
act
    The name of an activation that follows, such as "relu"; None for none.
dtype
    The element type of the parameters and of the result.
name
    It has no effect, as in Fluid: names come from the class.
"""

import sys as _sys

from paddlelike import layers as _layers
from paddlelike.fluid.dygraph.nn.conv import *
from paddlelike.fluid.dygraph.nn.dense import *
from paddlelike.fluid.dygraph.nn.loss import *
from paddlelike.fluid.dygraph.nn.normalization import *
from paddlelike.fluid.dygraph.nn.sequence import *
from paddlelike.foundation.docstrings import (
    complete_docstring as _complete_docstring,
    read_entries as _read_entries,
)
from paddlelike.left_out import make_getattr as _make_getattr

__getattr__ = _make_getattr(__name__, "dygraph.nn")

#: The functions whose parameters a class has.
_LIKE = {
    "BatchNorm": "batch_norm", "Conv2D": "conv2d", "Conv2DTranspose": "conv2d_transpose",
    "Conv3D": "conv3d", "Conv3DTranspose": "conv3d_transpose", "Dropout": "dropout",
    "Embedding": "embedding", "GRUUnit": "gru_unit", "GroupNorm": "group_norm",
    "InstanceNorm": "instance_norm", "LayerNorm": "layer_norm", "NCE": "nce", "PRelu": "prelu",
    "Pool2D": "pool2d", "SpectralNorm": "spectral_norm",
}  # fmt: skip
_OWN = _read_entries(_sys.modules[__name__])
for _name in (*_LIKE, "BilinearTensorProduct", "Linear", "TreeConv"):
    _like = getattr(_layers, _LIKE.get(_name, ""), None)
    _complete_docstring(globals()[_name], _OWN | _read_entries(_like))
