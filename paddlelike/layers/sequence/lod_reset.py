"""Layers that divide the same rows into other sequences.

Parameters
----------
x
    Rows, (T, ...), with or without LoD.
y
    A variable with LoD, or an int32 variable of offsets; None to take ``target_lod``.
target_lod
    Offsets, a list of ints; None to take ``y``.
level
    The offsets, ints or a variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import NUMBERS, check_variable
from paddlelike.layers.emit import emit

__all__ = ["lod_append", "lod_reset"]


def lod_reset(x: Variable, y: Variable | None = None, target_lod: Sequence[int] | None = None) -> Variable:
    """Return ``x`` with the LoD of ``y``, or the offsets that ``y`` (without LoD) or ``target_lod`` holds.

    Operator ``lod_reset``. Raises TypeError unless ``x`` and ``y`` are variables of supported dtypes,
    GraphError when neither is given.

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

    Raises TypeError unless ``x`` is a variable of a supported dtype, GraphError unless they are ints or a
    variable.

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
