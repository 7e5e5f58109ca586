"""Products of matrices: matmul and mul."""

from __future__ import annotations

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import FLOATS, check_variable
from paddlelike.layers.emit import emit

__all__ = ["matmul", "mul"]


def mul(
    x: Variable, y: Variable, x_num_col_dims: int = 1, y_num_col_dims: int = 1, name: str | None = None
) -> Variable:
    """Return the product of ``x`` and ``y`` as matrices whose rows are their first dims.

    Operator ``mul``. ``x_num_col_dims`` and ``y_num_col_dims`` say how many dims count as rows; the result
    has those of ``x``, then the others of ``y``. Raises TypeError unless ``x`` and ``y`` are variables of
    supported dtypes.

    Parameters
    ----------
    x, y
        Variables of two dims or more, flattened to matrices.
    x_num_col_dims, y_num_col_dims
        How many of the first dims count as rows of the matrix.

    >>> import paddlelike as fluid
    >>> x, y = fluid.data("x", [None, 2, 3]), fluid.data("y", [6, 4])
    >>> fluid.layers.mul(x, y).shape
    (-1, 4)
    """
    check_variable("mul", "x", x, FLOATS)
    check_variable("mul", "y", y, FLOATS)
    attrs = {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}
    return emit("mul", {"X": x, "Y": y}, attrs, name=name)


def matmul(
    x: Variable,
    y: Variable,
    transpose_x: bool = False,
    transpose_y: bool = False,
    alpha: float = 1.0,
    name: str | None = None,
) -> Variable:
    """Return ``alpha * x @ y`` over the last two dims, the others being batches (operator ``matmul``).

    ``transpose_x`` and ``transpose_y`` exchange the last two dims first. Raises TypeError unless ``x`` and
    ``y`` are variables of supported dtypes, GraphError when columns and rows do not match.

    Parameters
    ----------
    x
        (..., M, K), or (K,).
    y
        (..., K, N), or (K,). Batches are broadcast.
    transpose_x, transpose_y
        Whether the last two dims are exchanged first.
    alpha
        A number by which the product is multiplied.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.matmul(x, x, transpose_y=True)])
    [array([[5.]], dtype=float32)]
    """
    check_variable("matmul", "x", x, FLOATS)
    check_variable("matmul", "y", y, FLOATS)
    width = _matrix(x.shape, transpose_x)[-1]
    height = _matrix(y.shape, transpose_y, column=True)[-2]
    if -1 not in (width, height) and width != height:
        raise GraphError(
            f"layer 'matmul': x of shape {list(x.shape)} has {width} columns, y of shape "
            f"{list(y.shape)} has {height} rows (transpose_x={transpose_x}, transpose_y={transpose_y})",
            hint="transpose one of them, or reshape it",
        )
    attrs = {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": float(alpha)}
    return emit("matmul", {"X": x, "Y": y}, attrs, name=name)


def _matrix(shape: tuple[int, ...], transposed: bool, *, column: bool = False) -> tuple[int, ...]:
    """Return the last two dims of an operand; a vector is a row on the left, a column on the right."""
    if len(shape) == 1:
        shape = (shape[0], 1) if column != transposed else (1, shape[0])
    return (shape[-1], shape[-2]) if transposed else (shape[-2], shape[-1])
