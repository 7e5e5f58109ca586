"""Random engines of C++ that a few operators use beside the scope's generator.

``std::default_random_engine`` of GNU's library is Park and Miller's with the multiplier 16807;
``std::mt19937_64`` is described in Nishimura, "Tables of 64-bit Mersenne Twisters" (2000). Integers below a
bound are drawn as by ``std::uniform_int_distribution`` of the library that Fluid 1.8 was built with.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Final

import numpy as np

from paddlelike.framework.opdef import Array

_MODULUS: Final = 2**31 - 1
_M, _FACTOR = np.uint64(_MODULUS), np.uint64(16807)
_WORDS, _HALF, _MASK64 = 312, 156, 2**64 - 1
_LOW31: Final = 2**31 - 1


def iterate_minimal(seed: int) -> Iterator[int]:
    """Yield the values of the minimal standard engine, in [1, 2^31 - 2].

    >>> next(iterate_minimal(1))
    16807
    """
    state = seed % 2**64 % _MODULUS or 1
    while True:
        state = state * 16807 % _MODULUS
        yield state


def iterate_mersenne(seed: int) -> Iterator[int]:
    """Yield the values of the Mersenne twister, in [0, 2^64 - 1].

    >>> next(iterate_mersenne(5489))
    14514284786278117030
    """
    state = [seed % 2**64]
    for index in range(1, _WORDS):
        state.append(6364136223846793005 * (state[-1] ^ state[-1] >> 62) + index & _MASK64)
    while True:
        for index in range(_WORDS):
            x = (state[index] & ~_LOW31 & _MASK64) | (state[(index + 1) % _WORDS] & _LOW31)
            turned = x >> 1 ^ (0xB5026F5AA96619E9 if x & 1 else 0)
            state[index] = state[(index + _HALF) % _WORDS] ^ turned
        for x in state:
            x ^= x >> 29 & 0x5555555555555555
            x ^= x << 17 & 0x71D67FFFEDA60000
            x ^= x << 37 & 0xFFF7EEE000000000
            yield x ^ x >> 43


def draw_below(engine: Iterator[int], span: int, *, low: int, steps: int) -> int:
    """Return an integer in [0, ``span``), from an engine whose values range from ``low`` to ``low +
    steps``.
    """
    scale = steps // span
    while True:
        value = next(engine) - low
        if value < span * scale:
            return value // scale


def shuffle(count: int, seed: int) -> tuple[Array, int]:
    """Return 0 .. count-1 in the order that ``std::shuffle`` gives with the minimal standard engine.

    Return also the next value of the engine.
    """
    drawn = _draw_minimal(seed, max(count, 1))
    spans = np.arange(2, count + 1, dtype=np.uint64)
    others = (drawn[:-1] - np.uint64(1)) // (np.uint64(_MODULUS - 2) // spans)
    if (others < spans).all():
        return _exchange(count, others.tolist()), int(drawn[-1])
    engine = iterate_minimal(seed)  # a value has to be drawn again: in one shuffle of ten, of 20,000 rows
    found = [draw_below(engine, last + 1, low=1, steps=_MODULUS - 2) for last in range(1, count)]
    return _exchange(count, found), next(engine)


def _exchange(count: int, others: list[int]) -> Array:
    """Return 0 .. count-1, shuffled by exchanging each element with a random earlier one or itself."""
    order = list(range(count))
    for last, other in enumerate(others, 1):
        order[last], order[other] = order[other], last
    return np.array(order, np.int64)


def _draw_minimal(seed: int, count: int) -> Array:
    """Return the first values of the minimal standard engine."""
    state = np.uint64(seed % 2**64 % _MODULUS or 1)
    drawn: Array = _compute_powers(count.bit_length())[1 : count + 1] * state % _M
    return drawn


@functools.lru_cache(maxsize=4)
def _compute_powers(bits: int) -> Array:
    """Return the first 2^bits powers of the minimal standard engine's multiplier."""
    powers = np.ones(1, np.uint64)
    for _ in range(bits):
        powers = np.concatenate([powers, powers * (powers[-1] * _FACTOR % _M) % _M])
    return powers
