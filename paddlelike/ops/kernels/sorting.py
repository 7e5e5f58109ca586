"""The order in which C++'s unstable sorts leave equal keys.

``std::sort`` and ``std::partial_sort`` do not keep equal elements in order, yet what they do is definite:
libstdc++ sorts by introspection (Musser, Introspective sorting and selection algorithms, 1997) with the
median of three and a last pass of insertion, and partially by a heap. Paddle keeps the first k of such
an order, so that equal scores decide which boxes are kept. Without equal keys every sort gives the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from paddlelike.framework.opdef import Array

__all__ = ["argsort_descending", "argsort_unstable"]

_SMALL: Final = 16  # ranges up to this size are left to the last pass


def argsort_descending(keys: Array) -> Array:
    """Return the indices that sort ``keys`` from high to low; equal ones keep their order."""
    return np.argsort(-keys, kind="stable")


def argsort_unstable(keys: Array, *, first: int | None = None) -> Array:
    """Return the indices that sort ``keys`` from high to low, equal ones as C++ leaves them.

    ``first``: as ``std::partial_sort`` does for that many, which alone are returned; None: ``std::sort``.
    """
    order = argsort_descending(keys)
    count = len(keys) if first is None else min(first, len(keys))
    ranked = keys[order[: count + 1]]  # one more: an equal key after the last may come before it
    if not (ranked[1:] == ranked[:-1]).any():
        return order[:count]
    sorter = _Sorter(np.where(np.isnan(keys), -np.inf, keys).tolist())  # NaN: undefined in C++, last here
    if first is None:
        sorter.sort()
    else:
        sorter.select(0, count, len(keys))
    return np.array(sorter.order[:count], np.intp)


class _Sorter:
    """Indices that are sorted by their keys, from high to low. Ranges are half open."""

    def __init__(self, keys: Sequence[Any]) -> None:
        self.keys = keys
        self.order = list(range(len(keys)))

    def sort(self) -> None:
        size = len(self.order)
        if size:
            self._partition(0, size, 2 * (size.bit_length() - 1))
            self._insert_all(size)

    def select(self, low: int, middle: int, high: int) -> None:
        """Sort what belongs into [low, middle), by a heap whose root is the last of them."""
        order, keys = self.order, self.keys
        size = middle - low
        for parent in range((size - 2) // 2, -1, -1):
            self._sift(low, parent, size, order[low + parent])
        for i in range(middle, high):
            if size and keys[order[i]] > keys[order[low]]:
                value, order[i] = order[i], order[low]
                self._sift(low, 0, size, value)
        for last in range(middle - 1, low, -1):
            value, order[last] = order[last], order[low]
            self._sift(low, 0, last - low, value)

    def _sift(self, low: int, hole: int, size: int, value: int) -> None:
        """Put ``value`` into the heap at ``hole``: the hole sinks to a leaf, then the value rises."""
        order, keys = self.order, self.keys
        top = child = hole
        while child < (size - 1) // 2:
            child = 2 * (child + 1)
            if keys[order[low + child]] > keys[order[low + child - 1]]:
                child -= 1
            order[low + hole] = order[low + child]
            hole = child
        if size % 2 == 0 and child == (size - 2) // 2:
            child = 2 * child + 1
            order[low + hole] = order[low + child]
            hole = child
        parent = (hole - 1) // 2
        while hole > top and keys[order[low + parent]] > keys[value]:
            order[low + hole] = order[low + parent]
            hole, parent = parent, (parent - 1) // 2
        order[low + hole] = value

    def _partition(self, low: int, high: int, depth: int) -> None:
        order, keys = self.order, self.keys
        while high - low > _SMALL:
            if depth == 0:
                self.select(low, high, high)
                return
            depth -= 1
            chosen = self._find_median(low + 1, low + (high - low) // 2, high - 1)
            order[low], order[chosen] = order[chosen], order[low]
            pivot, left, right = keys[order[low]], low + 1, high
            while True:
                while keys[order[left]] > pivot:
                    left += 1
                right -= 1
                while pivot > keys[order[right]]:
                    right -= 1
                if left >= right:
                    break
                order[left], order[right] = order[right], order[left]
                left += 1
            self._partition(left, high, depth)
            high = left

    def _find_median(self, a: int, b: int, c: int) -> int:
        x, y, z = (self.keys[self.order[i]] for i in (a, b, c))
        if x > y:
            return b if y > z else c if x > z else a
        return a if x > z else c if y > z else b

    def _insert_all(self, size: int) -> None:
        order, keys = self.order, self.keys
        for i in range(1, size):
            value = order[i]
            key, place = keys[value], i
            while place and key > keys[order[place - 1]]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = value
