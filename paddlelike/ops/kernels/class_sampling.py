"""Distributions over very many classes, from which losses draw samples.

Uniform; log-uniform (small numbers, frequent words, more often); or given, drawn by Walker's alias method.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.twister import Twister

__all__ = [
    "CUSTOM",
    "LOG_UNIFORM",
    "UNIFORM",
    "ClassDistribution",
    "draw_log_uniform",
    "log_uniform_probability",
]

UNIFORM, LOG_UNIFORM, CUSTOM = range(3)  # the values of the attribute ``sampler``


class ClassDistribution(NamedTuple):
    """A distribution from which classes are drawn."""

    sampler: int
    total: int
    probs: Array | None = None
    alias: Array | None = None
    alias_probs: Array | None = None

    def probability(self, classes: Array, dtype: Any) -> Array:
        """Return the probability of each class to be drawn."""
        if self.sampler == UNIFORM:
            return np.full(classes.shape, 1.0 / self.total, dtype)
        if self.sampler == LOG_UNIFORM:
            return log_uniform_probability(classes, self.total).astype(dtype)
        assert self.probs is not None
        return self.probs[classes].astype(dtype)

    def draw(self, generator: Any, shape: tuple[int, int], seed: int = 0) -> Array:
        """Return classes, int64: from the numbers that follow a seed, or, without one, of a generator."""
        count = math.prod(shape)
        if self.sampler == UNIFORM:
            source = Twister(seed) if seed else generator
            return _draw_integers(source, self.total, count).reshape(shape)
        if self.sampler == LOG_UNIFORM:
            return draw_log_uniform(generator, self.total, count, seed).reshape(shape)
        assert self.alias is not None
        assert self.alias_probs is not None
        if seed:
            first, share = _draw_pairs(Twister(seed, is_short=True), self.total, count)
        else:
            first, share = generator.integers(0, self.total, (count,)), generator.uniform((count,), 0.0, 1.0)
        other = self.alias[first]
        is_kept = (share <= self.alias_probs[first]) | (other < 0)
        return np.where(is_kept, first, other).astype(np.int64).reshape(shape)


def _draw_integers(source: Any, total: int, count: int) -> Array:
    found: Array = (
        source.integers(total, count) if isinstance(source, Twister) else source.integers(0, total, (count,))
    )
    return found


def _draw_pairs(source: Twister, total: int, count: int) -> tuple[Array, Array]:
    """Return integers, and with each a number in [0, 1) that is drawn after it."""
    pairs = [(source.integers(total, 1)[0], source.uniform(1)[0]) for _ in range(count)]
    integers, shares = zip(*pairs, strict=True) if pairs else ((), ())
    return np.array(integers, np.int64), np.array(shares, np.float64)


def log_uniform_probability(classes: Array, count: int) -> Array:
    """Return the probability of each of ``count`` classes, small numbers more often."""
    return np.log1p(1.0 / (classes + 1.0)) / math.log(count)


def draw_log_uniform(generator: Any, count: int, size: int, seed: int = 0) -> Array:
    """Return ``size`` classes below ``count``, drawn log-uniformly; see :meth:`ClassDistribution.draw`."""
    u = Twister(seed).uniform(size) if seed else generator.uniform((size,), 0.0, 1.0).astype(np.float64)
    drawn = np.exp(u * math.log(count)).astype(np.int64) - 1
    return drawn % max(count - 1, 1)
