"""Layers that change the lengths or the LoD of sequences: repeat, pad, cut.

Parameters
----------
input
    Sequences of rows: (T, D) with LoD.
x
    Rows, or sequences of rows.
y
    The variable whose sequence lengths are the numbers of repetitions.
ref_level
    The level of the LoD of ``y``; -1 for the last.
target_lod
    Offsets, a list of ints; None to use ``y``.
level
    The offsets, ints or a variable.
maxlen
    The width of the result: an int, or a variable of shape [1]; None for the greatest length.
pad_value
    A variable of one number, or of one row.
win_size
    The number of ids in a row.
new_dim
    The width of the new rows.
index
    The column of each update, int64 (T, 1) with the LoD of ``updates``.
updates
    Numbers (T, 1) with LoD: one sequence per row of ``input``.
offset
    The start of each part, int64 (sequences, 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.core import VarType, convert_dtype
from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.layers.emit import INTEGERS, NUMBERS, check_variable, check_variables, emit, emit_all

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

__all__ = [
    "lod_append",
    "lod_reset",
    "sequence_concat",
    "sequence_enumerate",
    "sequence_expand",
    "sequence_expand_as",
    "sequence_mask",
    "sequence_pad",
    "sequence_reshape",
    "sequence_reverse",
    "sequence_scatter",
    "sequence_slice",
    "sequence_unpad",
]


def sequence_concat(input: Sequence[Variable], name: str | None = None) -> Variable:
    """Concatenate sequences: sequence i of the result joins sequence i of all inputs (``sequence_concat``).

    Parameters
    ----------
    input
        A list of variables with LoD, with equally many sequences.

    Returns
    -------
    Variable
        (sum of T, ...), in the dtype of the inputs, with their sequences joined.

    Raises
    ------
    TypeError
        An element of ``input`` is not a variable of float16, float32, float64, int32 or int64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4], "float32", lod_level=1)
    >>> y = fluid.data("y", [None, 4], "float32", lod_level=1)
    >>> fluid.layers.sequence_concat([x, y]).shape
    (-1, 4)
    """
    many = check_variables("sequence_concat", "input", input, NUMBERS)
    return emit("sequence_concat", {"X": many}, name=name)


def sequence_expand(x: Variable, y: Variable, ref_level: int = -1, name: str | None = None) -> Variable:
    """Repeat sequence i of ``x`` (row i without a LoD) once for each row of sequence i of ``y``.

    Operator ``sequence_expand``. The lengths are taken from level ``ref_level`` of the LoD of ``y``.

    Returns
    -------
    Variable
        The rows of ``x``, repeated, in its dtype; the sequences of ``x`` are repeated with their lengths.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float16, float32, float64, int32 or int64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4])
    >>> y = fluid.data("y", [None, 1], "float32", lod_level=1)
    >>> fluid.layers.sequence_expand(x, y).shape
    (-1, 4)
    """
    check_variable("sequence_expand", "x", x, NUMBERS)
    return emit("sequence_expand", {"X": x, "Y": y}, {"ref_level": ref_level}, name=name)


def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Repeat row i of ``x`` once for each row of sequence i of ``y`` (``sequence_expand_as``).

    Returns
    -------
    Variable
        (rows of ``y``, ...), in the dtype of ``x``, with the LoD of ``y``.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float16, float32, float64, int32 or int64, or ``y`` is not a variable.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4])
    >>> y = fluid.data("y", [None, 1], "float32", lod_level=1)
    >>> fluid.layers.sequence_expand_as(x, y).shape
    (-1, 4)
    """
    check_variable("sequence_expand_as", "x", x, NUMBERS)
    check_variable("sequence_expand_as", "y", y)
    return emit("sequence_expand_as", {"X": x, "Y": y}, name=name)


def lod_reset(x: Variable, y: Variable | None = None, target_lod: Sequence[int] | None = None) -> Variable:
    """Return ``x`` with the LoD of ``y``, or with offsets: the values of ``y`` (without LoD) or
    ``target_lod``.

    Operator ``lod_reset``.

    Parameters
    ----------
    x
        Rows, (T, ...), with or without LoD.
    y
        A variable with LoD, or an int32 variable of offsets; None to use ``target_lod``.

    Returns
    -------
    Variable
        In the shape and dtype of ``x``, with the new LoD.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float16, float32, float64, int32 or int64, or ``y`` is not a variable.
    GraphError
        Neither ``y`` nor ``target_lod`` is given.

    >>> from paddlelike.input import data
    >>> lod_reset(data("x", [None, 6]), target_lod=[0, 2, 4]).lod_level
    1
    """
    check_variable("lod_reset", "x", x, NUMBERS)
    if y is not None:
        return emit("lod_reset", {"X": x, "Y": check_variable("lod_reset", "y", y)})
    if target_lod is None:
        raise GraphError("layer 'lod_reset': y and target_lod are both None, expected one of them")
    return emit("lod_reset", {"X": x}, {"target_lod": list(target_lod)})


