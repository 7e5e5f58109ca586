"""Diagonals and triangles of matrices, traces, Kronecker and cross products, distances."""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.creation import assign

__all__ = ["cross", "diag_embed", "dist", "kron", "trace", "tril", "triu"]


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


def diag_embed(input: Variable, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Variable:
    """Return matrices, in dims ``dim1`` and ``dim2``, whose diagonals are the last dim of ``input``.

    Operator ``diag_embed``.

    ``offset`` moves the diagonal: above the main one if positive.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.diag_embed(x)])
    >>> print(out)
    [[1. 0.]
     [0. 2.]]
    """
    if not isinstance(input, Variable):
        input = assign(input)
    attrs = {"offset": offset, "dim1": dim1, "dim2": dim2}
    return emit("diag_embed", {"Input": [input]}, attrs, constant=True)


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


def kron(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Return the Kronecker product: every element of ``x`` times all of ``y`` (operator ``kron``).

    Raises TypeError unless ``x`` and ``y`` are variables.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> y = fluid.layers.assign(np.array([[1], [10]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.kron(x, y)])
    >>> print(out)
    [[ 1.  2.]
     [10. 20.]]
    """
    check_variable("kron", "x", x)
    check_variable("kron", "y", y)
    return emit("kron", {"X": x, "Y": y}, name=name, out=out)


def cross(input: Variable, other: Variable, dim: int | None = None) -> Variable:
    """Return the cross products of vectors of length 3 along ``dim``, by default the first dim of length 3.

    Operator ``cross``. Raises TypeError unless ``input`` and ``other`` are variables.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 0, 0]], "float32"))
    >>> y = fluid.layers.assign(np.array([[0, 1, 0]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.cross(x, y)])
    >>> print(out)
    [[0. 0. 1.]]
    """
    check_variable("cross", "input", input)
    check_variable("cross", "other", other)
    return emit("cross", {"X": input, "Y": other}, {} if dim is None else {"dim": dim})


def dist(x: Variable, y: Variable, p: float = 2) -> Variable:
    """Return the ``p``-norm of ``x - y``, of shape [1]; ``p`` may be 0 or infinite (operator ``dist``).

    Raises TypeError unless ``x`` and ``y`` are variables.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([3, 4], "float32"))
    >>> y = fluid.layers.assign(np.array([0, 0], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.dist(x, y, p=2)])
    >>> print(out)
    [5.]
    """
    check_variable("dist", "x", x)
    check_variable("dist", "y", y)
    return emit("dist", {"X": [x], "Y": [y]}, {"p": float(p)})
