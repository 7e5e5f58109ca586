"""State machines with one check turned off: the schedules must show what each check is for."""

from __future__ import annotations

import dataclasses
from typing import Any

from paddlelike.distributed.protocol.messages import Hello, Reply, Rollback
from paddlelike.distributed.protocol.server import ServerState
from paddlelike.distributed.protocol.server.exchanges import Apply, Merge, Work
from paddlelike.distributed.protocol.server.round_barrier import Updates
from paddlelike.distributed.protocol.trainer import TrainerState, agreements, decision


class NoFence(ServerState):
    """An older process of a trainer may continue."""

    def _refuse_caller(self, request: Any) -> Any:
        return None

    def _refuse_session(self, request: Any, now: float) -> Any:
        return None

    def hello(self, request: Hello, now: float) -> Reply:
        self._admission._newest.pop(request.trainer, None)
        return super().hello(request, now)


class NoSession(ServerState):
    """Requests of earlier sessions are accepted after an agreement."""

    def _refuse_session(self, request: Any, now: float) -> Any:
        return self._refuse_caller(request)


class NoStale(NoSession):
    """Requests meant for another incarnation, generation or session are taken."""

    def _refuse_addressed(self, request: Any, now: float) -> Any:
        return self._refuse_caller(request)


class KeepsStaging(ServerState):
    """A rollback leaves what was staged and marked."""

    def rollback(self, request: Rollback, now: float) -> Reply:
        round_ = self._round
        reply = super().rollback(request, now)
        self._round = round_
        return reply


class NoWaiting(ServerState):
    """A round is applied when half of the trainers have committed."""

    def missing_trainers(self) -> tuple[int, ...]:
        missing = super().missing_trainers()
        return missing if len(missing) > self.trainers // 2 else ()


class AnyOrder(ServerState):
    """Contributions come in the order of their arrival."""

    def take_work(self) -> Work | None:
        work = super().take_work()
        if isinstance(work, Apply) and self.mode == "sync":
            given = dict(work.contributions)
            self._work = Apply(work.round, tuple((t, given[t]) for t in self._round.staged if t in given))
        return self._work


class MergesAtOnce(ServerState):
    """Contributions are added in the order of their commits."""

    def find_merge(self) -> Merge | None:
        if self.mode != "sync" or self._restoring or self._work is not None or self._failure:
            return None
        return self._round.find_merge(())


class MergesPushes(ServerState):
    """Contributions are added before they are committed, so that they can still be replaced."""

    def find_merge(self) -> Merge | None:
        marks, self._round.marks = self._round.marks, set(self._round.staged)
        try:
            return super().find_merge()
        finally:
            self._round.marks = marks


class NoUpdateNumber(ServerState):
    """Repeated asynchronous updates are applied again."""

    def _begin_update(self, request: Any) -> Any:
        return None


class NumbersByTrainer(ServerState):
    """Update numbers are kept by trainer alone, not by process."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._updates = _ByTrainer((options.get("saved") or {}).get("updates", ()))


class _ByTrainer(Updates):
    def last_applied(self, trainer: int, process: int) -> int:
        return max([number for (t, _), number in self._applied.items() if t == trainer], default=0)


class ForgetsNumbers(ServerState):
    """A restarted server does not know which updates its saved parameters hold."""

    def position(self) -> dict[str, Any]:
        return super().position() | {"updates": []}


class OnePhase(TrainerState):
    """Commits to each server as soon as that server has acknowledged the push."""

    def _end_part(self, link: Any, now: float) -> None:
        if self._stage == "push" and self.outcome is None:
            self._end_stage(now)
        else:
            super()._end_part(link, now)


class IgnoresMarks(TrainerState):
    """Pushes a round anew although it had committed it."""

    def _take_hellos(self, now: float) -> None:
        for server, hello in self._hellos.items():
            self._hellos[server] = dataclasses.replace(hello, marked=False)
        super()._take_hellos(now)


class FinishesAnything(TrainerState):
    """Commits a predecessor's round although not every server holds its push."""

    def _take_hellos(self, now: float) -> None:
        hellos = [self._hellos[server] for server in range(len(self.endpoints))]
        low = min(one.round for one in hellos)
        if len({one.generation for one in hellos}) == 1 and any(
            one.staged is not None and one.round == low for one in hellos
        ):
            kept, agreements.decide = agreements.decide, lambda *_: decision.Finish(low)
            try:
                super()._take_hellos(now)
            finally:
                agreements.decide = kept
        else:
            super()._take_hellos(now)


class NeverRollsBack(TrainerState):
    """Goes on at the lowest round although servers stand at different ones."""

    def _roll_back(self, decision: Any) -> None:
        hellos = self._hellos.values()
        self.generation = max(one.generation for one in hellos)
        self.round = min(one.round for one in hellos)
        self._begin("fetch")


SYNC_SERVERS = (NoFence, NoSession, NoStale, KeepsStaging, NoWaiting, AnyOrder, MergesAtOnce, MergesPushes)
SYNC_TRAINERS = (OnePhase, IgnoresMarks, FinishesAnything, NeverRollsBack)
ASYNC_SERVERS = (NoUpdateNumber, NumbersByTrainer, ForgetsNumbers)
