"""Layers on the rows of sequences: windows, pools, softmax; and images as sequences of rows.

Parameters
----------
input
    Sequences of rows: (T, D) with LoD.
num_filters
    The width of the result.
filter_stride
    Must be 1, the only value that Fluid supports.
padding_start
    The start of a window, counted from its row; None for minus half of its rows.
stride
    The step between windows, given like ``filter_size``.
input_image_size
    The real sizes of the images, (N, 2); None for the sizes of ``input``.
out_stride
    The factor by which the images were scaled down: an int, or two.
pool_type
    ``"average"``, ``"sum"``, ``"sqrt"``, ``"max"``, ``"last"`` or ``"first"``.
pad_value
    The value in the result for a sequence without rows.
alpha
    The factor of ``input``.
beta
    The factor of the encoding.
future_context_size
    The number of later rows that a row sees.

Returns
-------
Variable
    (sequences, ...), in the dtype of ``input``: a row for each sequence; the last level of LoD is removed if
    there are several.

Raises
------
TypeError
    ``input`` is not a variable of float32 or float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddlelike.errors import GraphError
from paddlelike.framework import Variable, warn_quirk
from paddlelike.layers.emit import FLOATS, WIDE_FLOATS, check_choice, check_variable, emit, emit_all
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = [
    "add_position_encoding",
    "im2sequence",
    "row_conv",
    "sequence_conv",
    "sequence_first_step",
    "sequence_last_step",
    "sequence_pool",
    "sequence_softmax",
]


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

    The window of a row has ``filter_size`` rows and begins ``padding_start`` rows after it (by default minus
    half of ``filter_size``). Rows outside of the sequence are zeros. The weight is (filter_size D,
    num_filters). ``padding`` is ignored, as in Fluid.

    Parameters
    ----------
    filter_size
        The number of rows that a window holds.
    padding
        Ignored, as in Fluid.

    Returns
    -------
    Variable
        (T, num_filters), with the LoD and dtype of ``input``.

    >>> from paddlelike.input import data
    >>> sequence_conv(data("words", [None, 8], lod_level=1), num_filters=4, act="tanh").shape
    (-1, 4)
    """
    check_variable("sequence_conv", "input", input, WIDE_FLOATS)
    if padding_start is not None and padding_start > 0:
        warn_quirk("sequence_conv_gradient")
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


def im2sequence(
    input: Variable,
    filter_size: int | Sequence[int] = 1,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    input_image_size: Variable | None = None,
    out_stride: int | Sequence[int] = 1,
    name: str | None = None,
) -> Variable:
    """Return each image (N, C, H, W) as the sequence of its windows: (windows, C kh kw) (``im2sequence``).

    ``input_image_size`` holds the real sizes of images that were scaled down ``out_stride`` times.

    Parameters
    ----------
    input
        Images (N, C, H, W).
    filter_size
        The height and width of a window: one int for both, or two.
    padding
        Zeros around the image: an int, two (vertical, horizontal) or four (top, left, bottom, right).

    Returns
    -------
    Variable
        (windows, C * kh * kw) with a sequence for each image, in the dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float16, float32 or float64.

    >>> from paddlelike.input import data
    >>> im2sequence(data("x", [None, 3, 8, 8]), filter_size=2, stride=2).shape
    (-1, 12)
    """
    check_variable("im2sequence", "input", input, FLOATS)
    paddings = _pair("padding", padding)
    attrs = {
        "kernels": _pair("filter_size", filter_size),
        "strides": _pair("stride", stride),
        "paddings": paddings * 2 if len(paddings) == 2 else paddings,
    }
    inputs = {"X": input}
    if input_image_size is not None:
        inputs["Y"] = input_image_size
        attrs["out_stride"] = _pair("out_stride", out_stride)
    return emit("im2sequence", inputs, attrs, name=name)


def _pair(argument: str, value: int | Sequence[int]) -> list[int]:
    numbers = [value, value] if isinstance(value, int) else list(value)
    if len(numbers) != 2 and (argument != "padding" or len(numbers) != 4):
        raise GraphError(f"layer 'im2sequence': {argument} is {value!r}, expected one or two ints")
    return numbers


_POOLS = ("average", "sum", "sqrt", "max", "last", "first")


