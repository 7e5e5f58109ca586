"""The order in which Fluid 1.8 writes the variables of a block: that of a hash table of the GNU C++ library.

Fluid keeps variables in a ``std::unordered_map``. Its order follows from the names and from the order in
which they were put in: elements of one bucket stand together, the latest first, and so do the buckets, by
their first use. The hash is MurmurHash64A (Austin Appleby, public domain).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["order_as_hashed"]

_MASK: Final = (1 << 64) - 1
_FACTOR: Final = 0xC6A4A7935BD1E995
_SEED: Final = 0xC70F6907
#: How many buckets a table has, one after the other: primes of the library, each about twice the last.
_SIZES: Final = (
    11, 23, 47, 97, 199, 409, 823, 1741, 3739, 7517, 15173, 30727, 62233, 126271, 256279, 520241, 1056323,
)  # fmt: skip


def order_as_hashed(names: Iterable[str]) -> list[str]:
    """Return names in the order of a table into which they were put one after the other.

    >>> order_as_hashed(["fc_0.w_0", "fc_0.b_0", "learning_rate_0"])
    ['learning_rate_0', 'fc_0.b_0', 'fc_0.w_0']
    """
    hashes = {name: _hash(name.encode()) for name in names}
    table = _Table(_SIZES[0])
    for count, name in enumerate(hashes, 1):
        if count >= table.size:
            larger = _Table(next(size for size in _SIZES if size >= 2 * table.size or size == _SIZES[-1]))
            for old in table.names():
                larger.put(old, hashes[old])
            table = larger
        table.put(name, hashes[name])
    return table.names()


class _Table:
    """Buckets of names; both are lists whose last element comes first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._buckets: dict[int, list[str]] = {}  # in the order of their first use

    def put(self, name: str, hashed: int) -> None:
        self._buckets.setdefault(hashed % self.size, []).append(name)

    def names(self) -> list[str]:
        return [name for bucket in reversed(self._buckets.values()) for name in reversed(bucket)]


def _hash(data: bytes) -> int:
    """Return the hash of a string as the library computes it."""
    whole = len(data) & ~7
    value = _SEED ^ (len(data) * _FACTOR & _MASK)
    for start in range(0, whole, 8):
        word = _fold(int.from_bytes(data[start : start + 8], "little") * _FACTOR & _MASK)
        value = (value ^ (word * _FACTOR & _MASK)) * _FACTOR & _MASK
    if len(data) != whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    return _fold(_fold(value) * _FACTOR & _MASK)


def _fold(value: int) -> int:
    return value ^ (value >> 47)
