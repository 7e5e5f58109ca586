"""Blind mutations: bits, cuts, insertions, repeated ranges, numbers set to extremes, splices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

__all__ = ["EXTREMES", "LARGEST", "mutate", "varint"]

LARGEST: Final = 1 << 16  # what an input may grow to

EXTREMES: Final = tuple(
    sorted(
        {0, 1, 2, 3, 8, 32, 33, 64, 100, 1000, 2**64 - 1}
        | {2**bits + by for bits in (7, 8, 15, 16, 24, 31, 32, 40, 48, 60, 61, 62, 63) for by in (-1, 0, 1)}
    )
)
_BYTES: Final = (0, 1, 2, 0x0A, 0x20, 0x2E, 0x2F, 0x7F, 0x80, 0xFE, 0xFF)

Mutation = Callable[[Random, bytes], bytes]


def mutate(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """``data`` with one to four changes; a splice takes its end from one of ``others``."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        if others and rng.random() < 0.08:
            data = _splice(rng, data, rng.choice(others))
        else:
            data = rng.choice(_MUTATIONS)(rng, data)
    return data[:LARGEST]


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    value %= 2**64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _place(rng: Random, data: bytes) -> int:
    """A place; the front, where the headers are, as often as all the rest."""
    if rng.random() < 0.5:
        return rng.randrange(min(len(data), 48) + 1)
    return rng.randrange(len(data) + 1)


def _range(rng: Random, data: bytes) -> tuple[int, int]:
    start = _place(rng, data)
    return start, min(len(data), start + rng.choice((1, 2, 4, 8, 16, 64, 256, 4096)))


def _bits(rng: Random, data: bytes) -> bytes:
    out = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 2, 8))):
        out[min(_place(rng, data), len(out) - 1)] ^= 1 << rng.randrange(8)
    return bytes(out)


def _byte(rng: Random, data: bytes) -> bytes:
    at = _place(rng, data)
    return data[:at] + bytes([rng.choice(_BYTES)]) + data[at + 1 :]


def _cut_end(rng: Random, data: bytes) -> bytes:
    return data[: _place(rng, data)]


def _cut_front(rng: Random, data: bytes) -> bytes:
    return data[_place(rng, data) :]


def _cut_out(rng: Random, data: bytes) -> bytes:
    start, stop = _range(rng, data)
    return data[:start] + data[stop:]


def _insert(rng: Random, data: bytes) -> bytes:
    at = _place(rng, data)
    size = rng.choice((1, 2, 4, 8, 32, 200))
    new = rng.randbytes(size) if rng.random() < 0.6 else bytes([rng.choice(_BYTES)]) * size
    return data[:at] + new + data[at:]


def _repeat(rng: Random, data: bytes) -> bytes:
    start, stop = _range(rng, data)
    return data[:start] + data[start:stop] * rng.choice((2, 2, 3, 10, 300)) + data[stop:]


def _move(rng: Random, data: bytes) -> bytes:
    start, stop = _range(rng, data)
    rest = data[:start] + data[stop:]
    at = _place(rng, rest)
    return rest[:at] + data[start:stop] + rest[at:]


def _number(rng: Random, data: bytes) -> bytes:
    """A little-endian field of 4 or 8 bytes."""
    size = rng.choice((4, 8, 8))
    at = _place(rng, data) if rng.random() < 0.4 else _place(rng, data) // 4 * 4
    value = rng.choice((rng.choice(EXTREMES), len(data), len(data) + 1, len(data) // 8, rng.getrandbits(20)))
    return data[:at] + (value % 2 ** (8 * size)).to_bytes(size, "little") + data[at + size :]


def _varint(rng: Random, data: bytes) -> bytes:
    """The varint at a place becomes another one, of another length maybe."""
    at = _place(rng, data)
    end = at
    while end < len(data) and data[end] > 0x7F and end < at + 9:
        end += 1
    value = rng.choice((rng.choice(EXTREMES), rng.choice(EXTREMES), len(data), rng.getrandbits(14)))
    return data[:at] + varint(value) + data[end + 1 :]


def _splice(rng: Random, data: bytes, other: bytes) -> bytes:
    return data[: _place(rng, data)] + other[_place(rng, other) :]


_MUTATIONS: Final[tuple[Mutation, ...]] = (
    _bits, _bits, _byte, _cut_end, _cut_front, _cut_out, _insert, _repeat, _move, _number, _number,
    _varint, _varint,
)  # fmt: skip