def lod_append(x: Variable, level: Variable | Sequence[int]) -> Variable:
    """Return ``x`` with a further LoD level of offsets ``level`` (operator ``lod_reset``).

    Parameters
    ----------
    x
        Rows, (T, ...), with or without LoD.

    Returns
    -------
    Variable
        In the shape and dtype of ``x``, with the new LoD.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float16, float32, float64, int32 or int64.
    GraphError
        ``level`` is neither a list of ints nor a variable.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [6, 2])
    >>> fluid.layers.lod_append(x, [2, 4, 6]).shape
    (6, 2)
    """
    check_variable("lod_append", "x", x, NUMBERS)
    inputs = {"X": x}
    attrs: dict[str, Any] = {"append": True}
    if isinstance(level, Variable):
        inputs["Y"] = level
    elif isinstance(level, list | tuple):
        attrs["target_lod"] = list(level)
    else:
        raise GraphError(f"layer 'lod_append': level is {level!r}, expected offsets or a variable")
    return emit("lod_reset", inputs, attrs, layer="lod_append")


def sequence_pad(
    x: Variable, pad_value: Variable, maxlen: int | None = None, name: str | None = None
) -> tuple[Variable, Variable]:
    """Return sequences as a batch (sequences, maxlen, D), padded with ``pad_value``, and their lengths.

    Operator ``sequence_pad``.

    Parameters
    ----------
    x
        Sequences of rows: (T, D) with LoD.

    Returns
    -------
    out : Variable
        (sequences, maxlen, ...), in the dtype of ``x``.
    length : Variable
        int64 (sequences,): the length of each sequence.

    Raises
    ------
    TypeError
        ``x`` or ``pad_value`` is not a variable of float16, float32, float64, int32 or int64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> words = fluid.data("words", [None, 1], lod_level=1)
    >>> padded, length = fluid.layers.sequence_pad(words, fluid.layers.zeros([1], "float32"))
    >>> rows = fluid.LoDTensor(np.array([[1], [2], [3]], "float32"), [[0, 2, 3]])
    >>> batch, lengths = fluid.Executor().run(feed={"words": rows}, fetch_list=[padded, length])
    >>> batch[:, :, 0], lengths
    (array([[1., 2.],
           [3., 0.]], dtype=float32), array([2, 1]))
    """
    check_variable("sequence_pad", "x", x, NUMBERS)
    check_variable("sequence_pad", "pad_value", pad_value, NUMBERS).stop_gradient = True
    inputs = {"X": x, "PadValue": pad_value}
    outputs = {"Out": x.dtype, "Length": VarType.INT64}
    attrs = {"padded_length": -1 if maxlen is None else maxlen}
    out, length = emit_all("sequence_pad", inputs, outputs, attrs, name=name)
    length.stop_gradient = True
    return out, length


def sequence_unpad(x: Variable, length: Variable, name: str | None = None) -> Variable:
    """Return a padded batch (N, width, ...) as sequences with the lengths ``length``, int64 (N,)
    (``sequence_unpad``).

    Parameters
    ----------
    x
        (N, width, ...).
    length
        The length of each row, int64 (N,).

    Returns
    -------
    Variable
        (sum of lengths, ...), in the dtype of ``x``, with a sequence for each of its rows.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float16, float32, float64, int32 or int64, or ``length`` is not a variable
        of int64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 5, 4])
    >>> y = fluid.data("y", [None], "int64")
    >>> fluid.layers.sequence_unpad(x, y).shape
    (-1, 4)
    """
    check_variable("sequence_unpad", "x", x, NUMBERS)
    check_variable("sequence_unpad", "length", length, (VarType.INT64,)).stop_gradient = True
    return emit("sequence_unpad", {"X": x, "Length": length}, name=name)


def sequence_mask(
    x: Variable, maxlen: int | Variable | None = None, dtype: DtypeLike = "int64", name: str | None = None
) -> Variable:
    """Return masks (..., maxlen) of lengths (...): ``j < x[...]`` for every j below ``maxlen``, in ``dtype``.

    Operator ``sequence_mask``.

    Parameters
    ----------
    x
        Lengths, int, of any shape.

    Returns
    -------
    Variable
        (..., maxlen), of ``dtype``: 1 for the steps of a sequence, 0 after its end.

    Raises
    ------
    TypeError
        ``x`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> lengths = fluid.layers.assign(np.array([2, 0, 3], "int64"))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.sequence_mask(lengths, maxlen=4)])
    [array([[1, 1, 0, 0],
           [0, 0, 0, 0],
           [1, 1, 1, 0]])]
    """
    check_variable("sequence_mask", "x", x)
    inputs = {"X": x}
    attrs: dict[str, Any] = {"out_dtype": int(convert_dtype(dtype))}
    if isinstance(maxlen, Variable):
        inputs["MaxLenTensor"] = maxlen
    elif maxlen is not None:
        attrs["maxlen"] = maxlen
    out = emit("sequence_mask", inputs, attrs, name=name, dtype=dtype, slot="Y")
    out.stop_gradient = True
    return out


