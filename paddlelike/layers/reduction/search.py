"""What is in a tensor: its count of elements, and whether there are any.

Parameters
----------
x, input
    A variable of any shape.
"""

from __future__ import annotations

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable, describe
from paddlelike.layers.emit import emit

__all__ = ["is_empty", "size"]


def is_empty(x: Variable, cond: Variable | None = None) -> Variable:
    """Return whether ``x`` has no elements, as bool of shape [1] (operator ``is_empty``).

    Raises TypeError unless ``x`` is a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.is_empty(x)])
    >>> print(out)
    [False]
    """
    check_variable("is_empty", "x", x)
    if cond is not None and not isinstance(cond, Variable):
        raise TypeError(f"layer 'is_empty': cond must be a variable, got {describe(cond)}")
    return emit("is_empty", {"X": x}, dtype=VarType.BOOL, out=cond, constant=True)


def size(input: Variable) -> Variable:
    """Return the count of elements of ``input``, int64 of shape [1] (operator ``size``).

    Raises TypeError unless ``input`` is a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.size(x)])
    >>> print(out)
    [4]
    """
    check_variable("size", "input", input)
    return emit("size", {"Input": input}, dtype=VarType.INT64)
