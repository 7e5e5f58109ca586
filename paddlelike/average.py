"""WeightedAverage: the weighted mean of values."""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING

import numpy as np

from paddlelike.foundation.warn import warn_user

if TYPE_CHECKING:
    from paddlelike.core.typing import Numbers

__all__ = ["WeightedAverage"]


class WeightedAverage:
    """The mean ``sum(value * weight) / sum(weight)``. Newer scripts use :class:`fluid.metrics.Accuracy`.

    See Also
    --------
    fluid.metrics.Accuracy

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     average = WeightedAverage()
    >>> average.add(value=2.0, weight=1)
    >>> average.add(value=4.0, weight=3)
    >>> average.eval()
    3.5
    """

    def __init__(self) -> None:
        warn_user("WeightedAverage is the older way; use fluid.metrics.Accuracy")
        self.reset()

    def reset(self) -> None:
        """Drop all values."""
        self.numerator: Numbers | None = None
        self.denominator: Numbers | None = None

    def add(self, value: Numbers, weight: Numbers) -> None:
        """Add a number or an array with a weight. Raises ValueError for anything else."""
        for argument, given in (("value", value), ("weight", weight)):
            if not isinstance(given, Number | np.ndarray):
                raise ValueError(
                    f"WeightedAverage: {argument} must be a number or a numpy array, got {given!r}"
                )
        if self.numerator is None or self.denominator is None:
            self.numerator, self.denominator = value * weight, weight
        else:
            self.numerator = self.numerator + value * weight
            self.denominator = self.denominator + weight

    def eval(self) -> Numbers:
        """Return the mean. Raises ValueError before the first value."""
        if self.numerator is None or self.denominator is None or np.all(np.asarray(self.denominator) == 0):
            raise ValueError("WeightedAverage: there are no values yet; call add first")
        return self.numerator / self.denominator
