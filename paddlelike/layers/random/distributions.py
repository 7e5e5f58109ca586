"""Probability distributions whose parameters are numbers, arrays or variables (float32)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from paddlelike.errors import GraphError, UnsupportedError
from paddlelike.framework import Variable, warn_quirk
from paddlelike.layers.elementwise.binary import elementwise_pow
from paddlelike.layers.elementwise.compare import less_than
from paddlelike.layers.elementwise.scale import cast
from paddlelike.layers.elementwise.unary import exp, log
from paddlelike.layers.emit import check_variable, describe
from paddlelike.layers.linalg.products import matmul
from paddlelike.layers.random.tensors import gaussian_random, uniform_random, uniform_random_batch_size_like
from paddlelike.layers.reduction import reduce_max, reduce_prod, reduce_sum
from paddlelike.layers.tensor.assign import assign, create_tensor
from paddlelike.layers.tensor.constant import fill_constant_batch_size_like, ones, zeros
from paddlelike.layers.tensor.diag import diag
from paddlelike.layers.tensor.reshape import reshape, shape as shape_of

if TYPE_CHECKING:
    from paddlelike.core import Array

__all__ = ["Categorical", "MultivariateNormalDiag", "Normal", "Uniform"]


#: A parameter: numbers become a variable.
ParameterLike: TypeAlias = "Variable | float | list[float] | Array"


class Distribution:
    """The interface of distributions. A method that a subclass does not define raises UnsupportedError."""

    def sample(self, shape: Sequence[int], seed: int = 0) -> Variable:
        """Return random values of ``shape`` followed by the shape of the parameters.

        Raises UnsupportedError unless a subclass defines it.
        """
        raise self._without("sample")

    def entropy(self) -> Variable:
        """Return the entropy, in nats. Raises UnsupportedError unless a subclass defines it."""
        raise self._without("entropy")

    def kl_divergence(self, other: Self) -> Variable:
        """Return the Kullback-Leibler divergence from ``other``.

        Raises TypeError unless it has the same class.
        """
        raise self._without("kl_divergence")

    def log_prob(self, value: Variable) -> Variable:
        """Return the logarithm of the density at ``value``.

        Raises UnsupportedError unless a subclass defines it.
        """
        raise self._without("log_prob")

    def _without(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"{type(self).__name__} has no {what}")


class Uniform(Distribution):
    """Uniform on [low, high).

    Each method appends the operators of its formula, as in Fluid's class of this name.

    Parameters
    ----------
    low
        The lower bound, included: a number, an array or a variable.
    high
        The upper bound, excluded; given like ``low``.

    >>> Uniform(0.0, 2.0).sample([3]).shape
    (3,)
    """

    def __init__(self, low: ParameterLike, high: ParameterLike) -> None:
        self.low, self.high = _parameters("Uniform", low=low, high=high)
        self._plain = _are_numbers(low, high)

    def sample(self, shape: Sequence[int], seed: int = 0) -> Variable:
        """Return random values of ``shape`` followed by the shape of the parameters."""
        dims = _dims("Uniform", shape)
        batch = list((self.low + self.high).shape)
        if -1 in batch:
            zero = fill_constant_batch_size_like(self.low + self.high, batch + dims, "float32", 0.0)
            drawn = uniform_random_batch_size_like(zero, zero.shape, min=0.0, max=1.0, seed=seed)
            return reshape(drawn * (zero + self.high - self.low) + self.low, dims + batch)
        low = -1.0 if warn_quirk("uniform_distribution") else 0.0
        drawn = uniform_random(dims + batch, min=low, max=1.0, seed=seed)
        spread = zeros(dims + batch, "float32") + (self.high - self.low)
        out = drawn * spread + self.low
        return reshape(out, dims) if self._plain else out

    def entropy(self) -> Variable:
        """Return ``log(high - low)``."""
        return log(self.high - self.low)

    def log_prob(self, value: Variable) -> Variable:
        """Return ``-log(high - low)`` inside the interval, minus infinity outside.

        Raises TypeError unless ``value`` is a variable.
        """
        check_variable("Uniform.log_prob", "value", value)
        above = less_than(self.low, value)
        below = less_than(value, self.high)
        inside = cast(above, value.dtype) * cast(below, value.dtype)
        return log(inside) - log(self.high - self.low)


class Normal(Distribution):
    """Normal with mean ``loc`` and standard deviation ``scale``.

    Each method appends the operators of its formula, as in Fluid's class of this name.

    Parameters
    ----------
    loc
        The mean: a number, an array or a variable.
    scale
        The standard deviation, given like ``loc``.

    >>> Normal([0.0, 1.0], [1.0, 2.0]).sample([3]).shape
    (3, 2)
    """

    def __init__(self, loc: ParameterLike, scale: ParameterLike) -> None:
        self.loc, self.scale = _parameters("Normal", loc=loc, scale=scale)
        self._plain = _are_numbers(loc, scale)

    def sample(self, shape: Sequence[int], seed: int = 0) -> Variable:
        """Return random values of ``shape`` followed by the shape of the parameters."""
        dims = _dims("Normal", shape)
        batch = list((self.loc + self.scale).shape)
        if -1 in batch:
            zero = fill_constant_batch_size_like(self.loc + self.scale, batch + dims, "float32", 0.0)
            drawn = gaussian_random(shape_of(zero), mean=0.0, std=1.0, seed=seed)
            return reshape(drawn * (zero + self.scale) + self.loc, dims + batch)
        drawn = gaussian_random(dims + batch, mean=0.0, std=1.0, seed=seed)
        out = drawn * (zeros(dims + batch, "float32") + self.scale) + self.loc
        return reshape(out, dims) if self._plain else out

    def entropy(self) -> Variable:
        """Return ``(1 + log(2 * pi)) / 2 + log(scale)``."""
        batch = list((self.loc + self.scale).shape)
        zero = fill_constant_batch_size_like(self.loc + self.scale, batch, "float32", 0.0)
        return (0.5 + 0.5 * math.log(2 * math.pi)) + log(self.scale + zero)

    def log_prob(self, value: Variable) -> Variable:
        """Return ``-(value - loc) ** 2 / (2 * scale ** 2) - log(scale) - log(2 * pi) / 2``.

        Raises TypeError unless ``value`` is a variable.
        """
        check_variable("Normal.log_prob", "value", value)
        variance = self.scale * self.scale
        log_scale = log(self.scale)
        distance = -1.0 * ((value - self.loc) * (value - self.loc))
        return distance / (2.0 * variance) - log_scale - math.log(math.sqrt(2.0 * math.pi))

    def kl_divergence(self, other: Normal) -> Variable:
        """Return ``(r + d - 1 - log(r)) / 2``; r is the ratio of variances, d a squared distance of means."""
        _check_kind(self, other)
        ratio = self.scale / other.scale
        ratio = ratio * ratio
        distance = (self.loc - other.loc) / other.scale
        distance = distance * distance
        return 0.5 * (ratio + distance - 1.0 - log(ratio))


class Categorical(Distribution):
    """Classes with probabilities ``softmax(logits)`` along the last dim.

    Each method appends the operators of its formula, as in Fluid's class of this name.

    Parameters
    ----------
    logits
        A variable (..., classes) of unnormalized logarithms of probabilities.

    >>> from paddlelike.input import data
    >>> Categorical(data("logits", [None, 4])).entropy().shape
    (-1, 1)
    """

    def __init__(self, logits: ParameterLike) -> None:
        (self.logits,) = _parameters("Categorical", logits=logits)

    def entropy(self) -> Variable:
        """Return ``-sum(p * log(p))``, of shape (..., 1)."""
        logits, exponents, total = self._normal(self.logits)
        chances = exponents / total
        return -1.0 * reduce_sum(chances * (logits - log(total)), dim=-1, keep_dim=True)

    def kl_divergence(self, other: Categorical) -> Variable:
        """Return ``sum(p * log(p / q))``, of shape (..., 1)."""
        _check_kind(self, other)
        mine = self.logits - reduce_max(self.logits, dim=-1, keep_dim=True)
        theirs = other.logits - reduce_max(other.logits, dim=-1, keep_dim=True)
        my_exponents, their_exponents = exp(mine), exp(theirs)
        my_total = reduce_sum(my_exponents, dim=-1, keep_dim=True)
        their_total = reduce_sum(their_exponents, dim=-1, keep_dim=True)
        chances = my_exponents / my_total
        difference = mine - log(my_total) - theirs + log(their_total)
        return reduce_sum(chances * difference, dim=-1, keep_dim=True)

    @staticmethod
    def _normal(logits: Variable) -> tuple[Variable, Variable, Variable]:
        """Return the logits, shifted to a maximum of 0, their exponentials and the sum of these."""
        logits = logits - reduce_max(logits, dim=-1, keep_dim=True)
        exponents = exp(logits)
        return logits, exponents, reduce_sum(exponents, dim=-1, keep_dim=True)


class MultivariateNormalDiag(Distribution):
    """Normal in K dims with mean ``loc`` (K,) and the diagonal of ``scale`` (K, K) as covariance.

    Each method appends the operators of its formula, as in Fluid's class of this name. ``loc`` and ``scale``
    are variables.

    Parameters
    ----------
    loc
        The mean, (K,).
    scale
        A diagonal matrix (K, K), the covariance.

    Raises
    ------
    TypeError
        ``loc`` or ``scale`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> mean = fluid.layers.assign(np.zeros(2, "float32"))
    >>> normal = fluid.layers.MultivariateNormalDiag(mean, fluid.layers.assign(np.eye(2, dtype="float32")))
    >>> (nats,) = fluid.Executor().run(fetch_list=[normal.entropy()])
    >>> print(f"{nats[0]:.4f}")  # 1 + log(2 * pi)
    2.8379
    """

    def __init__(self, loc: Variable, scale: Variable) -> None:
        self.loc = check_variable("MultivariateNormalDiag", "loc", loc)
        self.scale = check_variable("MultivariateNormalDiag", "scale", scale)

    def entropy(self) -> Variable:
        """Return ``(K * (1 + log(2 * pi)) + log(det(scale))) / 2``."""
        constant = self.scale.shape[0] * (1.0 + math.log(2 * math.pi))
        return 0.5 * (constant + log(_determinant(self.scale)))

    def kl_divergence(self, other: MultivariateNormalDiag) -> Variable:
        """Return the Kullback-Leibler divergence from ``other``, of shape [1]."""
        _check_kind(self, other)
        trace = reduce_sum(_inverse(other.scale) * self.scale)
        shifted = matmul(other.loc - self.loc, _inverse(other.scale))
        distance = matmul(shifted, other.loc - self.loc)
        volumes = log(_determinant(other.scale)) - log(_determinant(self.scale))
        return 0.5 * (trace + distance - self.scale.shape[0] + volumes)


def _ones_and_diagonal(matrix: Variable) -> tuple[Variable, Variable]:
    one = ones(matrix.shape, matrix.dtype)
    return one, diag(ones([matrix.shape[0]], matrix.dtype))


def _determinant(matrix: Variable) -> Variable:
    """Return the determinant of a diagonal matrix."""
    one, diagonal = _ones_and_diagonal(matrix)
    return reduce_prod(matrix + one - diagonal)


def _inverse(matrix: Variable) -> Variable:
    """Return the inverse of a diagonal matrix."""
    one, diagonal = _ones_and_diagonal(matrix)
    return elementwise_pow(matrix, one - 2 * diagonal)


def _parameters(kind: str, **given: ParameterLike) -> list[Variable]:
    """Return the parameters as variables; numbers and arrays become float32 of one shape."""
    variables = [value for value in given.values() if isinstance(value, Variable)]
    if len(variables) == len(given):
        return variables
    if variables:
        raise GraphError(f"{kind}: {', '.join(given)} must all be variables, or none of them")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float | list | np.ndarray):
            raise TypeError(
                f"{kind}: {name} must be a number, list, array or variable, got {describe(value)}"
            )
    arrays = [np.atleast_1d(np.asarray(value, "float32")) for value in given.values()]
    return [
        assign(np.ascontiguousarray(array), create_tensor("float32"))
        for array in np.broadcast_arrays(*arrays)
    ]


def _are_numbers(*given: object) -> bool:
    return all(isinstance(value, int | float) for value in given)


def _dims(kind: str, shape: Sequence[int]) -> list[int]:
    if not isinstance(shape, list | tuple):
        raise TypeError(f"{kind}.sample: shape must be a list of ints, got {describe(shape)}")
    return list(shape)


def _check_kind(mine: Distribution, other: object) -> None:
    if not isinstance(other, type(mine)):
        kind = type(mine).__name__
        raise TypeError(f"{kind}.kl_divergence: other must be a {kind}, got {describe(other)}")
