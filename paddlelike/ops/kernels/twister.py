"""Random numbers of C++'s Mersenne twisters, as Paddle draws classes from them with a seed.

Matsumoto and Nishimura 1998; ``mt19937`` and ``mt19937_64`` of ISO C++, with GNU's distributions. Every
operator with a seed begins anew in every run, so the first numbers of the latest seeds are kept.
"""

from __future__ import annotations

import functools
import math
from typing import Final

import numpy as np

from paddlelike.framework.opdef import Array

__all__ = ["Twister"]

_SIZE: Final = 312  # words of 64 bits
_HALF: Final = 156
_SEED_FACTOR: Final = 6364136223846793005
_UPPER: Final = np.uint64(0xFFFFFFFF80000000)
_LOWER: Final = np.uint64(0x7FFFFFFF)
_MATRIX: Final = np.uint64(0xB5026F5AA96619E9)


class Twister:
    """The numbers that follow a seed: of 64 bits, or of 32 bits with ``is_short``."""

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
        ).size:  # C++ draws these anew: the next ones take their place
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
    """Replace all words: each part reads old words, or those of the part before."""
    last = _SIZE - 1
    for low, high, far in ((0, _HALF, _HALF), (_HALF, last, 0), (last, _SIZE, _HALF - 1)):
        following = state[np.arange(low + 1, high + 1) % _SIZE]
        mixed = (state[low:high] & _UPPER) | (following & _LOWER)
        odd = np.where(mixed & np.uint64(1), _MATRIX, np.uint64(0))
        state[low:high] = state[far : far + high - low] ^ (mixed >> np.uint64(1)) ^ odd


def _temper(state: Array) -> Array:
    x = state ^ ((state >> np.uint64(29)) & np.uint64(0x5555555555555555))
    x ^= (x << np.uint64(17)) & np.uint64(0x71D67FFFEDA60000)
    x ^= (x << np.uint64(37)) & np.uint64(0xFFF7EEE000000000)
    return x ^ (x >> np.uint64(43))
