"""Matrices with ones or given numbers on a diagonal.

Parameters
----------
diagonal
    The numbers: a variable or an array, (N,).
num_rows, num_columns
    The numbers of rows and of columns; None for as many columns as rows.
batch_shape
    The dims in front of the matrices; None for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddlelike.core import convert_dtype
from paddlelike.framework import Variable
from paddlelike.layers.emit import emit, is_whole
from paddlelike.layers.tensor.assign import assign

if TYPE_CHECKING:
    from paddlelike.core import Array, DtypeLike

__all__ = ["diag", "diag_embed", "eye"]


def diag_embed(input: Variable, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Variable:
    """Return matrices, in dims ``dim1`` and ``dim2``, whose diagonals are the last dim of ``input``.

    Operator ``diag_embed``.

    Parameters
    ----------
    input
        (..., N), or an array.
    offset
        The index of the diagonal: 0 for the main one, positive above it, negative below it.
    dim1, dim2
        The dims of the result that hold rows and columns.

    Returns
    -------
    Variable
        (..., M, M) for ``input`` (..., N), M = N + abs(offset); in the dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is neither a variable nor an array.

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


def diag(diagonal: Variable | Array) -> Variable:
    """Return the square matrix with ``diagonal``, of shape (N,), on its diagonal (operator ``diag``).

    Parameters
    ----------
    diagonal
        A variable or array (N,).

    Returns
    -------
    Variable
        (N, N), in the dtype of ``diagonal``.

    Raises
    ------
    TypeError
        ``diagonal`` is neither a variable nor an array.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.diag(x)])
    >>> print(out)
    [[1. 0.]
     [0. 2.]]
    """
    if not isinstance(diagonal, Variable):
        diagonal = assign(diagonal)
    return emit("diag", {"Diagonal": diagonal}, constant=True)


def eye(
    num_rows: int,
    num_columns: int | None = None,
    batch_shape: Sequence[int] | None = None,
    dtype: DtypeLike = "float32",
) -> Variable:
    """Return the identity matrix (operator ``eye``), repeated over ``batch_shape``.

    Parameters
    ----------
    num_rows
        The number of rows.
    num_columns
        The number of columns; None for the number of rows.
    batch_shape
        Dims in front, over which the matrix is repeated; None for no such dims.

    Returns
    -------
    Variable
        (num_rows, num_columns), or (batch_shape..., num_rows, num_columns), of ``dtype``.

    Raises
    ------
    TypeError
        A size is not an int of 0 or more.

    >>> import paddlelike as fluid
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.eye(2, 3)])
    >>> print(out)
    [[1. 0. 0.]
     [0. 1. 0.]]
    """
    columns = num_rows if num_columns is None else num_columns
    for argument, value in (("num_rows", num_rows), ("num_columns", columns)):
        if not is_whole(value) or value < 0:
            raise TypeError(f"layer 'eye': {argument} is {value!r}, expected an int of 0 or more")
    kind = convert_dtype(dtype)
    attrs = {"num_rows": num_rows, "num_columns": columns, "dtype": int(kind)}
    out = emit("eye", {}, attrs, dtype=kind, constant=True)
    for count in reversed(batch_shape or ()):
        out = emit("stack", {"X": [out] * count}, {"axis": 0}, slot="Y")
    return out
