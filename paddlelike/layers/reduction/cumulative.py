"""Sums of all elements up to each.

Parameters
----------
x
    A variable of any shape.
axis
    The dim along which numbers are added; None for the last.
exclusive
    Whether a sum leaves out its own element.
reverse
    Whether sums begin at the end.
"""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable
from paddlelike.layers.emit import emit

__all__ = ["cumsum"]


def cumsum(
    x: Variable, axis: int | None = None, exclusive: bool | None = None, reverse: bool | None = None
) -> Variable:
    """Return the running sum along ``axis``, the last by default, in the shape of ``x`` (``cumsum``).

    ``exclusive``: without the element itself; ``reverse``: from the end. Raises TypeError unless ``x`` is a
    variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.cumsum(x, axis=1)])
    >>> print(out)
    [[1. 3.]
     [3. 7.]]
    """
    check_variable("cumsum", "x", x)
    attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    return emit("cumsum", {"X": x}, {k: v for k, v in attrs.items() if v is not None})
