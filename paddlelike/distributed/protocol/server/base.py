"""The state of one server, and the work for the thread that owns the parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paddlelike.distributed.protocol.messages import Mode
from paddlelike.distributed.protocol.server.admission import Admission
from paddlelike.distributed.protocol.server.exchanges import Apply, Merge, Restore, Saves, Shares, Work, Write
from paddlelike.distributed.protocol.server.round_barrier import Round, Updates


class ServerBase:
    """The state of a server: its round, its trainers and its work; see :class:`.ServerState`."""

    def __init__(
        self,
        *,
        incarnation: str,
        trainers: int,
        mode: Mode,
        plan: str,
        job: str = "",
        now: float,
        saved: Mapping[str, Any] | None = None,
        adopts: bool = False,
        lease: float = 30.0,
        checkpoints: Callable[[], Sequence[int]] = tuple,
    ) -> None:
        saved = saved or {}
        self.incarnation, self.trainers, self.mode = incarnation, trainers, mode
        self.generation = 0
        self.round = self.base = self.start = int(saved.get("round", 0))  # start: that of the start values
        self._adopts = adopts
        self.completed: dict[int, int] = dict(saved.get("completed", ()))
        self._admission = Admission(trainers=trainers, mode=mode, plan=plan, job=job, lease=lease, now=now)
        self._checkpoints = checkpoints
        self._round = Round()
        self._updates = Updates(saved.get("updates", ()))
        self._left: set[int] = set()
        self._saves = Saves()
        self._shares = Shares()
        self._restoring = self._lost = False
        self._work: Work | None = None
        self._failure = ""  # of the last round; no further request is served

    # Work, for the thread that owns the parameters

    @property
    def has_work(self) -> bool:
        """Whether :meth:`take_work` would return work now."""
        return self._work is None and not self._failure and self._next_work() is not None

    def take_work(self) -> Work | None:
        """Return the next work; it is in progress until one of the methods below ends it.

        Asynchronous updates of several trainers may run side by side; a save runs alone.
        """
        assert self._work is None or self.mode != "sync", "the previous work has not ended"
        if self._failure or self._work is not None:
            return None
        work = self._next_work()
        if isinstance(work, Apply) and self.mode != "sync":
            self._updates.begin(work.contributions[0][0])
        else:
            self._work = work
        return work

    def take_round(self) -> Apply | None:
        """Take the next work, as :meth:`take_work` does, if it is a synchronous round."""
        if self.mode != "sync" or self._failure or self._work is not None:
            return None
        work = self._next_work()
        if not isinstance(work, Apply):
            return None
        self._work = work
        return work

    def find_merge(self) -> Merge | None:
        """Return a sum that can be computed before the round is complete; :meth:`end_merge` ends it.

        Merging keeps the memory for a round from growing with the number of trainers.
        """
        if self.mode != "sync" or self._failure or self._restoring or self._work is not None:
            return None
        missing = self.missing_trainers()
        return self._round.find_merge(missing) if missing else None  # else the round is applied as it is

    def end_merge(self, merge: Merge) -> None:
        """Record that a contribution was merged; its round may have been abandoned meanwhile."""
        merge.owner.end_merge(merge)

    def is_next(self, trainer: int) -> bool:
        """Return whether all earlier trainers of the round have committed and been merged."""
        missing = self.missing_trainers()
        return min(missing, default=trainer) >= trainer and self._round.find_merge(missing) is None

    def end_apply(self, work: Apply | Restore) -> None:
        """Record that the parameters contain the round, the update or the checkpoint."""
        self._end_work(work, applied=True)
        if isinstance(work, Restore):
            self._restoring = self._restoring and work.round != self.base
        elif self.mode != "sync":
            self.round += 1
        elif not self._restoring:  # else the round belongs to an earlier generation
            self.round += 1
            self._round = Round()

    def end_write(self, work: Write, manifest: Mapping[str, Any]) -> None:
        """Record that the rows are on disk; ``manifest`` is plain JSON types."""
        self._end_work(work)
        self._saves.end(work.request, manifest=manifest)

    def fail_work(self, work: Work, text: str) -> None:
        """Record that the work in progress failed.

        A save is refused with ``text``. A checkpoint that cannot be read (it may have been replaced) is
        reported, and the server waits for another one. After a failed round, every later request is refused
        with ``text``.
        """
        self._end_work(work)
        if isinstance(work, Write):
            self._saves.end(work.request, error=text)
        elif isinstance(work, Restore):
            self._restoring = self._restoring and work.round != self.base
            self._lost = not self._restoring
        else:
            self._failure = text

    # State

    @property
    def is_finished(self) -> bool:
        """Whether every trainer has left on every server, and no work is left."""
        return len(self._left) == self.trainers and self._is_idle()

    def may_end(self, now: float) -> bool:
        """Return whether this server may end: it has finished, or the trainers that should leave are lost."""
        gone = all(t in self._left or self._admission.is_silent(t, now) for t in range(self.trainers))
        return len(self.completed) == self.trainers and gone and self._is_idle()

    def missing_trainers(self) -> tuple[int, ...]:
        """Return the trainers that have not committed the current round."""
        known = self._round.marks | self.completed.keys()
        return tuple(trainer for trainer in range(self.trainers) if trainer not in known)

    def position(self) -> dict[str, Any]:
        """Return the training position for a manifest, in JSON types; a new server gets it as ``saved``."""
        return {
            "round": self.round,
            "completed": [list(item) for item in sorted(self.completed.items())],
            "updates": self._updates.to_list(),
        }

    def _can_begin_at(self, round: int) -> bool:
        """Return whether the initial values can serve as the values at the beginning of ``round``."""
        is_unchanged = self.round == self.base == self.start and self._work is None and not self._lost
        return is_unchanged and (self._adopts or round == self.start)

    def _is_idle(self) -> bool:
        return self._work is None and not self._updates and not self._restoring

    def _status(self) -> dict[str, Any]:
        return {"incarnation": self.incarnation, "generation": self.generation, "round": self.round}

    def _next_work(self) -> Work | None:
        if self._restoring:
            return Restore(self.base)
        save = self._saves.next()
        if save is not None:
            return None if self._updates.are_under_way else Write(save)
        if self.mode != "sync":
            update = self._updates.find_next()
            return None if update is None else Apply(self.round, (update,))
        # D4
        if self._round.marks and not self.missing_trainers():
            return Apply(self.round, self._round.contributions())
        return None

    def _end_work(self, work: Work, *, applied: bool = False) -> None:
        if isinstance(work, Apply) and self.mode != "sync":
            self._updates.end(work.contributions[0][0], applied=applied)
            return
        assert self._work is work, "only the work under way can end"
        self._work = None
