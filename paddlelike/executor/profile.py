"""Time spent by operator types during runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["ORDERS", "Profile", "start", "stop"]

ORDERS: Final = ("default", "calls", "total", "max", "min", "ave")


class Profile:
    """The times of operators that ran between :func:`start` and :func:`stop`."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Measure the time of one operator of type ``name``."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.times.setdefault(name, []).append(time.perf_counter() - begin)

    def format_table(self, sorted_key: str = "default") -> str:
        """Return the times as text: one line per operator type, in milliseconds.

        Raises KeyError for a ``sorted_key`` that is not in ORDERS.
        """
        whole = sum(sum(times) for times in self.times.values()) or 1.0
        rows = [
            (name, len(t), sum(t), min(t), max(t), sum(t) / len(t), sum(t) / whole)
            for name, t in self.times.items()
        ]
        if sorted_key != "default":
            column = {"calls": 1, "total": 2, "min": 3, "max": 4, "ave": 5}[sorted_key]
            rows.sort(key=lambda row: row[column], reverse=True)
        columns = "".join(f" {name:>10s}" for name in ("total", "min", "max", "ave"))
        head = f"{'operator':32s} {'calls':>8s}{columns} {'ratio':>7s}"
        lines = [
            f"{name:32s} {calls:8d} {total * 1e3:10.3f} {low * 1e3:10.4f} {high * 1e3:10.4f} "
            f"{mean * 1e3:10.4f} {ratio:7.1%}"
            for name, calls, total, low, high, mean, ratio in rows
        ]
        return "\n".join(["time in ms", head, *lines])


current: Profile | None = None  # the profile that runs report to


def start() -> None:
    """Start collecting times."""
    global current
    current = Profile()


def stop() -> Profile:
    """Stop collecting times. Return the profile, an empty one without a :func:`start`."""
    global current
    finished, current = current, None
    return Profile() if finished is None else finished
