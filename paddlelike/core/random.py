"""Paddle's random numbers, bit for bit: one multiplicative engine and the distributions over it.

The engine is Park and Miller's "minimal standard" with the multiplier 48271 (``minstd_rand`` of C++): ``x <-
48271 x mod (2^31 - 1)``. The distributions are those of GNU's C++ library, which Fluid 1.8 was built with,
down to every rounding in float32. So equal seeds give Fluid's weights and masks.

Because ``x_k = 48271^k x_0``, a table of powers gives a whole block of the sequence at once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from os import urandom
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.core import clib, memory
from paddlelike.core.versioned import Versioned

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Array = np.ndarray[Any, Any]

_MODULUS: Final = 2**31 - 1
_MULTIPLIER: Final = 48271
_SPAN: Final = _MODULUS - 2  # the largest value of the engine minus its smallest
_BLOCK: Final = 8192  # values drawn at once: few Python steps, and the block stays in the cache


class Generator(Versioned):
    """A stream of random numbers; equal seeds give the stream of Paddle's operators.

    Any integer is a seed; it is reduced to an unsigned 32-bit integer, as in Paddle. Without one, the stream
    starts from the entropy of the operating system. Every method advances it by the values it draws.

    >>> Generator(1).uniform([2], -1.0, 1.0)
    array([-0.99995506, -0.8299351 ], dtype=float32)
    >>> one = Generator(7)
    >>> other = Generator()
    >>> other.state = one.state
    >>> one.gaussian([3]).tolist() == other.gaussian([3]).tolist()
    True
    """

    __slots__ = ("_state",)

    def __init__(self, seed: int | None = None) -> None:
        if seed is None:
            self._state = 1 + int.from_bytes(urandom(8), "little") % (_MODULUS - 1)
        else:
            self._state = int(seed) % 2**32 % _MODULUS or 1

    @property
    def state(self) -> int:
        """The state of the engine, in [1, 2^31 - 2]. Setting a state outside this range raises ValueError."""
        return self._state

    @state.setter
    def state(self, state: int) -> None:
        if not 1 <= state < _MODULUS:
            raise ValueError(f"random state {state} is not in [1, {_MODULUS - 1}]")
        self._state = int(state)

    def __repr__(self) -> str:
        return f"Generator(state={self._state})"

    def skip(self, count: int) -> None:
        """Advance by ``count`` steps of the engine, in constant time."""
        self._state = self._state * pow(_MULTIPLIER, count, _MODULUS) % _MODULUS

    def draw_bits(self, count: int) -> Array:
        """Return the next ``count`` values of the engine, each reduced by 1: int32 in [0, 2^31 - 3]."""
        out = np.empty(count, np.int32)
        for start in range(0, count, _BLOCK):
            self._fill(out[start : start + _BLOCK])
        return out

    def _fill(self, out: Array) -> None:
        """Write the next values minus 1 into ``out``, at most one block."""
        value = _powers()[: len(out)] * np.uint64(self._state)
        # Modulo 2^31 - 1 without a division: 2^31 counts as 1, then min(n, n - modulus) wraps.
        high = value >> np.uint64(31)
        value &= np.uint64(_MODULUS)
        value += high
        np.subtract(value, np.uint64(_MODULUS), out=high)
        np.minimum(value, high, out=value)
        out[...] = value
        self._state = int(value[-1])
        out -= 1

    def draw(self, count: int, dtype: Any = np.float32) -> Array:
        """Return ``count`` values in [0, 1]: float32 (one step of the engine each) or float64 (two)."""
        if np.dtype(dtype) == np.float64:
            low, high = self.draw_bits(2 * count).reshape(count, 2).T
            steps = float(_SPAN + 1)
            return np.minimum((low + high * steps) / (steps * steps), np.nextafter(1.0, 0.0))
        out = memory.empty((count,), np.dtype(np.float32))
        bits = np.empty(min(count, _BLOCK), np.int32)
        for start in range(0, count, _BLOCK):
            part = out[start : start + _BLOCK]
            block = bits[: len(part)]
            self._fill(block)
            # The last 64 of the 2^31 steps round up to 1, which the C++ library of Paddle 1.8.5 lets through.
            np.multiply(block, np.float32(2.0**-31), out=part, dtype=np.float32)
        return out

    def uniform(
        self, shape: Sequence[int], low: float = 0.0, high: float = 1.0, dtype: Any = np.float32
    ) -> Array:
        """Return an array of values that are uniform in [low, high]."""
        real = np.dtype(dtype).type
        u = self.draw(math.prod(shape), dtype)
        u *= real(high) - real(low)
        u += real(low)
        return u.reshape(shape)

    def gaussian(
        self, shape: Sequence[int], mean: float = 0.0, std: float = 1.0, dtype: Any = np.float32
    ) -> Array:
        """Return an array of normal values, by Marsaglia's polar method.

        Points of the square outside the circle are dropped; so is the last value when the count is odd.
        """
        real = np.dtype(dtype).type
        steps = 2 if real is np.float64 else 1
        count = math.prod(shape)
        pairs = memory.empty(((count + 1) // 2, 2), np.dtype(dtype))
        done = 0
        while done < len(pairs):
            start = self._state
            tries = min(_BLOCK // 2, 8 + (len(pairs) - done) * 4 // 3)  # a little more than 4 / pi
            square = self.draw(2 * tries, dtype)
            square *= 2
            square -= 1
            x, y = square[0::2], square[1::2]
            radius = x * x + y * y
            kept = np.flatnonzero((radius <= 1) & (radius != 0))[: len(pairs) - done]
            radius = radius.take(kept)
            factor = np.sqrt(-2 * clib.log(radius) / radius)
            part = pairs[done : done + len(kept)]
            np.multiply(y.take(kept), factor, out=part[:, 0])
            np.multiply(x.take(kept), factor, out=part[:, 1])
            done += len(kept)
            if done == len(pairs):  # undo the steps of unused values
                self._state = start
                self.skip(2 * steps * (int(kept[-1]) + 1))
        pairs *= real(std)
        pairs += real(mean)
        return pairs.reshape(-1)[:count].reshape(shape)

    def truncated_gaussian(self, shape: Sequence[int], mean: float = 0.0, std: float = 1.0) -> Array:
        """Return an array of normal values within two standard deviations of the mean, by inversion."""
        tail = (1 - math.erf(math.sqrt(2))) / 2
        low, high = np.float32(tail), np.float32(1 - tail)
        out = memory.empty((math.prod(shape),), np.dtype(np.float32))
        for start in range(0, len(out), _BLOCK):
            part = out[start : start + _BLOCK]
            p = np.maximum(self.draw(len(part)), np.finfo(np.float32).tiny)
            p *= high - low
            p += low
            p *= 2
            p -= 1
            # Scaled and shifted in float64, then rounded once.
            part[...] = _erfinv(p).astype(np.float64) * math.sqrt(2) * std + mean
        return out.reshape(shape)

    def integers(self, low: int, high: int, shape: Sequence[int]) -> Array:
        """Return an int64 array of integers in [low, high). Raises ValueError unless there are 1 to 2^32."""
        count, span = math.prod(shape), high - low
        if not 0 < span <= 2**32:
            raise ValueError(f"cannot draw from [{low}, {high}): expected 1 to 2^32 integers")
        if span > _SPAN:
            return np.array([low + self.draw_below(span) for _ in range(count)], np.int64).reshape(shape)
        scale = _SPAN // span
        out = np.empty(count, np.int64)
        done = 0
        while done < count:
            bits = self.draw_bits(count - done)
            kept = np.flatnonzero(bits < span * scale)
            np.floor_divide(bits[kept], scale, out=out[done : done + len(kept)])
            done += len(kept)
        out += low
        return out.reshape(shape)

    def draw_below(self, span: int) -> int:
        """Return an integer in [0, span)."""
        if span == _SPAN + 1:
            return self._next()
        if span > _SPAN:  # more than the engine has: combine two values
            while True:
                value = (_SPAN + 1) * self.draw_below((span - 1) // (_SPAN + 1) + 1) + self._next()
                if value < span:
                    return value
        scale = _SPAN // span
        while True:
            value = self._next()
            if value < span * scale:
                return value // scale

    def _next(self) -> int:
        self._state = self._state * _MULTIPLIER % _MODULUS
        return self._state - 1


def shuffle_range(count: int, seed: int) -> Array:
    """Return 0 .. count-1 in the order that Paddle's ``randperm`` gives, int64.

    Unlike all others, this operator uses the C library: ``srand``, ``rand`` and ``random_shuffle``.
    """
    order = list(range(count))
    for last, value in zip(range(1, count), clib.rand(seed), strict=False):
        other = value % (last + 1)
        order[last], order[other] = order[other], order[last]
    return np.array(order, np.int64)


class MersenneGenerator(Generator):
    """The stream of a seeded operator of Paddle 2.x and 3: ``mt19937_64`` of C++, and the same distributions.

    Matsumoto and Nishimura, 1998.

    >>> MersenneGenerator(7).uniform([2], -2.0, 3.0)
    array([1.7719264, 2.7465057], dtype=float32)
    """

    __slots__ = ("_left", "_words")

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        words = [seed % 2**64]
        for i in range(1, 312):
            words.append((6364136223846793005 * (words[-1] ^ (words[-1] >> 62)) + i) % 2**64)
        self._words, self._left = np.array(words, np.uint64), np.empty(0, np.uint64)

    def draw(self, count: int, dtype: DTypeLike = np.float32) -> Array:
        """Return ``count`` values in [0, 1): one step of the engine each."""
        blocks = [self._twist() for _ in range(-(-(count - len(self._left)) // 312))]
        drawn, self._left = np.split(np.concatenate([self._left, *blocks]), [count])
        one = np.ones((), dtype)
        u: Array = np.minimum(drawn.astype(dtype) / (one * 2.0**64), np.nextafter(one, 0 * one))
        return u

    def _twist(self) -> Array:
        """Advance by 312 words, and return them tempered."""
        words, low = self._words, np.uint64(2**31 - 1)
        for part in (slice(0, 156), slice(156, 312)):
            following = np.roll(words, -1)[part]
            mixed = (words[part] & ~low) | (following & low)
            words[part] = np.roll(words, -156)[part] ^ (mixed >> np.uint64(1))
            words[part] ^= (mixed & np.uint64(1)) * np.uint64(0xB5026F5AA96619E9)
        out = words.copy()
        for shift, mask in ((29, 0x5555555555555555), (-17, 0x71D67FFFEDA60000), (-37, 0xFFF7EEE000000000)):
            moved = out >> np.uint64(shift) if shift > 0 else out << np.uint64(-shift)
            out ^= moved & np.uint64(mask)
        out ^= out >> np.uint64(43)
        return out


@functools.cache
def _powers() -> Array:
    """Return 48271^1 .. 48271^8192 modulo 2^31 - 1."""
    powers = np.array([_MULTIPLIER], np.uint64)
    while len(powers) < _BLOCK:
        powers = np.concatenate([powers, powers * powers[-1] % np.uint64(_MODULUS)])
    powers.flags.writeable = False
    return powers


# Wichura, "The percentage points of the normal distribution" (AS 241), in terms of erf; the highest
# coefficient comes first. Paddle uses the fraction for the middle of the distribution everywhere.
_ERFINV_ABOVE: Final = (
    8.8709406962545514830200e2, 1.1819493347062294404278e4, 2.3782041382114385731252e4,
    1.6235862515167575384252e4, 4.8548868893843886794648e3, 6.9706266534389598238465e2,
    4.7072688112383978012285e1, 1.1975323115670912564578e0,
)  # fmt: skip
_ERFINV_BELOW: Final = (
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
    2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
    4.2313330701600911252e1, 1.0,
)  # fmt: skip


def _erfinv(x: Array) -> Array:
    """Return the inverse of the error function, in float32 arithmetic, to 1e-5 for |x| < 0.9545."""
    r = (0.180625 - 0.25 * x.astype(np.float64) * x).astype(np.float32)
    return x * _polynomial(_ERFINV_ABOVE, r) / _polynomial(_ERFINV_BELOW, r)


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total *= x
        total += np.float32(coefficient)
    return total
