"""similarity_focus: a mask of the greatest similarities of pairs.

Parameters
----------
input
    (N, A, B, C).
axis
    The dim of the chosen matrices: 1, 2 or 3.
indexes
    The indices of the matrices along ``axis``.
"""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable, describe
from paddlelike.layers.emit import emit

__all__ = ["similarity_focus"]


def similarity_focus(input: Variable, axis: int, indexes: list[int], name: str | None = None) -> Variable:
    """Return a mask of the greatest numbers of ``input``, one in each row and column.

    Operator ``similarity_focus``. ``input`` (N, A, B, C); the matrices at ``indexes`` along ``axis`` (1, 2
    or 3) choose, the mask is 1 there along all of ``axis``. Raises TypeError for other types, ValueError
    for another axis or without indexes. He and Lin, 2016.

    >>> from paddlelike.input import data
    >>> similarity_focus(data("x", [None, 3, 2, 2]), axis=1, indexes=[0]).shape
    (-1, 3, 2, 2)
    """
    layer = "similarity_focus"
    check_variable(layer, "input", input, WIDE_FLOATS)
    if not isinstance(axis, int):
        raise TypeError(f"layer {layer!r}: axis must be an int, got {describe(axis)}")
    if not isinstance(indexes, list):
        raise TypeError(f"layer {layer!r}: indexes must be a list of ints, got {describe(indexes)}")
    if axis not in (1, 2, 3):
        raise ValueError(f"layer {layer!r}: axis is {axis}, expected 1, 2 or 3")
    if not indexes:
        raise ValueError(f"layer {layer!r}: indexes is empty, expected an index or more")
    return emit(layer, {"X": input}, {"axis": axis, "indexes": indexes}, name=name)
