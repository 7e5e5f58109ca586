"""DyNet's functions that reduce, pick and join parts of expressions. A matrix has its rows along dim 0.

``reshape`` takes elements in column-major order, as in DyNet.

Parameters
----------
x
    An expression of any shape.
xs
    A list of vectors, or of matrices with equally many rows.
d
    The dim to work along, counted from 0.

Returns
-------
Expression
    Of shape (1,).

Raises
------
TypeError
    An operand is neither an expression, a parameter nor a variable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from paddlelike import layers
from paddlelike.collection.expressions import (
    Expression,
    Operand,
    build,
    concatenate,
    log_softmax,
    to_expression,
)
from paddlelike.collection.functions import logsumexp, sqrt, square
from paddlelike.errors import ShapeError
from paddlelike.framework import Variable

__all__ = [
    "concatenate_cols",
    "hinge",
    "l2_norm",
    "logsumexp_dim",
    "max_dim",
    "mean_dim",
    "mean_elems",
    "min_dim",
    "pick",
    "pick_range",
    "pickneglogsoftmax",
    "reshape",
    "select_cols",
    "select_rows",
    "squared_norm",
    "sum_dim",
    "sum_elems",
    "transpose",
]


def _over(x: Operand, dims: Sequence[int], reduce: Callable[..., Variable]) -> Expression:
    """Return a reduction that drops dims; over all dims it has shape ``(1,)``."""
    one = to_expression(x)
    every = len(set(dims)) == len(one.shape)
    return build(lambda v: reduce(v) if every else reduce(v, dim=list(dims)), one)


def sum_elems(x: Operand) -> Expression:
    """Return the sum of all elements, of shape ``(1,)`` (DyNet's ``sum_elems``).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.sum_elems(dy.inputTensor([[1.0, 2.0], [3.0, 5.0]])).value()
    11.0
    """
    return build(layers.reduce_sum, to_expression(x))


def mean_elems(x: Operand) -> Expression:
    """Return the mean of all elements, of shape ``(1,)`` (DyNet's ``mean_elems``).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.mean_elems(dy.inputTensor([[1.0, 2.0], [3.0, 5.0]])).value()
    2.75
    """
    return build(layers.mean, to_expression(x))


def l2_norm(x: Operand) -> Expression:
    """Return the root of the sum of the squares of the elements, of shape ``(1,)`` (DyNet's ``l2_norm``).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.l2_norm(dy.inputVector([3.0, 4.0])).value()
    5.0
    """
    return sqrt(sum_elems(square(x)))


def sum_dim(x: Operand, d: Sequence[int], b: bool = False) -> Expression:
    """Return the sums over the dims ``d`` (DyNet's ``sum_dim``).

    Parameters
    ----------
    d
        A list of dims.
    b
        It has no effect: expressions here have no batch.

    Returns
    -------
    Expression
        In the shape of ``x`` without the dims ``d``; (1,) if those are all its dims.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.sum_dim(dy.inputTensor([[1.0, 2.0], [3.0, 5.0]]), [0]).vec_value()
    [4.0, 7.0]
    """
    return _over(x, d, layers.reduce_sum)


def mean_dim(x: Operand, d: Sequence[int], b: bool, n: int = 0) -> Expression:
    """Return the means over the dims ``d``; if ``n`` is not 0, the sums divided by ``n`` (DyNet's
    ``mean_dim``).

    Parameters
    ----------
    d
        A list of dims.
    b
        It has no effect: expressions here have no batch.
    n
        The divisor of sums; 0 for the number of elements.

    Returns
    -------
    Expression
        In the shape of ``x`` without the dims ``d``; (1,) if those are all its dims.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.mean_dim(dy.inputTensor([[1.0, 2.0], [3.0, 5.0]]), [0], False).vec_value()
    [2.0, 3.5]
    """
    return sum_dim(x, d) / n if n else _over(x, d, layers.reduce_mean)


def max_dim(x: Operand, d: int = 0) -> Expression:
    """Return the largest elements over the dim ``d`` (DyNet's ``max_dim``).

    Returns
    -------
    Expression
        In the shape of ``x`` without the dim ``d``; (1,) for a vector.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.max_dim(dy.inputTensor([[1.0, 2.0], [3.0, 5.0]]), 1).vec_value()
    [2.0, 5.0]
    """
    return _over(x, [d], layers.reduce_max)


def min_dim(x: Operand, d: int = 0) -> Expression:
    """Return the smallest elements over the dim ``d`` (DyNet's ``min_dim``).

    Returns
    -------
    Expression
        In the shape of ``x`` without the dim ``d``; (1,) for a vector.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.min_dim(dy.inputTensor([[1.0, 2.0], [3.0, 5.0]]), 1).vec_value()
    [1.0, 3.0]
    """
    return _over(x, [d], layers.reduce_min)


def logsumexp_dim(x: Operand, d: int = 0) -> Expression:
    """Return the logarithms of the sums of ``e^x`` over the dim ``d`` (DyNet's ``logsumexp_dim``).

    Returns
    -------
    Expression
        In the shape of ``x`` without the dim ``d``; (1,) for a vector.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> round(dy.logsumexp_dim(dy.inputVector([0.0, 0.0])).value(), 3)
    0.693
    """
    one = to_expression(x)
    rows = [pick(one, index, d) for index in range(one.shape[d])]
    return logsumexp(rows)


def hinge(x: Operand, index: int, m: float = 1.0) -> Expression:
    """Return the sum of ``max(0, m - x[index] + x[i])`` over all i but ``index``, of shape ``(1,)`` (DyNet's
    ``hinge``).

    Parameters
    ----------
    x
        A vector of scores.
    index
        The index of the true class.
    m
        The margin by which the true class should exceed the others.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.hinge(dy.inputVector([1.0, 2.0]), 1, 3.0).value()
    2.0
    """
    scores = to_expression(x)
    gaps = build(lambda v, best: layers.relu(layers.scale(v - best, 1.0, bias=m)), scores, scores[index])
    return sum_elems(gaps) - m


# Parts and places


def transpose(x: Operand, dims: Sequence[int] = (1, 0)) -> Expression:
    """Return a matrix with rows and columns exchanged, or dims in the order ``dims`` (DyNet's ``transpose``).

    Parameters
    ----------
    dims
        The order of the dims.

    Returns
    -------
    Expression
        The dims in the new order.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.transpose(dy.inputTensor([[1.0, 2.0]])).npvalue().tolist()
    [[1.0], [2.0]]
    """
    one = to_expression(x)
    if len(one.shape) == 1:  # DyNet's vector is a matrix of one column
        return build(lambda v: layers.unsqueeze(v, axes=[0]), one)
    return build(lambda v: layers.transpose(v, perm=list(dims)), one)


def reshape(x: Operand, d: Sequence[int]) -> Expression:
    """Return the elements, column by column, in another shape (DyNet's ``reshape``).

    Parameters
    ----------
    d
        The new shape, a tuple of ints.

    Returns
    -------
    Expression
        In the shape given.

    Raises
    ------
    ShapeError
        The shape has another number of elements.
    TypeError
        ``x`` is neither an expression, a parameter nor a variable.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.reshape(dy.inputTensor([[1.0, 2.0], [3.0, 4.0]]), (4,)).npvalue().tolist()
    [1.0, 3.0, 2.0, 4.0]
    """
    one = to_expression(x)
    if np.prod(one.shape) != np.prod(d):
        raise ShapeError(
            f"reshape: an expression of shape {one.shape} does not have as many elements as {tuple(d)}"
        )
    turn = [*range(len(one.shape))][::-1]

    def compute(v: Variable) -> Variable:
        flat = layers.reshape(layers.transpose(v, perm=turn) if len(turn) > 1 else v, shape=[*d][::-1])
        return layers.transpose(flat, perm=[*range(len(d))][::-1]) if len(d) > 1 else flat

    return build(compute, one)


def pick(x: Operand, index: int = 0, dim: int = 0) -> Expression:
    """Return element ``index`` of a vector, of shape ``(1,)``, or row or column ``index`` of a matrix
    (DyNet's ``pick``).

    Parameters
    ----------
    x
        A vector, or a matrix.
    index
        The index, from 0.
    dim
        The dim that is chosen from.

    Returns
    -------
    Expression
        (1,) for a vector, a row or a column for a matrix.

    Raises
    ------
    IndexError
        There is no such element.
    TypeError
        ``x`` is neither an expression, a parameter nor a variable.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.pick(dy.inputVector([1.0, 2.0]), 1).value()
    2.0
    """
    one = to_expression(x)
    size = one.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"pick: dim {dim} has the elements 0 to {size - 1}, not {index}")
    part = pick_range(one, index % size, index % size + 1, dim)
    return part if len(one.shape) == 1 else build(lambda v: layers.squeeze(v, axes=[dim]), part)


def pick_range(x: Operand, s: int, e: int, d: int = 0) -> Expression:
    """Return the elements from ``s`` up to ``e``, exclusive, along the dim ``d`` (DyNet's ``pick_range``).

    Parameters
    ----------
    s, e
        The first index, and the index after the last.

    Returns
    -------
    Expression
        In the shape of ``x`` with ``e - s`` as its dim ``d``.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.pick_range(dy.inputTensor([[1.0, 2.0], [3.0, 5.0]]), 0, 1, 1).npvalue().tolist()
    [[1.0], [3.0]]
    """
    return build(lambda v: layers.slice(v, axes=[d], starts=[s], ends=[e]), to_expression(x))


def select_rows(x: Operand, rs: Sequence[int]) -> Expression:
    """Return some rows of a matrix, in the order of ``rs`` (DyNet's ``select_rows``).

    Parameters
    ----------
    x
        A matrix, (rows, columns).
    rs
        The indices of rows.

    Returns
    -------
    Expression
        (len(rs), columns).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.select_rows(dy.inputTensor([[1.0, 2.0], [3.0, 5.0]]), [1]).npvalue().tolist()
    [[3.0, 5.0]]
    """
    return concatenate([pick_range(x, row, row + 1) for row in rs])


def select_cols(x: Operand, cs: Sequence[int]) -> Expression:
    """Return some columns of a matrix, in the order of ``cs`` (DyNet's ``select_cols``).

    Parameters
    ----------
    x
        A matrix, (rows, columns).
    cs
        The indices of columns.

    Returns
    -------
    Expression
        (rows, len(cs)).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.select_cols(dy.inputTensor([[1.0, 2.0], [3.0, 5.0]]), [1, 0]).npvalue().tolist()
    [[2.0, 1.0], [5.0, 3.0]]
    """
    return concatenate([pick_range(x, column, column + 1, 1) for column in cs], d=1)


def concatenate_cols(xs: Sequence[Operand]) -> Expression:
    """Return a matrix of columns: the given vectors, or the columns of the given matrices (DyNet's
    ``concatenate_cols``).

    Returns
    -------
    Expression
        In the shape of the operands, with their columns added up.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.concatenate_cols([dy.inputVector([1.0, 2.0]), dy.inputVector([1.0, 2.0])]).npvalue().tolist()
    [[1.0, 1.0], [2.0, 2.0]]
    """
    columns = [to_expression(x) for x in xs]
    wide = [build(lambda v: layers.unsqueeze(v, axes=[1]), x) if len(x.shape) == 1 else x for x in columns]
    return concatenate(wide, d=1)


def squared_norm(x: Operand) -> Expression:
    """Return the sum of the squares of the elements, of shape ``(1,)`` (DyNet's ``squared_norm``).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.squared_norm(dy.inputVector([3.0, 4.0])).value()
    25.0
    """
    return build(lambda variable: layers.reduce_sum(layers.square(variable)), to_expression(x))


def pickneglogsoftmax(x: Operand, index: int) -> Expression:
    """Return the negative logarithm of element ``index`` of the softmax of a vector, of shape ``(1,)``
    (DyNet's ``pickneglogsoftmax``).

    Parameters
    ----------
    index
        The index of the element, from 0.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> round(dy.pickneglogsoftmax(dy.inputVector([0.0, 0.0]), 1).value(), 3)
    0.693
    """
    return -log_softmax(x)[index]
