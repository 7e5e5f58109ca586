"""Agreement on one round: a trainer says Hello to all servers, decides by their replies, and acts."""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.distributed.protocol.messages import HelloReply
from paddlelike.distributed.protocol.trainer.decision import (
    Adopt,
    Conflict,
    Finish,
    Leave,
    Mismatch,
    Proceed,
    Retry,
    RollBack,
    decide,
    describe_rounds,
)
from paddlelike.distributed.protocol.trainer.requests import Stage, TrainerRequests
from paddlelike.distributed.protocol.trainer.retries import Resumed, Success


class TrainerAgreements(TrainerRequests):
    """The agreements of a trainer with its servers; see :class:`.TrainerState`."""

    def _agree(self, now: float, *, after: float = 0.0, why: str = "") -> None:
        """Say Hello to all servers in a new session, which makes requests of earlier sessions stale."""
        if self._agreeing_since is None:
            self._agreeing_since = now
        patience = max(self.limits.window, self.limits.barrier)
        if now - self._agreeing_since > patience:
            self._fail(f"no agreement between {', '.join(self.endpoints)} within {patience:.0f} s: {why}")
            return
        self.session += 1
        self._hellos = {}
        self._begin("hello")
        for link in self._links:
            link.retry_at = max(link.retry_at, now + after)

    def _take_hellos(self, now: float) -> None:
        hellos = [self._hellos[server] for server in range(len(self.endpoints))]
        for link, hello in zip(self._links, hellos, strict=True):
            link.record_incarnation(hello.incarnation)
        self._left = {trainer for hello in hellos for trainer in hello.left} - {self.trainer}
        self._check_restarts(hellos)
        if self.outcome is not None:
            return
        if self.mode != "sync":
            self._resume_updates(hellos)
            return
        decision = decide(self.trainer, self.endpoints, hellos)
        if isinstance(decision, Retry):
            self._agree(now, after=0.1, why=decision.why)
        elif isinstance(decision, Conflict):
            self._fail(decision.why, hint="start all servers and trainers again from the last save")
        elif isinstance(decision, Mismatch):
            self._fail(decision.why, hint="load the same save on every server", exit_code=1)
        elif isinstance(decision, Adopt):
            self._rollback = RollBack(decision.round, decision.generation, (), "")
            self._begin("rollback")
        elif isinstance(decision, RollBack):
            self._roll_back(decision)
        else:
            if not self.has_joined and any(hello.round > hello.base for hello in hellos):
                self._other_run = ", ".join(
                    f"{endpoint} began at round {hello.base} and is at round {hello.round}"
                    for endpoint, hello in zip(self.endpoints, hellos, strict=True)
                )
            self.generation = hellos[0].generation
            self.round = decision.round
            stages: dict[type, Stage] = {Proceed: "fetch", Finish: "finish", Leave: "complete"}
            self._begin(stages[type(decision)])

    def _check_restarts(self, hellos: Sequence[HelloReply]) -> None:
        restarted = [e for e, link in zip(self.endpoints, self._links, strict=True) if link.restarted]
        if self.has_joined and restarted and not self.may_roll_back:
            self._fail(
                f"server {', '.join(restarted)} was restarted; now there are "
                f"{describe_rounds(self.endpoints, hellos)}",
                hint="start the job again from its last save, or set PADDLELIKE_RESUME_POLICY=rollback",
            )

    def _roll_back(self, decision: RollBack) -> None:
        if self.may_roll_back:
            self._rollback = decision
            self._begin("rollback")
        else:
            self._fail(decision.why, hint="start all servers and trainers again from the last save")

    def _resume_updates(self, hellos: Sequence[HelloReply]) -> None:
        """Continue with the interrupted goal (async), since each server counts its own updates."""
        self.generation = hellos[0].generation
        if self._goal is None:
            has_left = any(self.trainer in dict(hello.completed) for hello in hellos)
            self._begin("complete" if has_left else "fetch")
        else:
            self._agreeing_since = None
            self._begin(self._goal, self._servers)

    def _end_agreement(self) -> None:
        self._agreeing_since = None
        self.has_joined = True
        for link in self._links:
            link.restarted = False
        self.outcome = Success(self.round) if self._goal is None else Resumed(self.round)
