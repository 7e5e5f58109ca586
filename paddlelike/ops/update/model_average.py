"""The sums behind ModelAverage: average_accumulates."""

from __future__ import annotations

from typing import Final

from paddlelike.framework.opdef import Array, Float, Long, register
from paddlelike.ops.update.base import Update

_KEPT: Final = ("sum_1", "sum_2", "sum_3", "num_accumulates", "old_num_accumulates", "num_updates")
_SUMMANDS: Final = 16384  # a sum of more updates loses too many digits in float32


@register
class AverageAccumulates(Update):
    """Adds the parameter to ``sum_1``, and starts a new window when the current one is long enough.

    ``sum_1`` moves into ``sum_2`` every 16384 updates, against rounding. Both move into ``sum_3``
    when they hold ``min(max_average_window, num_updates * average_window)`` parameters, and
    ``min_average_window`` at least. The average is the sum of the three sums over
    ``num_accumulates + old_num_accumulates``.
    """

    type = "average_accumulates"
    inputs = ("param", *(f"in_{name}" for name in _KEPT))
    outputs = tuple(f"out_{name}" for name in _KEPT)
    attrs = {"average_window": Float(0.0), "max_average_window": Long(), "min_average_window": Long(10000)}
    inplace = {f"out_{name}": f"in_{name}" for name in _KEPT}

    @staticmethod
    def forward(
        param: Array,
        sum_1: Array,
        sum_2: Array,
        sum_3: Array,
        accumulated: Array,
        old_accumulated: Array,
        updates: Array,
        *,
        average_window: float,
        max_average_window: int,
        min_average_window: int,
    ) -> tuple[Array, Array, Array, Array, Array, Array]:
        accumulated += 1
        updates += 1
        sum_1 += param
        if updates.item() % _SUMMANDS == 0:
            sum_2 += sum_1
            sum_1.fill(0)
        longest = min(max_average_window, int(updates.item() * average_window))
        if accumulated.item() >= max(min_average_window, longest):
            sum_3[...] = sum_1 + sum_2
            sum_1.fill(0)
            sum_2.fill(0)
            old_accumulated[...] = accumulated
            accumulated.fill(0)
        return sum_1, sum_2, sum_3, accumulated, old_accumulated, updates