def sequence_pool(input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0) -> Variable:
    """Return one row per sequence: its average, sum, sqrt (sum / root of the length), max, last or first row.

    Operator ``sequence_pool``. With several levels of LoD the innermost sequences are pooled. A sequence
    without rows gives ``pad_value``. ``is_test`` is recorded in the operator.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64.
    GraphError
        ``pool_type`` is not one of these six.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1], lod_level=1)
    >>> totals = fluid.layers.sequence_pool(x, "sum")
    >>> rows = fluid.create_lod_tensor(np.array([[1], [2], [3]], "float32"), [[2, 1]], fluid.CPUPlace())
    >>> fluid.Executor().run(feed={"x": rows}, fetch_list=[totals])
    [array([[3.],
           [3.]], dtype=float32)]
    """
    check_variable("sequence_pool", "input", input, WIDE_FLOATS)
    check_choice("sequence_pool", "pool_type", pool_type.lower(), _POOLS)
    outputs = {"Out": input.dtype, "MaxIndex": input.dtype}
    attrs = {"pooltype": pool_type.upper(), "is_test": is_test, "pad_value": pad_value}
    out, index = emit_all("sequence_pool", {"X": input}, outputs, attrs)
    index.stop_gradient = pool_type == "max"  # as in Fluid, which compares case-sensitively here
    return out


def sequence_first_step(input: Variable) -> Variable:
    """Return the first row of each sequence (operator ``sequence_pool``).

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4], "float32", lod_level=1)
    >>> fluid.layers.sequence_first_step(x).shape
    (-1, 4)
    """
    return sequence_pool(input, "first")


def sequence_last_step(input: Variable) -> Variable:
    """Return the last row of each sequence of ``input`` (operator ``sequence_pool``).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1], lod_level=1)
    >>> last = fluid.layers.sequence_last_step(x)
    >>> rows = fluid.create_lod_tensor(np.array([[1], [2], [3]], "float32"), [[2, 1]], fluid.CPUPlace())
    >>> fluid.Executor().run(feed={"x": rows}, fetch_list=[last])
    [array([[2.],
           [3.]], dtype=float32)]
    """
    return sequence_pool(input, "last")


def add_position_encoding(input: Variable, alpha: float, beta: float, name: str | None = None) -> Variable:
    """Return ``alpha * input + beta * sines and cosines of the position`` for (N, T, D).

    Operator ``add_position_encoding``.

    Parameters
    ----------
    input
        (N, T, D), D even; or (T, D) with LoD.

    Returns
    -------
    Variable
        In the shape and dtype of ``input``.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 6, 8])
    >>> fluid.layers.add_position_encoding(x, alpha=1.0, beta=1.0).shape
    (-1, 6, 8)
    """
    check_variable("add_position_encoding", "input", input, WIDE_FLOATS)
    attrs = {"alpha": alpha, "beta": beta}
    return emit("add_position_encoding", {"X": input}, attrs, name=name)


def row_conv(
    input: Variable, future_context_size: int, param_attr: ParamAttrLike = None, act: str | None = None
) -> Variable:
    """Return ``sum over j of weight[j] * input[t + j]`` for each row, column by column (``row_conv``).

    The weight is (future_context_size + 1, D). Amodei et al. 2016.

    Parameters
    ----------
    input
        Sequences of rows: (T, D) with LoD.

    Returns
    -------
    Variable
        In the shape, dtype and LoD of ``input``.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4], "float32", lod_level=1)
    >>> fluid.layers.row_conv(x, future_context_size=2).shape
    (-1, 4)
    """
    check_variable("row_conv", "input", input, WIDE_FLOATS)
    helper = LayerHelper("row_conv", act=act)
    shape = [future_context_size + 1, input.shape[-1]]
    weight = helper.create_parameter(param_attr, shape, input.dtype)
    return emit("row_conv", {"X": input, "Filter": weight}, helper=helper)


def sequence_softmax(input: Variable, use_cudnn: bool = False, name: str | None = None) -> Variable:
    """Return the softmax over each sequence, (T, 1) (operator ``sequence_softmax``).

    Parameters
    ----------
    input
        One number per row: (T, 1) or (T,) with LoD.

    Returns
    -------
    Variable
        In the shape, dtype and LoD of ``input``: in each sequence the sum is 1.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1], "float32", lod_level=1)
    >>> fluid.layers.sequence_softmax(x).shape
    (-1, 1)
    """
    check_variable("sequence_softmax", "input", input, WIDE_FLOATS)
    return emit("sequence_softmax", {"X": input}, {"use_cudnn": use_cudnn}, name=name)
