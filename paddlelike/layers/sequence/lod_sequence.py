"""Layers over sequences: rows that a LoD ("level of detail") divides into sequences of any length.

A variable is declared with ``lod_level=1`` and fed with ``fluid.create_lod_tensor(rows, [lengths], place)``.
Shapes are written (T, D): T rows of all sequences together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlelike.core.dtypes import VarType, convert_dtype
from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import (
    FLOATS,
    INTEGERS,
    NUMBERS,
    WIDE_FLOATS,
    check_choice,
    check_variable,
    check_variables,
)
from paddlelike.layers.emit import emit, emit_all
from paddlelike.layers.helper import LayerHelper

__all__ = [
    "im2sequence",
    "row_conv",
    "sequence_concat",
    "sequence_conv",
    "sequence_enumerate",
    "sequence_expand",
    "sequence_expand_as",
    "sequence_first_step",
    "sequence_last_step",
    "sequence_mask",
    "sequence_pad",
    "sequence_pool",
    "sequence_reshape",
    "sequence_reverse",
    "sequence_scatter",
    "sequence_slice",
    "sequence_softmax",
    "sequence_unpad",
]

_POOLS = ("average", "sum", "sqrt", "max", "last", "first")


def sequence_conv(
    input: Variable,
    num_filters: int,
    filter_size: int = 3,
    filter_stride: int = 1,
    padding: bool = True,
    padding_start: int | None = None,
    bias_attr: Any = None,
    param_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Return the convolution over each sequence: (T, D) gives (T, num_filters) (operator ``sequence_conv``).

    The window of a row is ``filter_size`` rows, from ``padding_start`` (by default minus half of them) on,
    zeros outside of the sequence. The weight is (filter_size D, num_filters). ``padding`` is ignored, as in
    Fluid. Raises TypeError unless ``input`` is a variable of a supported dtype.

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


def row_conv(
    input: Variable, future_context_size: int, param_attr: Any = None, act: str | None = None
) -> Variable:
    """Return ``sum over j of weight[j] * input[t + j]`` for each row, column by column (``row_conv``).

    The weight is (future_context_size + 1, D). Amodei et al. 2016. Raises TypeError unless ``input`` is a
    variable of a supported dtype.
    """
    check_variable("row_conv", "input", input, WIDE_FLOATS)
    helper = LayerHelper("row_conv", act=act)
    shape = [future_context_size + 1, input.shape[-1]]
    weight = helper.create_parameter(param_attr, shape, input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="row_conv", inputs={"X": input, "Filter": weight}, outputs={"Out": out})
    return helper.append_activation(out)


def sequence_softmax(input: Variable, use_cudnn: bool = False, name: str | None = None) -> Variable:
    """Return the softmax over each sequence, (T, 1) (operator ``sequence_softmax``).

    Raises TypeError unless ``input`` is a variable of a supported dtype.
    """
    check_variable("sequence_softmax", "input", input, WIDE_FLOATS)
    return emit("sequence_softmax", {"X": input}, {"use_cudnn": use_cudnn}, name=name)


def sequence_pool(input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0) -> Variable:
    """Return one row per sequence: its average, sum, sqrt (sum / root of the length), max, last or first row.

    Operator ``sequence_pool``. With several levels of LoD the innermost sequences are pooled. A sequence
    without rows gives ``pad_value``. Raises TypeError unless ``input`` is a variable of a supported dtype
    and GraphError for another ``pool_type``.

    >>> from paddlelike.input import data
    >>> sequence_pool(data("words", [None, 8], lod_level=1), "max").lod_level
    0
    """
    check_variable("sequence_pool", "input", input, WIDE_FLOATS)
    check_choice("sequence_pool", "pool_type", pool_type.lower(), _POOLS)
    helper = LayerHelper("sequence_pool")
    out = helper.create_variable_for_type_inference(input.dtype)
    index = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        type="sequence_pool",
        inputs={"X": input},
        outputs={"Out": out, "MaxIndex": index},
        attrs={"pooltype": pool_type.upper(), "is_test": is_test, "pad_value": pad_value},
    )
    index.stop_gradient = pool_type == "max"  # as in Fluid, which compares case-sensitively here
    return out


def sequence_first_step(input: Variable) -> Variable:
    """Return the first row of each sequence (operator ``sequence_pool``)."""
    return sequence_pool(input, "first")


def sequence_last_step(input: Variable) -> Variable:
    """Return the last row of each sequence (operator ``sequence_pool``)."""
    return sequence_pool(input, "last")


def sequence_concat(input: Sequence[Variable], name: str | None = None) -> Variable:
    """Return the concatenation of the sequences i of all inputs as sequence i (``sequence_concat``).

    Raises TypeError unless ``input`` is a variable of a supported dtype.
    """
    many = check_variables("sequence_concat", "input", input, NUMBERS)
    return emit("sequence_concat", {"X": many}, name=name)


def sequence_slice(input: Variable, offset: Variable, length: Variable, name: str | None = None) -> Variable:
    """Return ``length`` rows of each sequence from ``offset`` on; both int64 (sequences, 1).

    Operator ``sequence_slice``. Raises TypeError unless the inputs are variables of supported dtypes.
    """
    check_variable("sequence_slice", "input", input, NUMBERS)
    for argument, value in (("offset", offset), ("length", length)):
        check_variable("sequence_slice", argument, value, INTEGERS).stop_gradient = True
    return emit("sequence_slice", {"X": input, "Offset": offset, "Length": length}, name=name)


def sequence_expand(x: Variable, y: Variable, ref_level: int = -1, name: str | None = None) -> Variable:
    """Return sequence (or row) i of ``x`` repeated once per part of sequence i of ``y``.

    Operator ``sequence_expand``. Parts are those of level ``ref_level`` of ``y``, the last by default.
    Raises TypeError unless ``x`` is a variable of a supported dtype.
    """
    check_variable("sequence_expand", "x", x, NUMBERS)
    return emit("sequence_expand", {"X": x, "Y": y}, {"ref_level": ref_level}, name=name)


def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Return row i of ``x`` repeated once per row of sequence i of ``y`` (``sequence_expand_as``).

    Raises TypeError unless ``x`` and ``y`` are variables of supported dtypes.
    """
    check_variable("sequence_expand_as", "x", x, NUMBERS)
    check_variable("sequence_expand_as", "y", y)
    return emit("sequence_expand_as", {"X": x, "Y": y}, name=name)