def sequence_slice(input: Variable, offset: Variable, length: Variable, name: str | None = None) -> Variable:
    """Return ``length`` rows of each sequence, beginning at row ``offset`` of the sequence.

    Operator ``sequence_slice``.

    Parameters
    ----------
    length
        The length of each part, int64 (sequences, 1).

    Returns
    -------
    Variable
        (sum of ``length``, ...), in the dtype of ``input``, with a sequence for each of its sequences.

    Raises
    ------
    TypeError
        ``input`` is not a variable of numbers, or ``offset`` or ``length`` is not a variable of int32 or
        int64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4], "float32", lod_level=1)
    >>> y = fluid.data("y", [None, 1], "int64")
    >>> z = fluid.data("z", [None, 1], "int64")
    >>> fluid.layers.sequence_slice(x, y, z).shape
    (-1, 4)
    """
    check_variable("sequence_slice", "input", input, NUMBERS)
    for argument, value in (("offset", offset), ("length", length)):
        check_variable("sequence_slice", argument, value, INTEGERS).stop_gradient = True
    return emit("sequence_slice", {"X": input, "Offset": offset, "Length": length}, name=name)


def sequence_reshape(input: Variable, new_dim: int) -> Variable:
    """Return the elements of each sequence in rows of ``new_dim`` (operator ``sequence_reshape``).

    Returns
    -------
    Variable
        (T * D / new_dim, new_dim) for ``input`` (T, D), in its dtype; the lengths of the sequences change
        accordingly.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float16, float32, float64, int32 or int64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 6], "float32", lod_level=1)
    >>> fluid.layers.sequence_reshape(x, new_dim=3).shape
    (-1, 3)
    """
    check_variable("sequence_reshape", "input", input, NUMBERS)
    return emit("sequence_reshape", {"X": input}, {"new_dim": new_dim})


def sequence_scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None
) -> Variable:
    """Return ``input`` (N, D) with sequence i of ``updates`` added to row i (``sequence_scatter``).

    ``index`` holds the columns of the updates, in sequences of the same lengths.

    Parameters
    ----------
    input
        (N, D).

    Returns
    -------
    Variable
        In the shape and dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` or ``updates`` is not a variable of float16, float32, float64, int32 or int64, or ``index``
        is not a variable of int32 or int64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [3, 6])
    >>> y = fluid.data("y", [None, 1], "int64", lod_level=1)
    >>> z = fluid.data("z", [None, 1], "float32", lod_level=1)
    >>> fluid.layers.sequence_scatter(x, y, z).shape
    (3, 6)
    """
    check_variable("sequence_scatter", "input", input, NUMBERS)
    check_variable("sequence_scatter", "index", index, INTEGERS)
    check_variable("sequence_scatter", "updates", updates, NUMBERS)
    return emit("sequence_scatter", {"X": input, "Ids": index, "Updates": updates}, name=name)


def sequence_enumerate(
    input: Variable, win_size: int, pad_value: int = 0, name: str | None = None
) -> Variable:
    """Return for each id a row of ``win_size`` ids: the id and its successors, then ``pad_value``.

    Operator ``sequence_enumerate``.

    Parameters
    ----------
    pad_value
        The id after the end of a sequence.

    Returns
    -------
    Variable
        (T, win_size), with the LoD and dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable of int32 or int64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1], "int64", lod_level=1)
    >>> fluid.layers.sequence_enumerate(x, win_size=2).shape
    (-1, 2)
    """
    check_variable("sequence_enumerate", "input", input, INTEGERS)
    attrs = {"win_size": win_size, "pad_value": pad_value}
    return emit("sequence_enumerate", {"X": input}, attrs, name=name, constant=True)


def sequence_reverse(x: Variable, name: str | None = None) -> Variable:
    """Return each sequence with its rows reversed (operator ``sequence_reverse``).

    Parameters
    ----------
    x
        Sequences of rows: (T, D) with LoD.

    Returns
    -------
    Variable
        In the shape, dtype and LoD of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4], "float32", lod_level=1)
    >>> fluid.layers.sequence_reverse(x).shape
    (-1, 4)
    """
    check_variable("sequence_reverse", "x", x)
    return emit("sequence_reverse", {"X": x}, name=name, slot="Y")
