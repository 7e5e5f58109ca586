"""Softmax within each sequence.

Parameters
----------
input
    One number per row: (T, 1) or (T,) with LoD.
"""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.emit import emit

__all__ = ["sequence_softmax"]


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
