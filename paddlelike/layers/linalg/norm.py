"""Norms and distances, and vectors divided by theirs."""

from __future__ import annotations

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.emit import emit, emit_all

__all__ = ["cos_sim", "dist", "l2_normalize"]


def dist(x: Variable, y: Variable, p: float = 2) -> Variable:
    """Return the ``p``-norm of ``x - y``, of shape [1]; ``p`` may be 0 or infinite (operator ``dist``).

    Raises TypeError unless ``x`` and ``y`` are variables.

    Parameters
    ----------
    x, y
        Variables that can be broadcast together.
    p
        The order of the norm, which may be 0 or infinite.

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

    Raises TypeError unless ``x`` is a variable of a supported dtype.

    Parameters
    ----------
    x
        A variable of any shape.
    axis
        The dim along which squares are added.
    epsilon
        Added to the sum of squares, against division by zero.

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
    """Return the cosine of the angle between the rows of (N, D) and (N, D), or (1, D): (N, 1).

    Operator ``cos_sim``. Raises TypeError unless ``X`` and ``Y`` are variables of supported dtypes.

    Parameters
    ----------
    X
        (N, D).
    Y
        (N, D) or (1, D).

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
