"""The order in which C++'s unstable sorts leave elements with equal keys.

``std::sort``, ``std::partial_sort`` and ``std::nth_element`` do not keep equal elements in order, but their
order is reproducible. libstdc++'s ``sort`` is introsort (Musser, Introspective sorting and selection
algorithms, 1997) with the median of three and a last pass of insertion. ``partial_sort`` uses a heap.
``nth_element`` is introsort in the part that holds the wanted element. Paddle keeps the first k of such an
order, so it decides which of several boxes with equal scores are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from paddlelike.framework.opdef import Array

_SMALL: Final = 16  # ranges up to this size are left to the last pass
_LEAST: Final = 3  # of a selection
_FEW: Final = 64  # Paddle 2 sorts partially when there are more than so many times the wanted numbers


def argsort_descending(keys: Array) -> Array:
    """Return the indices that sort ``keys`` from high to low; equal ones keep their order."""
    return np.argsort(-keys if keys.dtype.kind == "f" else ~keys, kind="stable")


def argsort_unstable(keys: Array, *, first: int | None = None) -> Array:
    """Return the indexes that sort ``keys`` from high to low, with equal keys in the order that C++ gives.

    With ``first``, return only that many, in the order of ``std::partial_sort``; else all, as ``std::sort``
    does.
    """
    order = argsort_descending(keys)
    count = len(keys) if first is None else min(first, len(keys))
    ranked = keys[order[: count + 1]]  # one more: an equal key after the last may come before it
    if (ranked[1:] < ranked[:-1]).all() and not (len(order) and np.isnan(keys[order[-1]])):
        return order[:count]
    return _argsort_as_cpp(keys, first)


def _argsort_as_cpp(keys: Array, first: int | None) -> Array:
    # A heap and the last pass stay within their range for any comparisons, so NaN has a definite place.
    sorter = _Sorter(keys, keeps_nan=first is not None or len(keys) <= _SMALL)
    if first is None:
        sorter.sort()
        return np.array(sorter.order, np.intp)
    count = min(first, len(keys))
    sorter.select(0, count, len(keys))
    return np.array(sorter.order[:count], np.intp)


def select_top(x: Array, places: Array) -> Array:
    """Return the indices of the largest numbers of the last dim, in the order of ``std::partial_sort``.

    ``places`` are the indices that a stable sort gives, with NaN above all numbers.
    """
    k = places.shape[-1]
    top = np.take_along_axis(x, places, -1)
    last = top[..., -1:]
    is_odd = np.isnan(top[..., 0])
    if k > 1:
        is_odd |= (top[..., 1:] == top[..., :-1]).any(-1) | ((x == last).sum(-1) > (top == last).sum(-1))
    return _replace_rows(x, places, is_odd, lambda row: _argsort_as_cpp(row, k))


def argsort_rows(x: Array, places: Array, *, falling: bool) -> Array:
    """Return the indices that sort the last dim, with the order of ``std::sort`` for equal numbers and NaN.

    ``places`` are the indices that a stable sort gives.
    """
    ranked = np.take_along_axis(x, places, -1)
    if x.shape[-1] <= _SMALL:
        is_odd = np.isnan(ranked).any(-1)  # C++ sorts few numbers by insertion, which keeps the order
    else:
        is_odd = (ranked[..., 1:] == ranked[..., :-1]).any(-1) & ~np.isnan(ranked).any(-1)

    def sort(row: Array) -> Array:
        return _argsort_as_cpp(row if falling else -row if row.dtype.kind == "f" else ~row, None)

    return _replace_rows(x, places, is_odd, sort)


def select_top_later(x: Array, places: Array, *, largest: bool) -> Array:
    """Return the result of :func:`select_top` in the order of Paddle 2, which uses ``std::nth_element``."""
    k, size = places.shape[-1], x.shape[-1]
    top = np.take_along_axis(x, places, -1)
    last = top[..., -1:]
    same = (x == last) | (np.isnan(x) & np.isnan(last))
    is_odd = (top[..., 1:] == top[..., :-1]).any(-1) | (np.isnan(top).sum(-1) > 1)
    is_odd |= same.sum(-1) > np.take_along_axis(same, places, -1).sum(-1)

    def select(row: Array) -> Array:
        ranks = np.unique(row, return_inverse=True)[1]  # all NaN are one, and above all others
        sorter = _Sorter(ranks if largest else ~ranks)
        if k * _FEW < size:
            sorter.select(0, k, size)
        else:
            sorter.select_nth(k - 1)
            sorter.sort(k - 1)
        return np.array(sorter.order[:k], np.intp)

    return _replace_rows(x, places, is_odd, select)


def _replace_rows(x: Array, places: Array, is_odd: Array, sort: Callable[[Array], Array]) -> Array:
    """Return indexes in which a function replaces the rows with ties or NaN."""
    if is_odd.any():
        rows, found = x.reshape(-1, x.shape[-1]), places.reshape(-1, places.shape[-1]).copy()
        for index in np.flatnonzero(is_odd.reshape(-1)):
            found[index] = sort(rows[index])
        return found.reshape(places.shape)
    return places


def argselect_unstable(keys: Array, count: int) -> Array:
    """Return the indexes of the ``count`` highest keys, unsorted, in the order of ``std::nth_element``."""
    sorter = _Sorter(keys)
    if 0 < count < len(keys):
        sorter.select_nth(count)
    return np.array(sorter.order[:count], np.intp)


class _Sorter:
    """Indices that are sorted by their keys, from high to low. Ranges are half open."""

    def __init__(self, keys: Array, *, keeps_nan: bool = False) -> None:
        # NaN: undefined in C++ where a range is partitioned, last here
        self._array = keys if keeps_nan else np.where(np.isnan(keys), -np.inf, keys)
        self.keys = self._array.tolist()
        self.order = list(range(len(keys)))

    def sort(self, size: int | None = None) -> None:
        """Sort the first ``size`` indices, or all."""
        size = len(self.order) if size is None else size
        if size:
            self._partition(0, size, 2 * (size.bit_length() - 1))
            self._insert(0, size)

    def select_nth(self, nth: int) -> None:
        """Put the element ``nth`` of the sorted order into its position, with no lower element before it."""
        low, high = 0, len(self.order)
        depth = 2 * (high.bit_length() - 1)
        while high - low > _LEAST:
            if depth == 0:
                self._make_heap(low, nth + 1, high)
                self.order[low], self.order[nth] = self.order[nth], self.order[low]
                return
            depth -= 1
            cut = self._split(low, high)
            low, high = (cut, high) if cut <= nth else (low, cut)
        self._insert(low, high)

    def select(self, low: int, middle: int, high: int) -> None:
        """Sort the elements that belong into [low, middle), by a heap whose root is the last of them."""
        self._make_heap(low, middle, high)
        order = self.order
        for last in range(middle - 1, low, -1):
            value, order[last] = order[last], order[low]
            self._sift(low, 0, last - low, value)

    def _make_heap(self, low: int, middle: int, high: int) -> None:
        """Build a heap of the elements that belong into [low, middle)."""
        order, keys = self.order, self.keys
        size = middle - low
        for parent in range((size - 2) // 2, -1, -1):
            self._sift(low, parent, size, order[low + parent])
        if not size or middle == high:
            return
        # The root only rises, so an element that is not higher now will not be later; but the root may be NaN
        # at first.
        root = keys[order[low]]
        above: Sequence[int] = range(middle, high)
        if root == root:
            above = (np.flatnonzero(self._array[np.array(order[middle:high])] > root) + middle).tolist()
        for i in above:
            if keys[order[i]] > keys[order[low]]:
                value, order[i] = order[i], order[low]
                self._sift(low, 0, size, value)

    def _sift(self, low: int, hole: int, size: int, value: int) -> None:
        """Insert ``value`` into the heap at ``hole``: the hole sinks to a leaf, then the value rises."""
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
        while high - low > _SMALL:
            if depth == 0:
                self.select(low, high, high)
                return
            depth -= 1
            cut = self._split(low, high)
            self._partition(cut, high, depth)
            high = cut

    def _split(self, low: int, high: int) -> int:
        """Move the elements above a median of three to the front; return the index of the first other one.

        C++ looks from the left for an element that is not higher and from the right for one that is not
        lower, swaps them, and goes on until the two meet.
        """
        order = self.order
        chosen = self._find_median(low + 1, low + (high - low) // 2, high - 1)
        order[low], order[chosen] = order[chosen], order[low]
        part = np.array(order[low:high])
        ranked = self._array[part]
        left, right = np.flatnonzero(ranked[1:] <= ranked[0]) + 1, np.flatnonzero(ranked >= ranked[0])[::-1]
        both = min(len(left), len(right))
        swaps = int(np.count_nonzero(left[:both] < right[:both]))
        part[left[:swaps]], part[right[:swaps]] = part[right[:swaps]], part[left[:swaps]]
        order[low:high] = part.tolist()
        stops = [*left[swaps : swaps + 1].tolist(), *right[max(swaps - 1, 0) : swaps].tolist()]
        return low + min(stops)

    def _find_median(self, a: int, b: int, c: int) -> int:
        x, y, z = (self.keys[self.order[i]] for i in (a, b, c))
        if x > y:
            return b if y > z else c if x > z else a
        return a if x > z else c if y > z else b

    def _insert(self, low: int, high: int) -> None:
        order, keys = self.order, self.keys
        for i in range(low + 1, high):
            value = order[i]
            key, place = keys[value], i
            if key > keys[order[low]]:
                order[low + 1 : i + 1] = order[low:i]  # NaN stops the other loops
                order[low] = value
                continue
            while place > low and key > keys[order[place - 1]]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = value
