"""Signs of life of the workers of a job."""

from __future__ import annotations

import time
from collections.abc import Sequence

from paddlelike.distributed.collective.jax_runtime import Notes
from paddlelike.distributed.collective.job import Job


class Watch:
    """Signs of life of the other workers, timed by the clock of this process."""

    def __init__(self, notes: Notes, job: Job, lease: float) -> None:
        self._notes, self._job, self._lease = notes, job, lease
        self._seen: dict[int, tuple[str, float]] = {}

    def find_lost(self) -> str | None:
        """Describe the lost workers in words; None if there are none."""
        silent, left = self._look("ends", "left")
        ended = [rank for rank, how in left.items() if how != "after a fault"]
        names = [f"{self._job.name(rank)}, which ended before the others" for rank in ended]
        names += [
            f"{self._job.name(rank)}, which gives no sign of life" for rank in silent if rank not in left
        ]
        return " and ".join(names) or None

    def find_behind(self, entered: int) -> str:
        """Describe the other workers that have not reached exchange ``entered``."""
        entered_by = {rank: int(text.split()[-1]) for rank, (text, _) in self._seen.items()}
        behind = [rank for rank, n in entered_by.items() if n < entered and rank != self._job.rank]
        return " and ".join(f"{self._job.name(one)}, which does not arrive" for one in behind) or "a worker"

    def have_all_left(self, folders: Sequence[str] = ("left",)) -> bool:
        """Return whether every other worker has left or gives no sign of life."""
        silent, left = self._look(*folders)
        return {*silent, *left, self._job.rank} == set(range(self._job.size))

    def _look(self, *folders: str) -> tuple[list[int], dict[int, str]]:
        left: dict[int, str] = {}
        try:
            pulses = self._notes.read("pulse")
            for folder in folders:
                left |= self._notes.read(folder)
        except RuntimeError:
            return [0], {}
        now = time.monotonic()
        for rank in range(self._job.size):
            text = pulses.get(rank, "0 0")
            if rank not in self._seen or self._seen[rank][0] != text:
                self._seen[rank] = text, now
        others = [rank for rank in self._seen if rank != self._job.rank]
        return [rank for rank in others if now - self._seen[rank][1] > self._lease], left  # W2
