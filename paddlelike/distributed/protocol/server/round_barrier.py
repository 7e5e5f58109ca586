"""The contributions of trainers that are not applied yet: one synchronous round, and a queue of updates."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable
from typing import Any

from paddlelike.distributed.protocol.messages import Push, Staged
from paddlelike.distributed.protocol.server.exchanges import Merge


class Round:
    """The pushes and commits of the current round (sync).

    Attributes
    ----------
    staged
        The push of each trainer, and the contribution in it.
    marks
        The trainers that have committed.
    """

    def __init__(self) -> None:
        self.staged: dict[int, tuple[Staged, Any]] = {}
        self.marks: set[int] = set()
        self._merged: dict[int, int] = {}  # by trainer: the trainer to whose contribution its own was added

    def find_push(self, trainer: int) -> Staged | None:
        """Return the push that is staged for a trainer."""
        staged = self.staged.get(trainer)
        return None if staged is None else staged[0]

    def stage(self, request: Push, contribution: object) -> None:
        """Hold a contribution, in place of an earlier one of the trainer."""
        push = Staged(request.number, request.process, request.session)
        self.staged[request.trainer] = (push, contribution)

    def discard(self, trainer: int) -> None:
        """Drop the push and the commit of a trainer, unless other pushes were added to them."""
        if trainer in self._merged or trainer in self._merged.values():
            return
        self.staged.pop(trainer, None)
        self.marks.discard(trainer)

    def contributions(self) -> tuple[tuple[int, Any], ...]:
        """Return the committed contributions that were not merged into others, in the order of trainer
        ids.
        """
        # D7
        kept = sorted(self.marks - self._merged.keys())
        return tuple((trainer, self.staged[trainer][1]) for trainer in kept)

    def find_merge(self, missing: Collection[int]) -> Merge | None:
        """Return the next two contributions to add, in the order of trainer ids; ``missing`` have not
        committed.
        """
        first_missing = min(missing, default=math.inf)
        # D7
        leading = [one for one in self.contributions()[:2] if one[0] < first_missing]
        return Merge(self, leading[0], leading[1]) if len(leading) == 2 else None

    def end_merge(self, merge: Merge) -> None:
        """Drop the contribution that was added to another one, but remember its push."""
        trainer, _ = merge.other
        self._merged[trainer] = merge.into[0]
        self.staged[trainer] = (self.staged[trainer][0], None)


class Updates:
    """The queue of updates (async), and for every process the id of its last applied update.

    Parameters
    ----------
    applied
        Trainer, process and id of the last updates that the loaded parameters hold.
    """

    def __init__(self, applied: Iterable[tuple[int, int, int]] = ()) -> None:
        self._queue: deque[tuple[Push, Any]] = deque()
        self._begun: set[int] = set()  # trainers whose update is being applied
        self._applied = {(trainer, process): number for trainer, process, number in applied}

    def __bool__(self) -> bool:
        return bool(self._queue)

    def append(self, request: Push, contribution: object) -> None:
        """Queue an update."""
        self._queue.append((request, contribution))

    @property
    def are_under_way(self) -> bool:
        """Whether an update is being applied."""
        return bool(self._begun)

    def find_next(self) -> tuple[int, Any] | None:
        """Return trainer and contribution of the oldest update that is not being applied."""
        waiting = ((r.trainer, given) for r, given in self._queue if r.trainer not in self._begun)
        return next(waiting, None)

    def begin(self, trainer: int) -> None:
        """Record that the update of a trainer is being applied."""
        self._begun.add(trainer)

    def end(self, trainer: int, *, applied: bool) -> None:
        """Record that the update has ended; an applied update leaves the queue."""
        self._begun.discard(trainer)
        if applied:
            request, one = next(item for item in self._queue if item[0].trainer == trainer)
            self._queue.remove((request, one))
            self._applied[request.trainer, request.process] = request.number

    def is_queued(self, trainer: int) -> bool:
        """Return whether an update of a trainer is queued."""
        return any(request.trainer == trainer for request, _ in self._queue)

    def last_applied(self, trainer: int, process: int) -> int:
        """Return the id of the last applied update of a process; 0 if there is none."""
        return self._applied.get((trainer, process), 0)

    def is_known(self, request: Push) -> bool:
        """Return whether an update was applied or queued before."""
        queued = [
            one.number
            for one, _ in self._queue
            if (one.trainer, one.process) == (request.trainer, request.process)
        ]
        last = self.last_applied(request.trainer, request.process)
        return request.number <= max([last, *queued])

    def to_list(self) -> list[list[int]]:
        """Return trainer, process and id of the last applied updates: plain JSON types."""
        return [[*key, number] for key, number in sorted(self._applied.items())]
