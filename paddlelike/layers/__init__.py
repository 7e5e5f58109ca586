"""``fluid.layers``: the layers of networks.

A layer is a function that appends operators to the default program and returns variables. The layers are in
folders by family; this package has the public names of all of them.

Parameters
----------
name
    A prefix for the names of the variables that the call creates; None for a generated one such as ``fc_0``.
act
    The name of an activation layer that is applied to the result, such as ``"relu"``; None for none.
param_attr
    The weight: a :class:`~paddlelike.ParamAttr`, a name, or an initializer; None for the defaults.
bias_attr
    The attributes of the bias, given like ``param_attr``. False for no bias.
dtype
    The type of the elements of the result, such as ``"float32"``.
data_format, data_layout
    The position of the channels: ``"NCHW"`` for dim 1, ``"NHWC"`` for the last dim.
out, output, cond
    A variable that the result is written to; None for a new one.
is_test
    Whether to compute as in a test program (``clone(for_test=True)``).
stop_gradient
    Whether the backward pass ends at the result.
seed
    The seed of the random numbers; 0 for the program's seed. Any other seed gives the same numbers in every
    run.
use_cudnn, use_mkldnn, force_cpu
    Recorded in the operator. It has no effect on the numbers.
device
    Recorded in the operator, as by :func:`~paddlelike.device_guard`. It has no effect on the numbers.

Notes
-----
"operator ``relu``" is the type of Paddle's operator that a layer appends.
"""

import sys as _sys
import typing as _typing
from types import FunctionType as _FunctionType, ModuleType as _ModuleType

import paddlelike.core as core  # scripts take fluid.layers.core.VarDesc
from paddlelike.foundation.docstrings import (
    complete_docstring as _complete_docstring,
    read_shared_entries as _read_shared_entries,
    relate as _relate,
)
from paddlelike.foundation.keyword_options import name_near_keyword as _name_near_keyword
from paddlelike.layers import (  # Fluid's modules
    collective,
    detection,
    utils,
)
from paddlelike.layers.control.branches import *
from paddlelike.layers.control.callbacks import *
from paddlelike.layers.control.if_else import *
from paddlelike.layers.control.loops import *
from paddlelike.layers.control.step_counter import *
from paddlelike.layers.control.tensor_array import *
from paddlelike.layers.control.tensor_array import reorder_lod_tensor_by_rank
from paddlelike.layers.detection.anchors import *
from paddlelike.layers.detection.boxes import *
from paddlelike.layers.detection.proposals import *
from paddlelike.layers.detection.regions import *
from paddlelike.layers.detection.ssd import *
from paddlelike.layers.detection.suppression import *
from paddlelike.layers.detection.targets import *
from paddlelike.layers.detection.yolo import *
from paddlelike.layers.elementwise.activation import *
from paddlelike.layers.elementwise.binary import *
from paddlelike.layers.elementwise.compare import *
from paddlelike.layers.elementwise.scale import *
from paddlelike.layers.elementwise.unary import *
from paddlelike.layers.fluid_modules import (
    FORMER as _FORMER,
    LISTED as _LISTED,
    control_flow,
    distributions,
    metric_op,
    ops,
    present_names as _present_names,
    sequence_lod,
)
from paddlelike.layers.io.inputs import *
from paddlelike.layers.io.readers import *
from paddlelike.layers.learning_rate_scheduler import *
from paddlelike.layers.linalg.matrix_parts import *
from paddlelike.layers.linalg.products import *
from paddlelike.layers.loss.classes import *
from paddlelike.layers.loss.pairwise import *
from paddlelike.layers.loss.pointwise import *
from paddlelike.layers.loss.sampled import *
from paddlelike.layers.loss.sequence import *
from paddlelike.layers.metric import *
from paddlelike.layers.nn.conv import *
from paddlelike.layers.nn.dropout import *
from paddlelike.layers.nn.embedding import *
from paddlelike.layers.nn.image.channels import *
from paddlelike.layers.nn.image.interpolate import *
from paddlelike.layers.nn.image.pool import *
from paddlelike.layers.nn.normalization.batch_norm import *
from paddlelike.layers.nn.normalization.layer_norm import *
from paddlelike.layers.nn.softmax import *
from paddlelike.layers.random.distributions import *
from paddlelike.layers.random.sampling import *
from paddlelike.layers.random.tensors import *
from paddlelike.layers.ranking import *
from paddlelike.layers.recurrent.basic_decoder import *
from paddlelike.layers.recurrent.beam_search_decoder import *
from paddlelike.layers.recurrent.cells import *
from paddlelike.layers.recurrent.decoding import *
from paddlelike.layers.recurrent.dynamic_rnn import *
from paddlelike.layers.recurrent.gru import *
from paddlelike.layers.recurrent.lstm import *
from paddlelike.layers.recurrent.static_rnn import *
from paddlelike.layers.reduction import *
from paddlelike.layers.sequence.lengths import *
from paddlelike.layers.sequence.rows import *
from paddlelike.layers.tensor.assign import *
from paddlelike.layers.tensor.concat import *
from paddlelike.layers.tensor.constant import *
from paddlelike.layers.tensor.diag import *
from paddlelike.layers.tensor.gather import *
from paddlelike.layers.tensor.reshape import *
from paddlelike.layers.tensor.slice import *
from paddlelike.lazy import keep_names as _keep_names
from paddlelike.left_out import make_getattr as _make_getattr

for _module in _LISTED:
    _present_names(_sys.modules[f"paddlelike.layers.{_module}"])

_keep_names(
    __name__,
    "detection.proposals elementwise.activation elementwise.unary loss.pairwise loss.pointwise nn.image "
    "random.tensors",
    _FORMER,
)
__all__ = sorted(
    name
    for name, value in globals().items()
    if not name.startswith("_") and not isinstance(value, _ModuleType)
)
# What scripts call; the package itself calls the functions in their own modules.
_layers = {name: globals().pop(name) for name in __all__}
_find_other = _make_getattr(__name__, "layers")


def _get_layer(name: str) -> _typing.Any:
    """Return a layer with its complete docstring, which takes longer to build than the import of the
    layer.
    """
    layer = _layers.get(name)
    if layer is None:
        return _find_other(name)
    if isinstance(layer, _FunctionType | type):
        _complete_docstring(layer, _read_shared_entries(layer.__module__))
        _relate(layer, "layers", name)
    if isinstance(layer, _FunctionType):
        layer = _name_near_keyword(layer)
        layer.__module__ = __name__  # where pickles find it, in any release
    return globals().setdefault(name, layer)


if not _typing.TYPE_CHECKING:  # a type checker would accept any name
    __getattr__ = _get_layer


def __dir__() -> list[str]:
    """Return the names of the layers and of modules."""
    return sorted({*globals(), *__all__})
