"""Distributions over very many classes, from which losses draw samples.

A distribution is uniform, log-uniform (small numbers, which are frequent words, come more often) or given;
given ones are drawn by Walker's alias method. With a seed the numbers come from C++'s Mersenne twister
(Matsumoto and Nishimura 1998) and GNU's distributions, as in Paddle. An operator with a seed restarts it in
every run, so the first numbers of the latest seeds are cached.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Generator
from paddlelike.framework.opdef import Array

_SIZE: Final = 312  # words of 64 bits
_HALF: Final = 156
_SEED_FACTOR: Final = 6364136223846793005
_UPPER: Final = np.uint64(0xFFFFFFFF80000000)
_LOWER: Final = np.uint64(0x7FFFFFFF)
_MATRIX: Final = np.uint64(0xB5026F5AA96619E9)

UNIFORM, LOG_UNIFORM, CUSTOM = range(3)  # the values of the attribute ``sampler``


class ClassDistribution(NamedTuple):
    """A distribution from which classes are sampled."""

    sampler: int
    total: int
    probs: Array | None = None
    alias: Array | None = None
    alias_probs: Array | None = None

    def probability(self, classes: Array, dtype: Any) -> Array:
        """Return the probability of each class to be sampled."""
        if self.sampler == UNIFORM:
            return np.full(classes.shape, 1.0 / self.total, dtype)
        if self.sampler == LOG_UNIFORM:
            return log_uniform_probability(classes, self.total).astype(dtype)
        assert self.probs is not None
        return self.probs[classes].astype(dtype)

    def draw(self, generator: Any, shape: tuple[int, int], seed: int = 0) -> Array:
        """Return sampled classes, int64, drawn with a seed or, without one, from a generator."""
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


def _draw_integers(source: Twister | Generator, total: int, count: int) -> Array:
    found: Array = (
        source.integers(total, count) if isinstance(source, Twister) else source.integers(0, total, (count,))
    )
    return found


def _draw_pairs(source: Twister, total: int, count: int) -> tuple[Array, Array]:
    """Return integers and, for each of them, a number in [0, 1) that is drawn after it."""
    pairs = [(source.integers(total, 1)[0], source.uniform(1)[0]) for _ in range(count)]
    integers, shares = zip(*pairs, strict=True) if pairs else ((), ())
    return np.array(integers, np.int64), np.array(shares, np.float64)


def log_uniform_probability(classes: Array, count: int) -> Array:
    """Return the probability of each of ``count`` classes, decreasing with the class number."""
    return np.log1p(1.0 / (classes + 1.0)) / math.log(count)


def draw_log_uniform(generator: Generator | None, count: int, size: int, seed: int = 0) -> Array:
    """Return ``size`` classes below ``count``, drawn log-uniformly; see :meth:`ClassDistribution.draw`."""
    assert seed or generator is not None
    u = (
        Twister(seed).uniform(size)
        if generator is None or seed
        else generator.uniform((size,), 0.0, 1.0).astype(np.float64)
    )
    drawn = np.exp(u * math.log(count)).astype(np.int64) - 1
    return drawn % max(count - 1, 1)


class Twister:
    """A Mersenne twister of 64 bits, or of 32 bits with ``is_short``."""

    def __init__(self, seed: int, *, is_short: bool = False) -> None:
        self._seed, self._is_short, self._position = seed % 2**32, is_short, 0

    def draw(self, count: int) -> Array:
        """Return the next numbers of the engine, uint64."""
        start, self._position = self._position, self._position + count
        blocks = -(-self._position // _SIZE)
        size = 1 << max(blocks - 1, 0).bit_length()  # few lengths, so that few streams are kept
        stream = _draw_short if self._is_short else _draw_long
        return stream(self._seed, size * _SIZE)[start : self._position]

    def integers(self, total: int, count: int) -> Array:
        """Return integers below ``total``, int64, as ``uniform_int_distribution`` gives them."""
        width = 2 ** (32 if self._is_short else 64) - 1
        scale = width // total
        found = self.draw(count) // np.uint64(scale)
        while (
            beyond := np.flatnonzero(found >= total)
        ).size:  # C++ draws these again: the next ones take their place
            found = np.delete(found, beyond)
            found = np.append(found, self.draw(count - found.size) // np.uint64(scale))
        return found.astype(np.int64)

    def uniform(self, count: int) -> Array:
        """Return float64 in [0, 1), as ``uniform_real_distribution`` gives them."""
        if self._is_short:
            low, high = self.draw(2 * count).reshape(count, 2).T
            found = (low.astype(np.float64) + high.astype(np.float64) * 2.0**32) / 2.0**64
        else:
            found = self.draw(count).astype(np.float64) / 2.0**64
        return np.minimum(found, math.nextafter(1.0, 0.0))


@functools.lru_cache(maxsize=32)
def _draw_short(seed: int, count: int) -> Array:
    engine = np.random.MT19937()
    engine._legacy_seeding(seed)  # of one integer, as C++ has it
    return engine.random_raw(count)


@functools.lru_cache(maxsize=32)
def _draw_long(seed: int, count: int) -> Array:
    state = _fill_state(seed)
    blocks = []
    for _ in range(count // _SIZE):
        _twist(state)
        blocks.append(_temper(state))
    return np.concatenate(blocks)


def _fill_state(seed: int) -> Array:
    words = [seed]
    for index in range(1, _SIZE):
        words.append((_SEED_FACTOR * (words[-1] ^ words[-1] >> 62) + index) & (2**64 - 1))
    return np.array(words, np.uint64)


def _twist(state: Array) -> None:
    """Replace all words of the state; each part reads old words, or new words of the part before."""
    last = _SIZE - 1
    for low, high, far in ((0, _HALF, _HALF), (_HALF, last, 0), (last, _SIZE, _HALF - 1)):
        following = state[np.arange(low + 1, high + 1) % _SIZE]
        mixed = (state[low:high] & _UPPER) | (following & _LOWER)
        odd = np.where(mixed & np.uint64(1), _MATRIX, np.uint64(0))
        state[low:high] = state[far : far + high - low] ^ (mixed >> np.uint64(1)) ^ odd


def _temper(state: Array) -> Array:
    x: Array = state ^ ((state >> np.uint64(29)) & np.uint64(0x5555555555555555))
    x ^= (x << np.uint64(17)) & np.uint64(0x71D67FFFEDA60000)
    x ^= (x << np.uint64(37)) & np.uint64(0xFFF7EEE000000000)
    x ^= x >> np.uint64(43)
    return x
