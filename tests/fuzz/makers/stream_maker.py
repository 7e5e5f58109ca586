"""Hostile tensor streams: levels, dims and counts that no writer writes."""

from __future__ import annotations

from random import Random

from tests.fuzz.makers.mutations import EXTREMES, LARGEST, varint

__all__ = ["combined", "dense", "rows"]


def dense(rng: Random) -> bytes:
    """A stream of a dense tensor."""
    levels = rng.choice((0, 0, 1, 2, 3, 50, rng.choice(EXTREMES)))
    out = _number(rng, 0, 4) + _number(rng, levels, 8)
    for _ in range(min(levels, 50)):
        count = rng.choice((0, 1, 2, 3, 9, 1000))
        offsets = [rng.randrange(4) for _ in range(count)]
        if rng.random() < 0.8:
            offsets = [0, *sorted(offsets)][:count]
        out += _number(rng, 8 * count, 8) + b"".join(n.to_bytes(8, "little") for n in offsets)
    return (out + _part(rng))[:LARGEST]


def rows(rng: Random) -> bytes:
    """A stream of SelectedRows."""
    count = rng.choice((0, 1, 3, 1000, rng.choice(EXTREMES)))
    out = _number(rng, 0, 4) + _number(rng, count, 8) + rng.randbytes(8 * min(count, 1000))
    return (out + _number(rng, rng.choice((1000, *EXTREMES)), 8) + _part(rng))[:LARGEST]


def combined(rng: Random) -> bytes:
    """Many small tensors, one after the other."""
    one = dense(rng) if rng.random() < 0.4 else bytes(16) + b"\4\0\0\0\x08\0\x10\1\1"
    return (one * rng.choice((1, 2, 30, 2000)) + dense(rng))[:LARGEST]


def _part(rng: Random) -> bytes:
    """Version, description, elements."""
    dims = [
        rng.choice((0, 1, 2, 3, rng.choice(EXTREMES))) for _ in range(rng.choice((0, 1, 2, 3, 31, 32, 40)))
    ]
    kind = rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 19, 20, 21, 22, 23, 24, 99, rng.choice(EXTREMES)))
    form = rng.randrange(4)
    if form == 0:  # packed
        packed = b"".join(map(varint, dims))
        desc = b"\x08" + varint(kind) + b"\x12" + varint(len(packed)) + packed
    else:
        desc = b"\x08" + varint(kind) + b"".join(b"\x10" + varint(dim) for dim in dims)
    if form == 1:
        desc += rng.randbytes(rng.randrange(9))
    room = 1
    for dim in dims:
        room = min(room * dim * 4, 5000)
    return _number(rng, 0, 4) + _number(rng, len(desc), 4) + desc + bytes(max(room + rng.randrange(-1, 2), 0))


def _number(rng: Random, value: int, size: int) -> bytes:
    if rng.random() < 0.06:
        value = rng.choice(EXTREMES)
    return (value % 256**size).to_bytes(size, "little")
