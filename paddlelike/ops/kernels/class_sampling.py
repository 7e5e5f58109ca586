"""Distributions over very many classes, from which losses draw samples.

Uniform; log-uniform (small numbers, frequent words, more often); or given, drawn by Walker's alias method.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from paddlelike.framework.opdef import Array

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

    def draw(self, generator: Any, shape: tuple[int, int]) -> Array:
        """Return classes, int64."""
        if self.sampler == UNIFORM:
            found: Array = generator.integers(0, self.total, shape)
            return found
        if self.sampler == LOG_UNIFORM:
            return draw_log_uniform(generator, self.total, shape)
        assert self.alias is not None
        assert self.alias_probs is not None
        first = generator.integers(0, self.total, shape)
        kept = generator.uniform(shape, 0.0, 1.0) <= self.alias_probs[first]
        other = self.alias[first]
        return np.where(kept | (other < 0), first, other).astype(np.int64)


def log_uniform_probability(classes: Array, count: int) -> Array:
    """Return the probability of each of ``count`` classes, small numbers more often."""
    return np.log1p(1.0 / (classes + 1.0)) / math.log(count)


def draw_log_uniform(generator: Any, count: int, shape: tuple[int, int]) -> Array:
    """Return classes below ``count``, drawn log-uniformly."""
    u = generator.uniform(shape, 0.0, 1.0).astype(np.float64)
    drawn = np.exp(u * math.log(count)).astype(np.int64) - 1
    return drawn % max(count - 1, 1)
