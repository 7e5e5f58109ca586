"""Two functions of the C library (glibc), bit for bit on every machine: ``logf`` and ``rand``.

numpy's logarithm differs in the last bits, which would change normally distributed weights.
"""

from __future__ import annotations

import collections
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

# Algorithm and constants of logf are those of Arm's optimized routines (MIT licence), which glibc has used
# since 2.28: log(2^k z) = log c + k log 2 + log(1 + r), with r = z/c - 1, where c is the middle of the
# interval (one of 16) that contains z.
_LOG_ONE: Final = 0x3F330000  # the bits of the float32 where the 16 intervals around 1 begin
_LOG_START: Final = _LOG_ONE & (2**19 - 1)  # intervals are 2^19 floats long, and begin here
_LOG_INVERSE: Final = [float.fromhex(text) for text in (
    "0x1.661ec79f8f3bep+0", "0x1.571ed4aaf883dp+0", "0x1.49539f0f010bp+0", "0x1.3c995b0b80385p+0",
    "0x1.30d190c8864a5p+0", "0x1.25e227b0b8eap+0", "0x1.1bb4a4a1a343fp+0", "0x1.12358f08ae5bap+0",
    "0x1.0953f419900a7p+0", "0x1p+0", "0x1.e608cfd9a47acp-1", "0x1.ca4b31f026aap-1",
    "0x1.b2036576afce6p-1", "0x1.9c2d163a1aa2dp-1", "0x1.886e6037841edp-1", "0x1.767dcf5534862p-1",
)]  # fmt: skip
_LOG_POLYNOMIAL: Final = [float.fromhex(text) for text in (
    "-0x1.00ea348b88334p-2", "0x1.5575b0be00b6ap-2", "-0x1.ffffef20a4123p-2",
)]  # fmt: skip


def log(x: Array) -> Array:
    """Return the natural logarithm of positive normal numbers, rounded as glibc rounds it."""
    if x.dtype == np.float64:
        return np.array([math.log(one) for one in x.tolist()])
    inverse, log_center = _log_tables()
    interval = (x.view(np.int32) - np.int32(_LOG_START)) >> 19
    r = x.astype(np.float64)
    r *= inverse.take(interval)
    r -= 1
    a3, a2, a1 = _LOG_POLYNOMIAL
    square = r * r
    tail = a2 * r
    tail += a1
    tail += a3 * square
    tail *= square
    r += log_center.take(interval)
    r += tail
    return r.astype(np.float32)


@functools.cache
def _log_tables() -> tuple[Array, Array]:
    """Return the tables of 1/c and log c, with 16 intervals for each exponent of a positive float32."""
    which = np.arange(2**12) - (_LOG_ONE >> 19)
    exponent, row = which >> 4, which & 15
    inverse = np.array(_LOG_INVERSE)
    return np.ldexp(inverse[row], -exponent), exponent * math.log(2) - np.log(inverse)[row]


def rand(seed: int) -> Iterator[int]:
    """Yield what glibc's ``rand`` returns after ``srand(seed)``: additive feedback over 31 words."""
    first = seed % 2**32 or 1
    words = [first - 2**32 if first >= 2**31 else first]
    while len(words) < 31:
        words.append(16807 * words[-1] % (2**31 - 1))
    recent = collections.deque(words, maxlen=31)
    for step in itertools.count(-3):
        word = recent[0] if step < 0 else (recent[0] + recent[28]) % 2**32
        recent.append(word)
        if step >= 310:
            yield word >> 1
