"""The sum of several variables.

Parameters
----------
x, input
    A variable, or a list of variables of one shape.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variables
from paddlelike.layers.emit import emit

__all__ = ["sum", "sums"]


def sums(input: Variable | Sequence[Variable], out: Variable | None = None) -> Variable:
    """Return the sum of variables of one shape (operator ``sum``), written to ``out`` if that is given.

    Raises TypeError unless ``input`` is a variable.

    >>> import paddlelike as fluid
    >>> one, two = fluid.layers.ones([2], "float32"), fluid.layers.fill_constant([2], "float32", 2.0)
    >>> fluid.Executor().run(fetch_list=[fluid.layers.sums([one, two, two])])
    [array([5., 5.], dtype=float32)]
    """
    many = check_variables("sums", "input", input)
    return emit("sum", {"X": many}, {"use_mkldnn": False}, out=out)


def sum(x: Variable | Sequence[Variable]) -> Variable:
    """Return the sum of variables of one shape (operator ``sum``).

    Raises TypeError unless ``x`` is a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.assign(np.array([3, 4], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.sum([x, y])])
    >>> print(out)
    [4. 6.]
    """
    return emit("sum", {"X": check_variables("sum", "x", x)}, {"use_mkldnn": False})
