"""Sorting: argsort and topk.

Parameters
----------
input
    A variable of any shape.
axis
    The dim that is sorted. Negative ones count from the end.
descending
    Whether the greatest comes first.
k
    How many elements: an int, or a variable of shape [1].
"""

from __future__ import annotations

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.layers.checks import check_variable
from paddlelike.layers.emit import emit_all

__all__ = ["argsort", "topk"]


def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, ...]:
    """Return the elements sorted along ``axis``, and their indices (int64), both shaped as ``input``.

    Operator ``argsort``. Raises TypeError unless ``input`` is a variable.

    With ``descending`` the largest comes first.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 5])
    >>> [one.shape for one in fluid.layers.argsort(x)]
    [(-1, 5), (-1, 5)]
    """
    check_variable("argsort", "input", input)
    outputs = {"Out": input.dtype, "Indices": VarType.INT64}
    attrs = {"axis": axis, "descending": descending}
    return emit_all("argsort", {"X": input}, outputs, attrs, name=name, constant=True)


def topk(input: Variable, k: int | Variable, name: str | None = None) -> tuple[Variable, ...]:
    """Return the ``k`` greatest elements of every row, in descending order, and their indices (``top_k``).

    (..., D) gives values and int64 indices of shape (..., k). ``k`` may be a variable of shape [1]. Raises
    TypeError unless ``input`` is a variable.

    >>> from paddlelike.input import data
    >>> values, indices = topk(data("scores", [None, 10]), k=3)
    >>> values.shape, indices.dtype
    ((-1, 3), <VarType.INT64: 3>)
    """
    check_variable("topk", "input", input)
    inputs, attrs = {"X": input}, {}
    if isinstance(k, Variable):
        inputs["K"] = k
        warn_quirk("topk_variable")
    else:
        attrs["k"] = k
    outputs = {"Out": input.dtype, "Indices": VarType.INT64}
    return emit_all("top_k", inputs, outputs, attrs, name=name, constant=True)
