"""Triangles and traces of matrices.

Parameters
----------
input
    Matrices (..., rows, columns).
diagonal
    Which diagonal: 0 for the main one, positive above it, negative below.
"""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper

__all__ = ["trace", "tril", "triu"]


def tril(input: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """Return ``input`` with zeros above its ``diagonal``-th diagonal (operator ``tril_triu``).

    Raises TypeError unless ``input`` is a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.arange(1, 10, dtype="int64").reshape(3, 3))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.tril(x)])
    [array([[1, 0, 0],
           [4, 5, 0],
           [7, 8, 9]])]
    """
    return _triangle("tril", input, diagonal, name, lower=True)


def triu(input: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """Return ``input`` with zeros below its ``diagonal``-th diagonal (operator ``tril_triu``).

    Raises TypeError unless ``input`` is a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.arange(1, 10, dtype="int64").reshape(3, 3))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.triu(x, diagonal=1)])
    [array([[0, 2, 3],
           [0, 0, 6],
           [0, 0, 0]])]
    """
    return _triangle("triu", input, diagonal, name, lower=False)


def _triangle(layer: str, input: Variable, diagonal: int, name: str | None, *, lower: bool) -> Variable:
    check_variable(layer, "input", input)
    helper = LayerHelper(layer, name=name)
    out = helper.create_variable(name=helper.name, dtype=input.dtype, persistable=False)
    attrs = {"diagonal": diagonal, "lower": lower}
    helper.append_op(type="tril_triu", inputs={"X": input}, outputs={"Out": out}, attrs=attrs)
    return out


def trace(
    input: Variable,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Return the sum of the ``offset``-th diagonals of matrices in ``dim1`` and ``dim2`` (``trace``).

    Raises TypeError unless ``input`` is a variable.

    Parameters
    ----------
    offset
        Which diagonal: 0 for the main one, positive above it, negative below.
    dim1, dim2
        The dims that hold rows and columns.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.trace(x)])
    >>> print(out)
    [5.]
    """
    check_variable("trace", "input", input)
    attrs = {"offset": offset, "dim1": dim1, "dim2": dim2}
    return emit("trace", {"Input": [input]}, attrs, name=name, out=out)
