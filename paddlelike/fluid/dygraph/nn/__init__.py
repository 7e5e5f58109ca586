"""The layers of ``fluid.dygraph.nn``: each creates its parameters when made, its operators when called."""

from paddlelike.fluid.dygraph.nn.conv import *
from paddlelike.fluid.dygraph.nn.dense import *
from paddlelike.fluid.dygraph.nn.loss import *
from paddlelike.fluid.dygraph.nn.normalization import *
from paddlelike.fluid.dygraph.nn.sequence import *
from paddlelike.left_out import make_getattr as _make_getattr

__getattr__ = _make_getattr(__name__, "dygraph.nn")
