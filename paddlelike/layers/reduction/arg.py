"""Positions of extremes: argmax and argmin.

Parameters
----------
x
    A variable of any shape.
axis
    The dim that is searched and left out. Negative ones count from the end.
"""

from __future__ import annotations

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable
from paddlelike.layers.emit import emit

__all__ = ["argmax", "argmin"]


def argmax(x: Variable, axis: int = 0) -> Variable:
    """Return the indices of the maxima along ``axis``: int64, that dim left out (operator ``arg_max``).

    Raises TypeError unless ``x`` is a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[3, 1], [2, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.argmax(x, axis=1)])
    >>> print(out)
    [0 1]
    """
    check_variable("argmax", "x", x)
    return emit("arg_max", {"X": x}, {"axis": axis}, dtype=VarType.INT64, constant=True)


def argmin(x: Variable, axis: int = 0) -> Variable:
    """Return the indices of the minima along ``axis``: int64, that dim left out (operator ``arg_min``).

    Raises TypeError unless ``x`` is a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[3, 1], [2, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.argmin(x, axis=1)])
    >>> print(out)
    [1 0]
    """
    check_variable("argmin", "x", x)
    return emit("arg_min", {"X": x}, {"axis": axis}, dtype=VarType.INT64, constant=True)
