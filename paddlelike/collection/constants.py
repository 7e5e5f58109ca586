"""DyNet's constants, random numbers and dropout, and the first values of parameters.

Parameters
----------
dim
    The shape: an int, or a tuple of ints.
value
    The value of the expression: the number, or the numbers of a vector.

Returns
-------
Initializer
    The initializer, for ``init`` of ``add_parameters`` and ``add_lookup_parameters``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from paddlelike import initializer, layers
from paddlelike.collection.expressions import Expression, Operand, cmult, inputTensor, to_expression
from paddlelike.collection.graph import run
from paddlelike.core import Array
from paddlelike.framework import Program, Variable, program_guard
from paddlelike.initializer import Initializer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "ConstInitializer",
    "GlorotInitializer",
    "NormalInitializer",
    "NumpyInitializer",
    "UniformInitializer",
    "constant",
    "dropout",
    "inputVector",
    "one_hot",
    "ones",
    "random_normal",
    "random_uniform",
    "scalarInput",
    "vecInput",
    "zeros",
]


def inputVector(value: Sequence[float]) -> Expression:  # noqa: N802
    """Return a constant vector (DyNet's ``inputVector``).

    Returns
    -------
    Expression
        Of shape (n,): the length of the list.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.inputVector([1.0, 2.0]).npvalue().tolist()
    [1.0, 2.0]
    """
    return inputTensor(value)


def vecInput(dim: int) -> Expression:  # noqa: N802
    """Return a vector of ``dim`` zeros (DyNet's ``vecInput``).

    Returns
    -------
    Expression
        Of shape (dim,), all zeros.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.vecInput(2).npvalue().tolist()
    [0.0, 0.0]
    """
    return inputTensor(np.zeros(dim))


def scalarInput(value: float) -> Expression:  # noqa: N802
    """Return one number, of shape ``(1,)`` (DyNet's ``scalarInput``).

    Returns
    -------
    Expression
        Of shape (1,).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.scalarInput(2.0).value()
    2.0
    """
    return inputTensor([value])


def dropout(x: Operand, p: float) -> Expression:
    """Return each element divided by ``1 - p``, or zero with probability ``p``; the mask is drawn once
    (DyNet's ``dropout``).

    Parameters
    ----------
    x
        An expression of any shape.
    p
        The probability, 0 to 1.

    Returns
    -------
    Expression
        In the shape of ``x``.

    Raises
    ------
    TypeError
        ``x`` is neither an expression, a parameter nor a variable.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.dropout(dy.ones(8), 0.5).npvalue().max().item()
    2.0
    """
    one = to_expression(x)
    kept = _draw(layers.uniform_random, one.shape, min=0.0, max=1.0) >= p
    return cmult(one, inputTensor(kept / (1.0 - p)))


def _draw(layer: Callable[..., Variable], dim: int | Sequence[int], **options: float) -> Array:
    """Return a variable with the random values of a layer, drawn once."""
    program = Program()
    with program_guard(program, Program()):
        variable = layer(shape=[dim] if isinstance(dim, int) else list(dim), **options)
    return run(program, [variable])[0]


def zeros(dim: int | Sequence[int]) -> Expression:
    """Return zeros of a shape (DyNet's ``zeros``).

    Returns
    -------
    Expression
        In the shape ``dim``.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.zeros(2).vec_value()
    [0.0, 0.0]
    """
    return inputTensor(np.zeros(dim))


def ones(dim: int | Sequence[int]) -> Expression:
    """Return ones of a shape (DyNet's ``ones``).

    Returns
    -------
    Expression
        In the shape ``dim``.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.ones((1, 2)).npvalue().tolist()
    [[1.0, 1.0]]
    """
    return inputTensor(np.ones(dim))


def constant(dim: int | Sequence[int], val: float) -> Expression:
    """Return one number at every place of a shape (DyNet's ``constant``).

    Parameters
    ----------
    val
        The number in each element.

    Returns
    -------
    Expression
        In the shape ``dim``.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.constant(2, 1.5).vec_value()
    [1.5, 1.5]
    """
    return inputTensor(np.full(dim, val))


def one_hot(dim: int, idx: int) -> Expression:
    """Return a vector of length ``dim`` with 1 at ``idx`` and 0 elsewhere (DyNet's ``one_hot``).

    Parameters
    ----------
    dim
        The length of the vector.
    idx
        The index of the element that is 1.

    Returns
    -------
    Expression
        (dim,).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.one_hot(3, 1).vec_value()
    [0.0, 1.0, 0.0]
    """
    return inputTensor(np.eye(dim)[idx])


def random_normal(dim: int | Sequence[int], mean: float = 0.0, stddev: float = 1.0) -> Expression:
    """Return normally distributed numbers, drawn once (DyNet's ``random_normal``).

    Parameters
    ----------
    mean
        The mean of the numbers.
    stddev
        The standard deviation.

    Returns
    -------
    Expression
        In the shape ``dim``.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.random_normal((2, 3)).dim()
    ((2, 3), 1)
    """
    return inputTensor(_draw(layers.gaussian_random, dim, mean=mean, std=stddev))


def random_uniform(dim: int | Sequence[int], left: float, right: float) -> Expression:
    """Return numbers distributed uniformly between ``left`` and ``right``, drawn once.

    Parameters
    ----------
    left, right
        The lower bound (``left``) and the upper bound (``right``).

    Returns
    -------
    Expression
        In the shape ``dim``.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.random_uniform((2, 3), 0.0, 1.0).dim()
    ((2, 3), 1)
    """
    return inputTensor(_draw(layers.uniform_random, dim, min=left, max=right))


def NormalInitializer(mean: float = 0.0, var: float = 1.0) -> Initializer:  # noqa: N802  (DyNet's name)
    """Return an initializer that draws from a normal distribution with this mean and variance (DyNet's
    ``NormalInitializer``).

    Parameters
    ----------
    mean
        The mean of the numbers.
    var
        The variance of the numbers.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.ParameterCollection().add_parameters(2, init=dy.NormalInitializer(0.0, 0.01)).shape()
    (2,)
    """
    return initializer.NormalInitializer(mean, math.sqrt(var))


def UniformInitializer(scale: float) -> Initializer:  # noqa: N802
    """Return an initializer that draws from a uniform distribution between ``-scale`` and ``scale`` (DyNet's
    ``UniformInitializer``).

    Parameters
    ----------
    scale
        The bound of the absolute values.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.ParameterCollection().add_parameters(2, init=dy.UniformInitializer(0.1)).shape()
    (2,)
    """
    return initializer.UniformInitializer(-scale, scale)


def ConstInitializer(c: float) -> Initializer:  # noqa: N802
    """Return an initializer that sets every element to the same number (DyNet's ``ConstInitializer``).

    Parameters
    ----------
    c
        The number in each element.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.ParameterCollection().add_parameters(2, init=dy.ConstInitializer(0.1)).shape()
    (2,)
    """
    return initializer.ConstantInitializer(c)


def NumpyInitializer(array: ArrayLike) -> Initializer:  # noqa: N802
    """Return an initializer that sets a parameter to the values of an array (DyNet's ``NumpyInitializer``).

    Parameters
    ----------
    array
        An array in the shape of the parameter.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.ParameterCollection().add_parameters(2, init=dy.NumpyInitializer([1.0, 2.0])).shape()
    (2,)
    """
    return initializer.NumpyArrayInitializer(np.asarray(array, np.float32))


def GlorotInitializer() -> Initializer:  # noqa: N802
    """Return the default initializer, which draws uniformly as Glorot & Bengio (2010) did.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.ParameterCollection().add_parameters(2, init=dy.GlorotInitializer()).shape()
    (2,)
    """
    return initializer.XavierInitializer()
