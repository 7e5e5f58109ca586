"""The order in which Fluid 1.8 writes variables and attributes: the order of a GNU C++ hash table.

Fluid keeps the variables of a block, and the attributes of an operator, in a ``std::unordered_map``. Its
order depends on the names and on the order of insertion. The elements of one bucket are neighbours, the
latest first; the bucket with the latest first use comes first. The hash is MurmurHash64A (Austin Appleby,
public domain).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

#: In Fluid every operator has the first attribute, after the second; here only operators read from a file do.
_CALLSTACK: Final = "op_callstack"
_BEFORE_CALLSTACK: Final = "op_namescope"
_MASK: Final = (1 << 64) - 1
_FACTOR: Final = 0xC6A4A7935BD1E995
_SEED: Final = 0xC70F6907
#: The successive numbers of buckets of a table: the library's primes, each about twice the one before.
_SIZES: Final = (
    11, 23, 47, 97, 199, 409, 823, 1741, 3739, 7517, 15173, 30727, 62233, 126271, 256279, 520241, 1056323,
)  # fmt: skip


def order_as_hashed(names: Iterable[str], tables: int = 1) -> list[str]:
    """Return names in the order in which a hash table yields them after inserting them in turn.

    ``tables`` is the number of tables, each filled in the order of the previous one.

    >>> order_as_hashed(["fc_0.w_0", "fc_0.b_0", "learning_rate_0"])
    ['learning_rate_0', 'fc_0.b_0', 'fc_0.w_0']
    """
    if tables > 1:
        names = order_as_hashed(names, tables - 1)
    hashes = {name: _hash(name.encode("utf-8", "surrogatepass")) for name in names}
    table = _Table(_SIZES[0])
    for count, name in enumerate(hashes, 1):
        if count >= table.size:
            larger = _Table(next(size for size in _SIZES if size >= 2 * table.size or size == _SIZES[-1]))
            for old in table.names():
                larger.put(old, hashes[old])
            table = larger
        table.put(name, hashes[name])
    return table.names()


@lru_cache(maxsize=4096)
def order_attributes(names: tuple[str, ...], passes: int, blocks: frozenset[str]) -> tuple[str, ...]:
    """Return the attributes of an operator in the order in which Fluid writes them.

    ``names`` are in the order of insertion into the first hash table. ``passes`` is the number of tables:
    each time a program is read from a message, its attributes are inserted into a new table, with attributes
    that name blocks last.
    """
    order = list(names)
    if _CALLSTACK not in order and _BEFORE_CALLSTACK in order:
        order.insert(order.index(_BEFORE_CALLSTACK) + 1, _CALLSTACK)
    for count in range(passes):
        if count and blocks:
            order.sort(key=blocks.__contains__)  # stable
        order = order_as_hashed(order)
    return tuple(name for name in order if name in names)


class _Table:
    """A hash table: buckets of names. The buckets and the lists in them are in reverse order."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._buckets: dict[int, list[str]] = {}

    def put(self, name: str, hashed: int) -> None:
        self._buckets.setdefault(hashed % self.size, []).append(name)

    def names(self) -> list[str]:
        return [name for bucket in reversed(self._buckets.values()) for name in reversed(bucket)]


@lru_cache(maxsize=1 << 16)
def _hash(data: bytes) -> int:
    """Return the hash of a string as GNU's C++ library computes it."""
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
