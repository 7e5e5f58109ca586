"""Points at which operators on pairs of texts and trees are compared with real Fluid 1.8.5."""

from functools import partial

import numpy as np

from tests.ops.harness.recorded import add_case

__all__ = ["CASES"]

CASES = {}
case = partial(add_case, CASES)
F32, I32 = "float32", "int32"
_rng = np.random.RandomState(47)


def real(*shape):
    return _rng.uniform(-1, 1, shape).astype(F32)


LEFT, RIGHT = [[0, 3, 5]], [[0, 2, 6]]
for _dim in (1, 3):
    case(
        "match_matrix_tensor",
        {"X": (real(5, 4), LEFT), "Y": (real(6, 4), RIGHT), "W": real(4, _dim, 4)},
        {"Out": F32, "Tmp": F32}, "X Y W", str(_dim), ["Out"], dim_t=_dim
    )  # fmt: skip


def images(channels):
    return (real(channels * (3 * 2 + 2 * 4), 1), [[0, channels * 6, channels * 14]])


_texts = {"ROW": (real(5, 2), LEFT), "COLUMN": (real(6, 2), RIGHT)}
for _channels, _topks in ((1, [1, 2]), (3, [1, 3, 5])):
    case(
        "sequence_topk_avg_pooling", dict(_texts, X=images(_channels)), {"Out": F32, "pos": I32}, "X",
        str(_channels), ["Out"], topks=_topks, channel_num=_channels
    )  # fmt: skip
for _note, _in, _out, _kernel, _stride in (
    ("", 1, 1, (3, 3), (1, 1)),
    ("channels", 2, 3, (3, 2), (1, 1)),
    ("strides", 2, 2, (2, 3), (2, 1)),
    ("one", 3, 2, (1, 1), (1, 1)),
):
    case(
        "var_conv_2d", dict(_texts, X=images(_in), W=real(_out, _in * _kernel[0] * _kernel[1])),
        {"Out": F32, "Col": F32}, "X W", _note, ["Out"], InputChannel=_in, OutputChannel=_out,
        KernelH=_kernel[0], KernelW=_kernel[1], StrideH=_stride[0], StrideW=_stride[1]
    )  # fmt: skip

_edges = np.zeros((2, 6, 2), I32)
_edges[0] = [[1, 2], [1, 3], [1, 4], [2, 5], [2, 6], [4, 7]]
_edges[1] = [[1, 2], [2, 3], [2, 4], [4, 5], [5, 6], [2, 7]]
# The gradient of NodesVector is odd; tests/framework/test_quirks.py checks it.
for _depth in (2, 3, 4):
    case(
        "tree_conv", {"NodesVector": real(2, 7, 3), "EdgeSet": _edges, "Filter": real(3, 3, 4, 2)},
        {"Out": F32}, "Filter", str(_depth), max_depth=_depth
    )  # fmt: skip
