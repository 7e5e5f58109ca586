"""WeightedAverage: the mean of values that stand for different numbers of samples."""

from __future__ import annotations

import warnings
from numbers import Number
from typing import Any

import numpy as np

__all__ = ["WeightedAverage"]


class WeightedAverage:
    """``sum(value * weight) / sum(weight)``; the older form of :class:`fluid.metrics.Accuracy`.

    >>> with warnings.catch_warnings(action="ignore"):
    ...     average = WeightedAverage()
    >>> average.add(value=2.0, weight=1)
    >>> average.add(value=4.0, weight=3)
    >>> average.eval()
    3.5
    """

    def __init__(self) -> None:
        warnings.warn("WeightedAverage is the older way; use fluid.metrics.Accuracy", stacklevel=2)
        self.reset()

    def reset(self) -> None:
        """Forget all values."""
        self.numerator: Any = None
        self.denominator: Any = None

    def add(self, value: Any, weight: Any) -> None:
        """Take a value, a number or an array, that stands for ``weight`` samples."""
        for argument, given in (("value", value), ("weight", weight)):
            if not isinstance(given, Number | np.ndarray):
                raise ValueError(f"WeightedAverage: {argument} is a number or a numpy array, not {given!r}")
        if self.numerator is None:
            self.numerator, self.denominator = value * weight, weight
        else:
            self.numerator = self.numerator + value * weight
            self.denominator = self.denominator + weight

    def eval(self) -> Any:
        """The mean. Raises ValueError when nothing was added."""
        if self.numerator is None or np.all(np.asarray(self.denominator) == 0):
            raise ValueError("WeightedAverage: nothing was added yet")
        return self.numerator / self.denominator