def sequence_pad(
    x: Variable, pad_value: Variable, maxlen: int | None = None, name: str | None = None
) -> tuple[Variable, Variable]:
    """Return sequences as a batch (sequences, maxlen, D), padded with ``pad_value``, and their lengths.

    Operator ``sequence_pad``. ``pad_value`` holds one number or a row; ``maxlen`` None is the longest.
    Raises TypeError unless ``x`` and ``pad_value`` are variables of supported dtypes.
    """
    check_variable("sequence_pad", "x", x, NUMBERS)
    check_variable("sequence_pad", "pad_value", pad_value, NUMBERS).stop_gradient = True
    out, length = emit_all(
        "sequence_pad",
        {"X": x, "PadValue": pad_value},
        {"Out": x.dtype, "Length": VarType.INT64},
        {"padded_length": -1 if maxlen is None else maxlen},
        name=name,
    )
    length.stop_gradient = True
    return out, length


def sequence_unpad(x: Variable, length: Variable, name: str | None = None) -> Variable:
    """Return a padded batch (N, width, ...) as sequences of these lengths, int64 (N,) (``sequence_unpad``).

    Raises TypeError unless ``x`` and ``length`` are variables of supported dtypes.
    """
    check_variable("sequence_unpad", "x", x, NUMBERS)
    check_variable("sequence_unpad", "length", length, (VarType.INT64,)).stop_gradient = True
    return emit("sequence_unpad", {"X": x, "Length": length}, name=name)


def sequence_mask(
    x: Variable, maxlen: int | Variable | None = None, dtype: Any = "int64", name: str | None = None
) -> Variable:
    """Return ``j < x[...]`` for every j below ``maxlen``: (..., maxlen) from lengths (...).

    Operator ``sequence_mask``. ``maxlen`` None is the greatest length. Raises TypeError unless ``x`` is a
    variable.

    >>> from paddlelike.input import data
    >>> sequence_mask(data("length", [None], "int64"), maxlen=5).shape
    (-1, 5)
    """
    check_variable("sequence_mask", "x", x)
    inputs = {"X": x}
    attrs: dict[str, Any] = {"out_dtype": int(convert_dtype(dtype))}
    if isinstance(maxlen, Variable):
        inputs["MaxLenTensor"] = maxlen
    else:
        attrs["maxlen"] = -1 if maxlen is None else maxlen
    out = emit("sequence_mask", inputs, attrs, name=name, dtype=dtype, slot="Y")
    out.stop_gradient = True
    return out


def sequence_reshape(input: Variable, new_dim: int) -> Variable:
    """Return the elements of each sequence in rows of ``new_dim`` (operator ``sequence_reshape``).

    Raises TypeError unless ``input`` is a variable of a supported dtype.
    """
    check_variable("sequence_reshape", "input", input, NUMBERS)
    return emit("sequence_reshape", {"X": input}, {"new_dim": new_dim})


def sequence_scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None
) -> Variable:
    """Return ``input`` (N, D) with sequence i of ``updates`` added to row i (``sequence_scatter``).

    ``index`` holds their columns, in sequences like those of ``updates``. Raises TypeError unless
    ``input``, ``index`` and ``updates`` are variables of supported dtypes.
    """
    check_variable("sequence_scatter", "input", input, NUMBERS)
    check_variable("sequence_scatter", "index", index, INTEGERS)
    check_variable("sequence_scatter", "updates", updates, NUMBERS)
    return emit("sequence_scatter", {"X": input, "Ids": index, "Updates": updates}, name=name)


def sequence_enumerate(
    input: Variable, win_size: int, pad_value: int = 0, name: str | None = None
) -> Variable:
    """Return ids (T, 1) with those that follow, ``win_size`` in a row, ``pad_value`` after the end.

    Operator ``sequence_enumerate``. Raises TypeError unless ``input`` is a variable of a supported dtype.
    """
    check_variable("sequence_enumerate", "input", input, INTEGERS)
    attrs = {"win_size": win_size, "pad_value": pad_value, "@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@": True}
    return emit("sequence_enumerate", {"X": input}, attrs, name=name, constant=True)


def sequence_reverse(x: Variable, name: str | None = None) -> Variable:
    """Return each sequence with its rows reversed (operator ``sequence_reverse``).

    Raises TypeError unless ``x`` is a variable.
    """
    check_variable("sequence_reverse", "x", x)
    return emit("sequence_reverse", {"X": x}, name=name, slot="Y")


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

    ``padding`` is one number, (height, width), or (top, left, bottom, right). ``input_image_size`` (N, 2)
    holds the real sizes of images that were scaled down ``out_stride`` times. Raises TypeError unless
    ``input`` is a variable of a supported dtype.

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
