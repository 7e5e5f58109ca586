"""The server's side of the protocol: the reply to each request, and when a round is complete.

Every method is one step under one lock that the caller holds. No method blocks: the reply may be Waiting, and
the caller asks again until its timeout ends. (In between it may wait on a condition, which is notified of
changes.) Contributions (gradients) are opaque here.

A synchronous round has two phases: a trainer stages its push on *every* server, then commits to every server.
When all trainers that have not left are marked, :meth:`ServerState.take_work` gives the round to the thread
that owns the parameters; :meth:`ServerState.end_apply` publishes it. So *if any server has applied round r,
every server holds every gradient of r*, and the successor of a lost trainer can finish the round.

An asynchronous update is applied at most once: updates of one process have increasing ids, and the last id
applied is part of what is saved.
"""

from __future__ import annotations

from typing import Any

from paddlelike.distributed.protocol.messages import (
    Beat,
    BeatReply,
    Commit,
    CommitReply,
    Complete,
    CompleteReply,
    Hello,
    HelloReply,
    Prefetch,
    PrefetchReply,
    Pull,
    PullReply,
    Push,
    PushReply,
    Reason,
    Refused,
    Reply,
    Request,
    Rollback,
    RollbackReply,
    Save,
    SaveReply,
    Share,
    ShareReply,
    Staged,
    Waiting,
)
from paddlelike.distributed.protocol.server.admission import Denial
from paddlelike.distributed.protocol.server.base import ServerBase
from paddlelike.distributed.protocol.server.exchanges import Apply, Saves, Shares
from paddlelike.distributed.protocol.server.round_barrier import Round


