"""The signs of life of the trainers of one server."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from paddlelike.foundation.locks import Lock


class Presence:
    """The signs of life of the trainers of one server.

    Parameters
    ----------
    trainers
        The number of trainers.
    lease
        Seconds without a sign of life after which a trainer counts as silent.
    clock
        Returns seconds.

    >>> seconds = iter([0.0, 5.0, 40.0, 41.0])
    >>> presence = Presence(2, lease=30.0, clock=lambda: next(seconds))
    >>> presence.hear(1)
    >>> presence.silent([0, 1])
    [0, 1]
    >>> presence.describe([0, 1])
    'trainer 0 (never heard of), trainer 1 (last heard of 36 s ago)'
    """

    def __init__(self, trainers: int, *, lease: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._trainers = trainers
        self._lease = lease
        self._clock = clock
        self._begun = clock()
        self._heard: dict[int, float] = {}
        self._lock = Lock()

    def hear(self, trainer: int) -> None:
        """Record a sign of life of a trainer (an id)."""
        with self._lock.hold():
            self._heard[trainer] = self._clock()

    def silent(self, trainers: Collection[int]) -> list[int]:
        """Return the ids in ``trainers`` that have been silent for longer than the lease."""
        with self._lock.hold():
            now = self._clock()
            return [one for one in trainers if now - self._heard.get(one, self._begun) > self._lease]

    def seconds_alone(self, trainers: Collection[int]) -> float:
        """Return for how long none of ``trainers`` gave a sign of life; 0 if none has ever been heard of."""
        with self._lock.hold():
            heard = [self._heard[one] for one in trainers if one in self._heard]
            return self._clock() - max(heard) if heard else 0.0

    def describe(self, trainers: Collection[int]) -> str:
        """Return in words when each of ``trainers`` was last heard of."""
        with self._lock.hold():
            now = self._clock()
            ages = {one: now - self._heard[one] for one in trainers if one in self._heard}
        heard = {one: f"last heard of {age:.0f} s ago" for one, age in ages.items()}
        return ", ".join(f"trainer {one} ({heard.get(one, 'never heard of')})" for one in trainers)
