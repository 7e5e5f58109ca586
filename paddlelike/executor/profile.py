"""Where the time of runs goes, by operator."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["ORDERS", "Profile", "start", "stop"]

ORDERS: Final = ("default", "calls", "total", "max", "min", "ave")


class Profile:
    """Times of operators, collected while it is the current one."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}

    @contextmanager
    def event(self, name: str) -> Iterator[None]:
        """Time one operator."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.times.setdefault(name, []).append(time.perf_counter() - begin)

    def table(self, sorted_key: str = "default") -> str:
        """The times as text: one line per operator type, milliseconds."""
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
    """Begin to collect."""
    global current
    current = Profile()


def stop() -> Profile:
    """End collecting; returns what was collected."""
    global current
    done, current = current, None
    return Profile() if done is None else done