class ServerState(ServerBase):
    """One server's side of the protocol.

    Parameters
    ----------
    incarnation
        A unique name of this process among all that served this endpoint.
    trainers
        The number of trainers that take part (Fluid's Fanin): ids 0 .. trainers - 1.
    plan
        Digest of this server's table, as in Hello and Push.
    adopts
        Whether the parameters were loaded from a directory that does not record a round; the server then
        takes the round of the other servers.
    saved
        The position of the loaded parameters, as :meth:`position` was at the save. None means start values.
    lease
        Seconds without a request after which a trainer counts as silent.
    checkpoints
        Returns the rounds this server can return to now (0: its start values).

    >>> state = ServerState(incarnation="a", trainers=1, mode="sync", plan="p", now=0.0)
    >>> me = dict(job="", trainer=0, process=1, session=1)
    >>> state.hello(Hello(plan="p", mode="sync", trainers=1, **me), 0.0).round
    0
    >>> here = me | dict(incarnation="a", generation=0)
    >>> push = Push(plan="p", number=0, **here)
    >>> state.begin_push(push, 0.1)
    >>> state.end_push(push, "gradients", 0.2).duplicate
    False
    >>> state.commit(Commit(round=0, poll=1.0, **here), 0.3).kind
    'waiting'
    >>> work = state.take_work()
    >>> work
    Apply(round=0, contributions=((0, 'gradients'),))
    >>> state.end_apply(work)
    >>> state.commit(Commit(round=0, poll=1.0, **here), 0.4)
    CommitReply(incarnation='a', generation=0, round=1)
    """

    # Verbs: (request, now) -> reply

    def hello(self, request: Hello, now: float) -> Reply:
        """Begin a session: from now on only this session of this process speaks for the trainer."""
        if refused := self._refuse_caller(request):
            return refused
        denial = self._admission.check_program(request) or self._admission.admit(request, now)
        if refused := self._refuse_denied(denial):
            return refused
        return HelloReply(
            **self._status(),
            base=self.base,
            busy=self._restoring,
            lost=self._lost,
            staged=self._round.find_push(request.trainer),
            marked=request.trainer in self._round.marks,
            checkpoints=tuple(sorted(self._checkpoints())),
            completed=tuple(sorted(self.completed.items())),
            left=tuple(sorted(self._left)),
            applied=self._updates.last_applied(request.trainer, request.process),
            adopts=self._adopts,
        )

    def begin_push(self, request: Push, now: float) -> Reply | None:
        """Return None if the caller shall receive the bytes and call :meth:`end_push`, else a reply."""
        if reply := self._refuse_addressed(request, now) or self._refuse_push(request):
            return reply
        if self.mode != "sync":
            return self._begin_update(request)
        trainer = request.trainer
        if request.number < self.round:
            return PushReply(**self._status(), duplicate=True)
        if request.number > self.round:
            return self._refuse(
                "ahead", f"the push is for round {request.number}, this server is at {self.round}"
            )
        # D6
        if self._round.find_push(trainer) == Staged(request.number, request.process, request.session):
            return PushReply(**self._status(), duplicate=True)
        # D5
        if trainer in self._round.marks:
            return self._refuse("stale", f"trainer {trainer} has committed another push of this round")
        return None

    def end_push(self, request: Push, contribution: object, now: float) -> Reply:
        """Stage or queue a contribution that arrived completely, after checking everything again."""
        if reply := self.begin_push(request, now):
            return reply
        if self.mode == "sync":
            self._round.stage(request, contribution)
        else:
            self._updates.append(request, contribution)
        return PushReply(**self._status())

    def wait_for_memory(self, trainer: int, now: float) -> Waiting:
        """Return the reply to a push for which memory is missing; it names the trainers that must come
        first.
        """
        return self._wait_for(tuple(one for one in self.missing_trainers() if one < trainer), now, "memory")

    def commit(self, request: Commit, now: float) -> Reply:
        """Mark the trainer's push as complete. With a CommitReply, send the parameters of the next round."""
        if refused := self._refuse_addressed(request, now) or self._refuse_in_async(request):
            return refused
        if request.round < self.round:
            if request.round + 1 < self.round:
                return self._refuse(
                    "version", f"round {request.round} is over, this server is at {self.round}"
                )
            return CommitReply(**self._status())
        if request.round > self.round:
            return self._refuse(
                "ahead", f"round {request.round} is committed, this server is at {self.round}"
            )
        # D4
        if self._round.find_push(request.trainer) is None:
            return self._refuse("nopush", f"no push of trainer {request.trainer} is staged for {self.round}")
        self._round.marks.add(request.trainer)
        return self._wait_for(self.missing_trainers(), now, "barrier")

    def pull(self, request: Pull, now: float) -> Reply:
        """Allow a pull. With a PullReply, send the slices."""
        if reply := self._refuse_addressed(request, now) or self._refuse_version(request.version):
            return reply
        return self._wait_for_own(request.trainer) or PullReply(**self._status())

    def prefetch(self, request: Prefetch, now: float) -> Reply:
        """Allow a prefetch. With a PrefetchReply, send the rows."""
        if reply := self._refuse_addressed(request, now):
            return reply
        return self._wait_for_own(request.trainer) or PrefetchReply(**self._status())

    def beat(self, request: Beat, now: float) -> Reply:
        """Record that the trainer is alive; refuse a process that was replaced."""
        if refused := self._refuse_caller(request):
            return refused
        self._admission.record_life(request, now)
        return BeatReply(**self._status())

    def rollback(self, request: Rollback, now: float) -> Reply:
        """Begin to return to a checkpoint; reply Waiting until that is done."""
        if refused := self._refuse_session(request, now) or self._refuse_in_async(request):
            return refused
        if request.generation > self.generation:
            is_checkpoint = request.to in self._checkpoints()
            # D11
            if not is_checkpoint and not self._can_begin_at(request.to):
                return self._refuse("checkpoint", f"this server has no checkpoint of round {request.to}")
            self.start = self.start if is_checkpoint else request.to
            self._adopts = False
            known = self.completed | dict(request.completed)
            self.completed = {trainer: first for trainer, first in known.items() if first <= request.to}
            self.generation, self.round, self.base = request.generation, request.to, request.to
            # D10
            self._round, self._saves, self._shares = Round(), Saves(), Shares()
            self._restoring, self._lost = is_checkpoint, False
        if self._restoring:
            return self._wait(f"rolling back to round {self.base}")
        if self._lost:
            return self._refuse("checkpoint", f"this server could not roll back to round {self.base}")
        return RollbackReply(**self._status())

    def save(self, request: Save, now: float) -> Reply:
        """Begin to write this server's rows; reply Waiting until that is done."""
        if reply := self._refuse_addressed(request, now) or self._refuse_version(request.version):
            return reply
        if waiting := self._wait_for_own(request.trainer):
            return waiting
        saving = self._saves.begin(request)
        if saving.error:
            return self._refuse("failed", saving.error)
        if saving.manifest is None:
            return self._wait("saving")
        return SaveReply(**self._status(), manifest=saving.manifest)

    def take_share(self, request: Share, text: bytes, now: float) -> None:
        """Store the text of a trainer; :meth:`share` answers its request."""
        if self._refuse_addressed(request, now) is None:
            self._shares.put(request.number, trainer=request.trainer, text=text)

    def share(self, request: Share, now: float) -> Reply:
        """Reply Waiting until every trainer has sent its text. With a ShareReply, send
        :meth:`shared_texts`.
        """
        if reply := self._refuse_addressed(request, now):
            return reply
        missing = self._shares.find_missing(request.number, range(self.trainers))
        if missing:
            return self._wait_for(missing, now, "exchange")
        return ShareReply(**self._status())

    def shared_texts(self, number: int) -> list[bytes]:
        """Return the texts of an exchange by trainer id."""
        return list(self._shares.collect(number).values())

    def complete(self, request: Complete, now: float) -> Reply:
        """Record that rounds from ``request.round`` on are complete without this trainer.

        A trainer's last request is accepted even by a server that was restarted since the trainer began to
        leave, because every server had acknowledged that the trainer leaves.
        """
        refused = self._refuse_caller(request) if request.last else self._refuse_addressed(request, now)
        if refused:
            return refused
        if request.last:
            self._left |= {request.trainer, *request.left}
            self.completed = dict.fromkeys(self._left, request.round) | self.completed
        if request.trainer not in self.completed:
            if not request.last and self.mode == "sync" and request.round != self.round:
                return self._refuse(
                    "ahead", f"the trainer leaves in round {request.round}, this server is at {self.round}"
                )
            self.completed[request.trainer] = request.round
            self._round.discard(request.trainer)
        return CompleteReply(**self._status())

    # Refusals

    def _refuse_addressed(self, request: Any, now: float) -> Refused | Waiting | None:
        """Refuse a request to another incarnation or generation; let it wait during a rollback."""
        if refused := self._refuse_session(request, now):
            return refused
        # D2
        if (request.incarnation, request.generation) != (self.incarnation, self.generation):
            return self._refuse("stale", f"this is generation {self.generation} of {self.incarnation}")
        if self._lost:
            return self._refuse("stale", f"this server could not roll back to round {self.base}")
        return self._wait(f"rolling back to round {self.base}") if self._restoring else None

    def _refuse_session(self, request: Request, now: float) -> Refused | None:
        if refused := self._refuse_caller(request):
            return refused
        self._admission.record_life(request, now)
        return self._refuse_denied(self._admission.check_session(request))

    def _refuse_caller(self, request: Request) -> Refused | None:
        # D17
        if self._failure:
            return self._refuse("failed", self._failure)
        return self._refuse_denied(self._admission.check_caller(request))

    def _refuse_push(self, request: Push) -> Refused | None:
        if request.trainer in self.completed:
            return self._refuse("completed", f"trainer {request.trainer} has left the job")
        return self._refuse_denied(self._admission.check_plan(request.plan))

    def _refuse_in_async(self, request: Request) -> Refused | None:
        if self.mode == "sync":
            return None
        return self._refuse("mode", f"{request.verb} is not supported in {self.mode} mode")

    def _refuse_version(self, version: int | None) -> Refused | None:
        if self.mode != "sync" or version is None or version == self.round:
            return None
        return self._refuse("version", f"round {version} was requested, but this server is at {self.round}")

    def _refuse_denied(self, denial: Denial) -> Refused | None:
        return None if denial is None else self._refuse(*denial)

    def _refuse(self, reason: Reason, text: str) -> Refused:
        return Refused(**self._status(), reason=reason, text=text)

    def _wait(self, why: str) -> Waiting:
        return Waiting(**self._status(), why=why)

    def _wait_for(self, missing: tuple[int, ...], now: float, why: str) -> Waiting:
        silent = tuple(trainer for trainer in missing if self._admission.is_silent(trainer, now))
        return Waiting(**self._status(), missing=missing, silent=silent, why=why)

    # Helpers

    def _begin_update(self, request: Push) -> Reply | None:
        # D9
        if self._updates.is_known(request):
            return PushReply(**self._status(), duplicate=True)
        if self._updates.is_queued(request.trainer):
            return self._wait("an earlier update of this trainer is not applied yet")
        return None

    def _wait_for_own(self, trainer: int) -> Waiting | None:
        """Make a reader wait for the end of a round (sync), or for this trainer's own updates (async)."""
        # D8
        if self.mode == "sync":
            return self._wait("a round is being applied") if isinstance(self._work, Apply) else None
        if self._updates.is_queued(trainer):
            return self._wait("an update of this trainer is not applied yet")
        return None
