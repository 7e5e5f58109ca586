"""``fluid.layers``: what networks are built of.

A layer is a function that appends operators to the default program and returns variables. The layers are in
folders by family; the names of this package are those that the families' modules list.

Parameters
----------
name
    A prefix of the names of the call's variables, in place of ``fc_0`` and so on; None for that.
act
    The name of an activation layer that is applied to the result, such as ``"relu"``; None for none.
param_attr
    The weight: a :class:`~paddlelike.ParamAttr`, a name, or an initializer; None for the defaults.
bias_attr
    The bias: as ``param_attr``. False for no bias.
dtype
    The type of the elements of the result, such as ``"float32"``.
data_format, data_layout
    Where the channels are: ``"NCHW"`` for dim 1, ``"NHWC"`` for the last dim.
out, output, cond
    A variable that the result is written to; None for a new one.
is_test
    Whether to compute as in a test program (``clone(for_test=True)``).
stop_gradient
    Whether the backward pass ends at the result.
seed
    The seed of the random numbers: with 0 the program's decides, another gives equal numbers in each run.
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
from types import FunctionType as _FunctionType
from types import ModuleType as _ModuleType

import paddlelike.core as core  # scripts take fluid.layers.core.VarDesc
import paddlelike.layers.rnn as _rnn  # before the function of that name
from paddlelike.foundation.keyword_options import name_near_keyword as _name_near_keyword
from paddlelike.foundation.parameters import complete_parameters as _complete_parameters
from paddlelike.foundation.parameters import read_shared_parameters as _read_shared_parameters
from paddlelike.layers import (  # Fluid's modules
    collective,
    control_flow,
    detection,
    distributions,
    metric_op,
    ops,
    sequence_lod,
    utils,
)
from paddlelike.layers.control.branches import *
from paddlelike.layers.control.callbacks import *
from paddlelike.layers.control.if_else import *
from paddlelike.layers.control.loops import *
from paddlelike.layers.control.rank_table import reorder_lod_tensor_by_rank
from paddlelike.layers.control.step_counter import *
from paddlelike.layers.control.tensor_array import *
from paddlelike.layers.detection.anchors import *
from paddlelike.layers.detection.boxes import *
from paddlelike.layers.detection.deformable_conv import *
from paddlelike.layers.detection.matching import *
from paddlelike.layers.detection.proposals import *
from paddlelike.layers.detection.regions import *
from paddlelike.layers.detection.ssd import *
from paddlelike.layers.detection.suppression import *
from paddlelike.layers.detection.targets import *
from paddlelike.layers.detection.yolo import *
from paddlelike.layers.elementwise.activation import *
from paddlelike.layers.elementwise.binary import *
from paddlelike.layers.elementwise.cast import *
from paddlelike.layers.elementwise.compare import *
from paddlelike.layers.elementwise.scale import *
from paddlelike.layers.elementwise.unary import *
from paddlelike.layers.fluid_modules import LISTED as _LISTED
from paddlelike.layers.io.inputs import *
from paddlelike.layers.io.readers import *
from paddlelike.layers.learning_rate_scheduler import *
from paddlelike.layers.linalg.fc import *
from paddlelike.layers.linalg.matmul import *
from paddlelike.layers.linalg.matrix_parts import *
from paddlelike.layers.linalg.norm import *
from paddlelike.layers.linalg.products import *
from paddlelike.layers.loss.crf import *
from paddlelike.layers.loss.cross_entropy import *
from paddlelike.layers.loss.ctc import *
from paddlelike.layers.loss.focal import *
from paddlelike.layers.loss.hierarchical_sigmoid import *
from paddlelike.layers.loss.label import *
from paddlelike.layers.loss.nce import *
from paddlelike.layers.loss.pairwise import *
from paddlelike.layers.loss.pointwise import *
from paddlelike.layers.loss.sample_logits import *
from paddlelike.layers.metric.classification import *
from paddlelike.layers.metric.sequence import *
from paddlelike.layers.nn.conv import *
from paddlelike.layers.nn.dropout import *
from paddlelike.layers.nn.embedding import *
from paddlelike.layers.nn.image.affine_channel import *
from paddlelike.layers.nn.image.grid_sampler import *
from paddlelike.layers.nn.image.interpolate import *
from paddlelike.layers.nn.image.pixel_shuffle import *
from paddlelike.layers.nn.image.pool import *
from paddlelike.layers.nn.image.similarity_focus import *
from paddlelike.layers.nn.normalization.batch_norm import *
from paddlelike.layers.nn.normalization.data_norm import *
from paddlelike.layers.nn.normalization.group_norm import *
from paddlelike.layers.nn.normalization.layer_norm import *
from paddlelike.layers.nn.normalization.lrn import *
from paddlelike.layers.nn.normalization.spectral_norm import *
from paddlelike.layers.nn.softmax import *
from paddlelike.layers.nn.unfold import *
from paddlelike.layers.random.distributions import *
from paddlelike.layers.random.sampling import *
from paddlelike.layers.random.tensors import *
from paddlelike.layers.ranking.cvm import *
from paddlelike.layers.ranking.instag import *
from paddlelike.layers.recurrent.basic_decoder import *
from paddlelike.layers.recurrent.beam_search import *
from paddlelike.layers.recurrent.beam_search_decoder import *
from paddlelike.layers.recurrent.cells import *
from paddlelike.layers.recurrent.cudnn_lstm import *
from paddlelike.layers.recurrent.decoding import *
from paddlelike.layers.recurrent.dynamic_rnn import *
from paddlelike.layers.recurrent.gather_tree import *
from paddlelike.layers.recurrent.gru import *
from paddlelike.layers.recurrent.lstm import *
from paddlelike.layers.recurrent.lstm_unit import *
from paddlelike.layers.recurrent.rnn import *
from paddlelike.layers.recurrent.static_rnn import *
from paddlelike.layers.reduction.arg import *
from paddlelike.layers.reduction.cumulative import *
from paddlelike.layers.reduction.reduce import *
from paddlelike.layers.reduction.search import *
from paddlelike.layers.reduction.sort import *
from paddlelike.layers.reduction.sum import *
from paddlelike.layers.reduction.unique import *
from paddlelike.layers.sequence.conv import *
from paddlelike.layers.sequence.expand import *
from paddlelike.layers.sequence.image import *
from paddlelike.layers.sequence.lod_reset import *
from paddlelike.layers.sequence.pad import *
from paddlelike.layers.sequence.part import *
from paddlelike.layers.sequence.pool import *
from paddlelike.layers.sequence.position import *
from paddlelike.layers.sequence.softmax import *
from paddlelike.layers.tensor.assign import *
from paddlelike.layers.tensor.concat import *
from paddlelike.layers.tensor.constant import *
from paddlelike.layers.tensor.crop import *
from paddlelike.layers.tensor.diag import *
from paddlelike.layers.tensor.expand import *
from paddlelike.layers.tensor.gather import *
from paddlelike.layers.tensor.hash import *
from paddlelike.layers.tensor.one_hot import *
from paddlelike.layers.tensor.pad import *
from paddlelike.layers.tensor.range import *
from paddlelike.layers.tensor.reshape import *
from paddlelike.layers.tensor.slice import *
from paddlelike.layers.tensor.stack import *
from paddlelike.left_out import make_getattr as _make_getattr

for _module, _names in _LISTED.items():
    for _name in _names:  # Fluid's layers.nn.dropout is the function, not the module that holds it
        vars(_sys.modules[f"paddlelike.layers.{_module}"]).pop(_name, None)

if not _typing.TYPE_CHECKING:
    __getattr__ = _make_getattr(__name__, "layers")

__all__ = sorted(
    name
    for name, value in globals().items()
    if not name.startswith("_") and not isinstance(value, _ModuleType)
)
for _name in __all__:  # what scripts call; the package itself calls the functions in their own modules
    _layer = globals()[_name]
    if isinstance(_layer, _FunctionType | type):
        _complete_parameters(_layer, _read_shared_parameters(_layer.__module__))
    if isinstance(_layer, _FunctionType):
        globals()[_name] = _name_near_keyword(_layer)
