"""Parts of matrices, and vectors normalized to length 1.

Parameters
----------
input
    Matrices (..., rows, columns).
diagonal
    The index of the diagonal: 0 for the main one, positive above it, negative below it.

Raises
------
TypeError
    ``input`` is not a variable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.core import VarType
from paddlelike.framework import Variable
from paddlelike.layers.emit import WIDE_FLOATS, check_variable, emit, emit_all
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    pass

__all__ = ["cos_sim", "dist", "l2_normalize", "trace", "tril", "triu"]


def tril(input: Variable, diagonal: int = 0, name: str | None = None) -> Variable:
    """Return ``input`` with zeros above its ``diagonal``-th diagonal (operator ``tril_triu``).

    Returns
    -------
    Variable
        In the shape and dtype of ``input``.

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

    Returns
    -------
    Variable
        In the shape and dtype of ``input``.

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
    """Return the sum of a diagonal of each matrix, whose rows are dim ``dim1`` and columns ``dim2``
    (``trace``).

    Parameters
    ----------
    offset
        The index of the diagonal: 0 for the main one, positive above it, negative below it.
    dim1, dim2
        The dims that hold rows and columns.

    Returns
    -------
    Variable
        ``input`` without ``dim1`` and ``dim2``, (1,) for a matrix; in the dtype of ``input``. It is ``out``
        if that is given.

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


def dist(x: Variable, y: Variable, p: float = 2) -> Variable:
    """Return the ``p``-norm of ``x - y``, of shape [1]; ``p`` may be 0 or infinite (operator ``dist``).

    Parameters
    ----------
    x, y
        Variables that can be broadcast together.
    p
        The order of the norm, which may be 0 or infinite.

    Returns
    -------
    Variable
        Of shape (1,), in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` or ``y`` is not a variable.

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


def l2_normalize(x: Variable, axis: int | None, epsilon: float = 1e-12, name: str | None = None) -> Variable:
    """Return ``x / sqrt(sum(x * x) + epsilon)`` along ``axis`` (1 for None) (operator ``norm``).

    Parameters
    ----------
    x
        A variable of any shape.
    axis
        The dim along which squares are added.
    epsilon
        Added to the sum of squares, against division by zero.

    Returns
    -------
    Variable
        In the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float32 or float64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[3, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.l2_normalize(x, axis=1)])
    >>> print(out)
    [[0.6 0.8]]
    """
    check_variable("l2_normalize", "x", x, WIDE_FLOATS)
    if len(x.shape) == 1:
        axis = 0
    outputs = {"Out": x.dtype, "Norm": x.dtype}
    attrs = {"axis": 1 if axis is None else axis, "epsilon": epsilon}
    out, _ = emit_all("norm", {"X": x}, outputs, attrs, layer="l2_normalize", name=name)
    return out


def cos_sim(X: Variable, Y: Variable) -> Variable:  # noqa: N803  (Fluid's names)
    """Return the cosines between rows of (N, D) and rows of (N, D) or (1, D), in the shape (N, 1).

    Operator ``cos_sim``.

    Parameters
    ----------
    X
        (N, D).
    Y
        (N, D) or (1, D).

    Returns
    -------
    Variable
        (N, 1), in the dtype of ``X``.

    Raises
    ------
    TypeError
        ``X`` or ``Y`` is not a variable of float32.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 0], [1, 1]], "float32"))
    >>> y = fluid.layers.assign(np.array([[2, 0], [0, 3]], "float32"))
    >>> (cosines,) = fluid.Executor().run(fetch_list=[fluid.layers.cos_sim(x, y)])
    >>> cosines.round(3)
    array([[1.   ],
           [0.707]], dtype=float32)
    """
    check_variable("cos_sim", "X", X, (VarType.FP32,))
    check_variable("cos_sim", "Y", Y, (VarType.FP32,))
    outputs = dict.fromkeys(("Out", "XNorm", "YNorm"), X.dtype)
    return emit_all("cos_sim", {"X": X, "Y": Y}, outputs)[0]
