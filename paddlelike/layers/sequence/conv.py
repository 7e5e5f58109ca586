"""sequence_conv: convolution over sequences.

Parameters
----------
input
    Sequences of rows: (T, D) with LoD.
num_filters
    The width of the result.
filter_size
    How many rows a window holds.
filter_stride
    1, the only step that Fluid takes.
padding
    Not read, as in Fluid.
padding_start
    Where a window begins, counted from its row; None for minus half of its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["sequence_conv"]


def sequence_conv(
    input: Variable,
    num_filters: int,
    filter_size: int = 3,
    filter_stride: int = 1,
    padding: bool = True,
    padding_start: int | None = None,
    bias_attr: ParamAttrLike = None,
    param_attr: ParamAttrLike = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Return the convolution over each sequence: (T, D) gives (T, num_filters) (operator ``sequence_conv``).

    The window of a row is ``filter_size`` rows, from ``padding_start`` (by default minus half of them) on,
    zeros outside of the sequence. The weight is (filter_size D, num_filters). ``padding`` is ignored, as in
    Fluid. Raises TypeError unless ``input`` is a variable of a supported dtype.

    ``filter_stride`` is 1.

    >>> from paddlelike.input import data
    >>> sequence_conv(data("words", [None, 8], lod_level=1), num_filters=4, act="tanh").shape
    (-1, 4)
    """
    check_variable("sequence_conv", "input", input, WIDE_FLOATS)
    helper = LayerHelper("sequence_conv", name=name, act=act, bias_attr=bias_attr)
    weight = helper.create_parameter(param_attr, [filter_size * input.shape[1], num_filters], input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        type="sequence_conv",
        inputs={"X": input, "Filter": weight},
        outputs={"Out": out},
        attrs={
            "contextStride": filter_stride,
            "contextStart": -int(filter_size // 2) if padding_start is None else padding_start,
            "contextLength": filter_size,
        },
    )
    return helper.append_activation(helper.append_bias_op(out))
