"""hash: ids converted to numbers below a bound, by xxHash (XXH64).

The algorithm is specified in https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Bool, Int, Long, OpDef, Spec, register

_PRIMES: Final = [
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
]


@register
class Hash(OpDef):
    """``Out[i, k, 0]``: XXH64, with seed k, of the bytes of row i of X, modulo ``mod_by``."""

    type = "hash"
    by_row = True
    attrs = {
        "num_hash": Int(1),
        "mod_by": Long(100000),
        "@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@": Bool(True),
    }
    lod = "X"

    @staticmethod
    def infer(x: Spec, *, num_hash: int) -> Spec:
        if len(x.shape) != 2:
            raise ShapeError(f"hash: X is {list(x.shape)}, expected (T, ids)")
        return Spec((x.shape[0], num_hash, 1), x.dtype)

    @staticmethod
    def forward(x: Array, *, num_hash: int, mod_by: int) -> Array:
        words = np.ascontiguousarray(x).view(np.uint32)
        hashes = np.array([_xxh64(words, seed) for seed in range(num_hash)], np.uint64)
        hashes = hashes.reshape(num_hash, len(x)).T
        return (hashes % np.uint64(mod_by % 2**64)).astype(x.dtype)[:, :, None]


def _xxh64(words: Array, seed: int) -> Array:
    """Return the XXH64 of every row of 32-bit words."""
    p1, p2, p3, p4, p5 = _PRIMES
    words = words.astype(np.uint64)
    count = words.shape[1]
    pairs = words[:, : count // 2 * 2 : 2] | words[:, 1::2] << np.uint64(32)
    stripes = pairs.shape[1] // 4 if count >= 8 else 0
    start = np.full(len(words), seed, np.uint64)
    if stripes:
        lanes = [start + p1 + p2, start + p2, start, start - p1]
        for i in range(stripes):
            lanes = [_round(lane, pairs[:, 4 * i + k]) for k, lane in enumerate(lanes)]
        turned = [_rotate_left(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)]
        out = turned[0] + turned[1] + turned[2] + turned[3]
        for lane in lanes:
            out = (out ^ _round(np.zeros_like(lane), lane)) * p1 + p4
    else:
        out = start + p5
    out = out + np.uint64(4 * count)
    for i in range(4 * stripes, pairs.shape[1]):
        out = _rotate_left(out ^ _round(np.zeros_like(out), pairs[:, i]), 27) * p1 + p4
    if count % 2:
        out = _rotate_left(out ^ (words[:, -1] * p1), 23) * p2 + p3
    out = (out ^ (out >> np.uint64(33))) * p2
    out = (out ^ (out >> np.uint64(29))) * p3
    return out ^ (out >> np.uint64(32))


def _round(lane: Array, word: Array) -> Array:
    return _rotate_left(lane + word * _PRIMES[1], 31) * _PRIMES[0]


def _rotate_left(x: Array, bits: int) -> Array:
    """Return words rotated left by that many bits."""
    return x << np.uint64(bits) | x >> np.uint64(64 - bits)
