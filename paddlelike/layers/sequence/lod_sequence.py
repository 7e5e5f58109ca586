"""Layers over sequences: rows that a LoD ("level of detail") divides into sequences of any length.

A variable is declared with ``lod_level=1`` and fed with ``fluid.create_lod_tensor(rows, [lengths], place)``.
Shapes are written (T, D): T rows of all sequences together.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import (
    INTEGERS,
    NUMBERS,
    WIDE_FLOATS,
    check_variable,
    check_variables,
)
from paddlelike.layers.emit import emit

__all__ = [
    "sequence_concat",
    "sequence_enumerate",
    "sequence_expand",
    "sequence_expand_as",
    "sequence_reshape",
    "sequence_reverse",
    "sequence_scatter",
    "sequence_slice",
    "sequence_softmax",
]


def sequence_softmax(input: Variable, use_cudnn: bool = False, name: str | None = None) -> Variable:
    """Return the softmax over each sequence, (T, 1) (operator ``sequence_softmax``).

    Raises TypeError unless ``input`` is a variable of a supported dtype.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1], "float32", lod_level=1)
    >>> fluid.layers.sequence_softmax(x).shape
    (-1, 1)
    """
    check_variable("sequence_softmax", "input", input, WIDE_FLOATS)
    return emit("sequence_softmax", {"X": input}, {"use_cudnn": use_cudnn}, name=name)


def sequence_concat(input: Sequence[Variable], name: str | None = None) -> Variable:
    """Return the concatenation of the sequences i of all inputs as sequence i (``sequence_concat``).

    Raises TypeError unless ``input`` is a variable of a supported dtype.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4], "float32", lod_level=1)
    >>> y = fluid.data("y", [None, 4], "float32", lod_level=1)
    >>> fluid.layers.sequence_concat([x, y]).shape
    (-1, 4)
    """
    many = check_variables("sequence_concat", "input", input, NUMBERS)
    return emit("sequence_concat", {"X": many}, name=name)


def sequence_slice(input: Variable, offset: Variable, length: Variable, name: str | None = None) -> Variable:
    """Return ``length`` rows of each sequence from ``offset`` on; both int64 (sequences, 1).

    Operator ``sequence_slice``. Raises TypeError unless the inputs are variables of supported dtypes.

    ``input`` holds sequences of rows.

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


def sequence_expand(x: Variable, y: Variable, ref_level: int = -1, name: str | None = None) -> Variable:
    """Return sequence (or row) i of ``x`` repeated once per part of sequence i of ``y``.

    Operator ``sequence_expand``. Parts are those of level ``ref_level`` of ``y``, the last by default.
    Raises TypeError unless ``x`` is a variable of a supported dtype.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4])
    >>> y = fluid.data("y", [None, 1], "float32", lod_level=1)
    >>> fluid.layers.sequence_expand(x, y).shape
    (-1, 4)
    """
    check_variable("sequence_expand", "x", x, NUMBERS)
    return emit("sequence_expand", {"X": x, "Y": y}, {"ref_level": ref_level}, name=name)


def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Return row i of ``x`` repeated once per row of sequence i of ``y`` (``sequence_expand_as``).

    Raises TypeError unless ``x`` and ``y`` are variables of supported dtypes.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4])
    >>> y = fluid.data("y", [None, 1], "float32", lod_level=1)
    >>> fluid.layers.sequence_expand_as(x, y).shape
    (-1, 4)
    """
    check_variable("sequence_expand_as", "x", x, NUMBERS)
    check_variable("sequence_expand_as", "y", y)
    return emit("sequence_expand_as", {"X": x, "Y": y}, name=name)


def sequence_reshape(input: Variable, new_dim: int) -> Variable:
    """Return the elements of each sequence in rows of ``new_dim`` (operator ``sequence_reshape``).

    Raises TypeError unless ``input`` is a variable of a supported dtype.

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

    ``index`` holds their columns, in sequences like those of ``updates``. Raises TypeError unless
    ``input``, ``index`` and ``updates`` are variables of supported dtypes.

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
    """Return ids (T, 1) with those that follow, ``win_size`` in a row, ``pad_value`` after the end.

    Operator ``sequence_enumerate``. Raises TypeError unless ``input`` is a variable of a supported dtype.

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

    Raises TypeError unless ``x`` is a variable.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4], "float32", lod_level=1)
    >>> fluid.layers.sequence_reverse(x).shape
    (-1, 4)
    """
    check_variable("sequence_reverse", "x", x)
    return emit("sequence_reverse", {"X": x}, name=name, slot="Y")
