"""Sequences repeated and concatenated.

Parameters
----------
input
    A list of variables with LoD, with equally many sequences.
x
    Rows, or sequences of rows.
y
    The variable whose LoD says how often.
ref_level
    The level of the LoD of ``y``; -1 for the last.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import NUMBERS, check_variable, check_variables
from paddlelike.layers.emit import emit

__all__ = ["sequence_concat", "sequence_expand", "sequence_expand_as"]


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
