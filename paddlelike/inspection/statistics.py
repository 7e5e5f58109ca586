"""Statistics of the elements of a value, computed piece by piece."""

from __future__ import annotations

import base64
import functools
import math
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core.floats import run_quietly
from paddlelike.lazy import dataclass

_PIECE: Final = 1 << 18  # elements: a piece of float64 stays in the cache


@dataclass(frozen=True)
class Statistics:
    """A summary of elements.

    Attributes
    ----------
    count
        The number of all elements; the statistics are of the finite elements alone.
    mean, std
        The standard deviation is the population's, in float64.
    nan, inf
        The number of elements that are not a number, or infinite.
    zeros
        The number of elements that are exactly zero.
    """

    count: int
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    std: float | None = None
    nan: int = 0
    inf: int = 0
    zeros: int = 0

    @property
    def flags(self) -> tuple[str, ...]:
        """The unusual properties: "NaN", "Inf", "all zero"."""
        found = []
        if self.nan:
            found.append("NaN")
        if self.inf:
            found.append("Inf")
        if self.count and self.zeros == self.count:
            found.append("all zero")
        return tuple(found)


def summarize(array: np.ndarray[Any, Any]) -> Statistics:
    """Return the statistics of an array of numbers or booleans.

    >>> summarize(np.float32([1, 3, np.nan])).mean
    2.0
    >>> summarize(np.zeros((2, 2))).flags
    ('all zero',)
    """
    found: Statistics = run_quietly(_summarize, array.reshape(-1))
    return found


def _summarize(flat: np.ndarray[Any, Any]) -> Statistics:
    count = nan = inf = zeros = 0
    minimum, maximum, mean, squares = math.inf, -math.inf, 0.0, 0.0
    for begin in range(0, flat.size, _PIECE):
        values = flat[begin : begin + _PIECE].astype(np.float64)
        here = float(np.add.reduce(values)) / len(values)
        if not math.isfinite(here):
            finite = np.isfinite(values)
            nans = int(np.isnan(values).sum())
            nan, inf = nan + nans, inf + len(values) - int(finite.sum()) - nans
            values = values[finite]
            if not len(values):
                continue
            here = float(np.add.reduce(values)) / len(values)  # still infinite for the largest float64
        zeros += len(values) - int(np.count_nonzero(values))
        minimum = min(minimum, float(np.minimum.reduce(values)))
        maximum = max(maximum, float(np.maximum.reduce(values)))
        # means and sums of squares of two parts are joined without cancellation (Chan, Golub, LeVeque 1979)
        around = float(np.add.reduce(np.square(values - here)))
        delta, total = here - mean, count + len(values)
        squares += around + (delta * delta * count * len(values) / total if count else 0.0)
        mean += delta * len(values) / total
        count = total
    if not count:
        return Statistics(flat.size, nan=nan, inf=inf)
    return Statistics(
        flat.size, minimum, maximum, mean, math.sqrt(max(squares / count, 0.0)), nan, inf, zeros
    )


class Histogram(NamedTuple):
    """The number of finite elements in each of equal bins from ``low`` to ``high``."""

    low: float
    high: float
    counts: tuple[int, ...]


class Sample(NamedTuple):
    """Some elements of an array as a matrix: ``rows`` and ``columns``; further dims are joined into one.

    Attributes
    ----------
    values
        Row by row, base64 of little-endian float32; float64 for an array of float64. Thousands of
        variables would take long to print as numbers.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    values: str


def take_sample(array: np.ndarray[Any, Any], side: int = 24) -> Sample | None:
    """Return at most ``side`` evenly spaced rows and columns of an array, or None if it has no elements.

    >>> found = take_sample(np.float32([[0, 1], [2, 3], [4, 5]]), 2)
    >>> found.rows, found.columns, np.frombuffer(base64.b64decode(found.values), "<f4").tolist()
    ((0, 2), (0, 1), [0.0, 1.0, 4.0, 5.0])
    """
    if not array.size:
        return None
    matrix = array.reshape(array.shape[0] if array.ndim > 1 else 1, -1)
    rows, columns = (_spread(count, min(count, side)) for count in matrix.shape)
    values = matrix if matrix.shape == (len(rows), len(columns)) else matrix[np.ix_(rows, columns)]
    data = values.astype("<f8" if array.dtype == np.float64 else "<f4").tobytes()
    return Sample(rows, columns, base64.b64encode(data).decode())


@functools.lru_cache(256)
def _spread(count: int, chosen: int) -> tuple[int, ...]:
    """Return that many indexes below ``count``, evenly spaced."""
    return tuple(np.linspace(0, count - 1, chosen).round().astype(int).tolist())


def count_bins(array: np.ndarray[Any, Any], statistics: Statistics, bins: int = 40) -> Histogram | None:
    """Return the histogram of an array whose statistics are known, or None if no element is finite.

    Equal elements give one bin; integers in a small range have one bin per value.

    >>> values = np.int64([1, 1, 3])
    >>> count_bins(values, summarize(values))
    Histogram(low=0.5, high=3.5, counts=(2, 0, 1))
    """
    low, high = statistics.minimum, statistics.maximum
    if low is None or high is None or not math.isfinite(high - low):
        return None
    if low == high:
        return Histogram(low, high, (statistics.count - statistics.nan - statistics.inf,))
    if array.dtype.kind in "iub" and high - low < bins:
        bins = round(high - low) + 1
        low, high = low - 0.5, high + 0.5
    flat, counts = array.reshape(-1), np.zeros(bins, np.int64)
    for begin in range(0, flat.size, _PIECE):
        values = flat[begin : begin + _PIECE].astype(np.float64)
        if statistics.nan or statistics.inf:
            values = values[np.isfinite(values)]
        places = ((values - low) * (bins / (high - low))).astype(np.int64)
        counts += np.bincount(np.maximum(np.minimum(places, bins - 1), 0), minlength=bins)
    return Histogram(low, high, tuple(counts.tolist()))
