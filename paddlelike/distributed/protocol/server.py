"""What a server does with each request, and when a round is complete: no sockets, no threads, no clock.

Every method is one step under one lock that the caller holds. Waiting is a reply, never a blocked call:
whoever serves asks again until its patience ends (and may wait on a condition between, woken by what
changed). Contributions (gradients) are opaque here.

A synchronous round in two phases: a trainer stages its push on *every* server, then commits to every server.
When all trainers that have not completed are marked, :meth:`ServerState.ready` hands the round to the thread
that owns the parameters; :meth:`ServerState.applied` publishes it. So *if any server applied round r, every
server holds every gradient of r*, and a trainer lost anywhere can be finished by its successor.

An asynchronous update is applied at most once: updates of one process are numbered, and the last number
applied is part of what is saved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from paddlelike.distributed.protocol.door import Denial, Door
from paddlelike.distributed.protocol.messages import (
    Beat,
    BeatReply,
    Commit,
    CommitReply,
    Complete,
    CompleteReply,
    Hello,
    HelloReply,
    Mode,
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
    Staged,
    Waiting,
)

__all__ = ["Apply", "Restore", "ServerState", "Work", "Write"]


@dataclass(frozen=True, slots=True)
class Apply:
    """Work: one synchronous round, or one update of one trainer (async).

    ``contributions`` are (trainer, contribution) in trainer-id order: sum them in this order.
    """

    number: int
    contributions: tuple[tuple[int, Any], ...]


@dataclass(frozen=True, slots=True)
class Restore:
    """Work: put every variable back to what it was when round ``number`` began (0: the start values)."""

    number: int


@dataclass(frozen=True, slots=True)
class Write:
    """Work: write the rows this server owns as the request says."""

    request: Save


Work: TypeAlias = Apply | Restore | Write


@dataclass(slots=True)
class _Saving:
    """What became of a save: neither answer yet, or one of them."""

    request: Save
    manifest: Mapping[str, Any] | None = None
    error: str = ""


class ServerState:
    """One server's side of the protocol.

    Parameters
    ----------
    incarnation
        Names this process among all that served this endpoint; unique.
    trainers
        How many trainers take part (Fluid's Fanin): ids 0 .. trainers - 1.
    plan
        Digest of what lives on this server, as in Hello and Push.
    saved
        Where the loaded state stands, as :meth:`saved_with` said it when it was saved; None: start values.
    lease
        Seconds without a word after which a trainer counts as silent.
    checkpoints
        The rounds this server could go back to at this moment (0: its start values).

    >>> state = ServerState(incarnation="a", trainers=1, mode="sync", plan="p", now=0.0)
    >>> me = dict(job="", trainer=0, process=1, session=1)
    >>> state.hello(Hello(plan="p", mode="sync", trainers=1, **me), 0.0).round
    0
    >>> here = me | dict(incarnation="a", generation=0)
    >>> push = Push(plan="p", number=0, **here)
    >>> state.push_begin(push, 0.1)
    >>> state.push_end(push, "gradients", 0.2).duplicate
    False
    >>> state.commit(Commit(round=0, poll=1.0, **here), 0.3).kind
    'waiting'
    >>> work = state.ready()
    >>> work
    Apply(number=0, contributions=((0, 'gradients'),))
    >>> state.applied(work)
    >>> state.commit(Commit(round=0, poll=1.0, **here), 0.4)
    CommitReply(incarnation='a', generation=0, round=1)
    """

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
        lease: float = 30.0,
        checkpoints: Callable[[], Sequence[int]] = tuple,
    ) -> None:
        saved = saved or {}
        self.incarnation, self.trainers, self.mode = incarnation, trainers, mode
        self._door = Door(trainers=trainers, mode=mode, plan=plan, job=job, lease=lease, now=now)
        self._checkpoints = checkpoints
        self.generation = 0
        self.round = self.base = int(saved.get("round", 0))
        self.completed: dict[int, int] = dict(saved.get("completed", ()))
        self._staged: dict[int, tuple[Staged, Any]] = {}
        self._marks: set[int] = set()
        self._queue: deque[tuple[int, int, int, Any]] = deque()  # trainer, process, number, contribution
        self._left: set[int] = set()
        self._updates: dict[tuple[int, int], int] = {
            (trainer, process): number for trainer, process, number in saved.get("updates", ())
        }
        self._saves: dict[int, _Saving] = {}  # the last one of each trainer
        self._restoring = self._lost = False
        self._work: Work | None = None
        self._broken = ""

    # Verbs: (request, now) -> reply

    def hello(self, request: Hello, now: float) -> Reply:
        """Where this server stands; from now on only this session of this process speaks for the trainer."""
        if refused := self._refuse_stranger(request):
            return refused
        if refused := self._denied(self._door.deny_program(request) or self._door.let_in(request, now)):
            return refused
        staged = self._staged.get(request.trainer)
        return HelloReply(
            **self._status(),
            base=self.base,
            busy=self._restoring,
            lost=self._lost,
            staged=staged[0] if staged is not None else None,
            marked=request.trainer in self._marks,
            checkpoints=tuple(sorted(self._checkpoints())),
            completed=tuple(sorted(self.completed.items())),
            left=tuple(sorted(self._left)),
            applied=self._last_update(request.trainer, request.process),
        )

    def push_begin(self, request: Push, now: float) -> Reply | None:
        """None: take the bytes, then call :meth:`push_end`. A reply: take none, send it."""
        if reply := self._refuse(request, now) or self._refuse_push(request):
            return reply
        if self.mode != "sync":
            return self._begin_update(request)
        trainer = request.trainer
        if request.number < self.round:
            return PushReply(**self._status(), duplicate=True)
        if request.number > self.round:
            return self._refused("ahead", f"round {request.number} is pushed, this server is at {self.round}")
        staged = self._staged.get(trainer)
        if staged is not None and staged[0] == Staged(request.number, request.process, request.session):
            return PushReply(**self._status(), duplicate=True)
        if trainer in self._marks:
            return self._refused("stale", f"trainer {trainer} has committed another push of this round")
        return None

    def push_end(self, request: Push, contribution: Any, now: float) -> Reply:
        """Stages a whole contribution; checks everything again, since time has passed."""
        if reply := self.push_begin(request, now):
            return reply
        if self.mode == "sync":
            staged = Staged(request.number, request.process, request.session)
            self._staged[request.trainer] = (staged, contribution)
        else:
            self._queue.append((request.trainer, request.process, request.number, contribution))
        return PushReply(**self._status())

    def commit(self, request: Commit, now: float) -> Reply:
        """CommitReply: send the parameters with it. Waiting: ask again until ``request.poll`` is over."""
        if refused := self._refuse(request, now) or self._refuse_async(request):
            return refused
        if request.round < self.round:
            if request.round + 1 < self.round:
                return self._refused(
                    "version", f"round {request.round} is over, this server is at {self.round}"
                )
            return CommitReply(**self._status())
        if request.round > self.round:
            return self._refused("ahead", f"round {request.round} is meant, this server is at {self.round}")
        if request.trainer not in self._staged:
            return self._refused("nopush", f"nothing of trainer {request.trainer} is staged for {self.round}")
        self._marks.add(request.trainer)
        missing = self.missing()
        silent = tuple(trainer for trainer in missing if self._door.is_silent(trainer, now))
        return Waiting(**self._status(), missing=missing, silent=silent, why="barrier")

    def pull(self, request: Pull, now: float) -> Reply:
        """PullReply: send the slices with it."""
        if reply := self._refuse(request, now):
            return reply
        if self.mode == "sync" and request.version is not None and request.version != self.round:
            return self._refused(
                "version", f"round {request.version} is asked, this server is at {self.round}"
            )
        return self._wait_for_own(request.trainer) or PullReply(**self._status())

    def prefetch(self, request: Prefetch, now: float) -> Reply:
        """PrefetchReply: send the rows with it."""
        if reply := self._refuse(request, now):
            return reply
        return self._wait_for_own(request.trainer) or PrefetchReply(**self._status())

    def beat(self, request: Beat, now: float) -> Reply:
        """Notes that the trainer lives; tells an older process of it that it was replaced."""
        if refused := self._refuse_stranger(request):
            return refused
        self._door.hear(request, now)
        return BeatReply(**self._status())

    def rollback(self, request: Rollback, now: float) -> Reply:
        """Waiting until the owner of the parameters has restored them, then RollbackReply."""
        if refused := self._refuse_session(request, now) or self._refuse_async(request):
            return refused
        if request.generation > self.generation:
            if request.to not in self._checkpoints():
                return self._refused("checkpoint", f"this server has no checkpoint of round {request.to}")
            known = self.completed | dict(request.completed)
            self.completed = {trainer: first for trainer, first in known.items() if first <= request.to}
            self.generation, self.round, self.base = request.generation, request.to, request.to
            self._staged, self._marks, self._saves = {}, set(), {}
            self._restoring, self._lost = True, False
        if self._restoring:
            return self._waiting(f"going back to round {self.base}")
        if self._lost:
            return self._refused("checkpoint", f"this server could not go back to round {self.base}")
        return RollbackReply(**self._status())

    def save(self, request: Save, now: float) -> Reply:
        """Waiting until the owner of the parameters has written them, then SaveReply."""
        if refused := self._refuse(request, now):
            return refused
        if self.mode == "sync" and request.version is not None and request.version != self.round:
            return self._refused(
                "version", f"round {request.version} is saved, this server is at {self.round}"
            )
        if waiting := self._wait_for_own(request.trainer):
            return waiting
        saving = self._saves.get(request.trainer)
        if saving is None or _save_key(saving.request) < _save_key(request):
            saving = self._saves[request.trainer] = _Saving(request)
        if saving.error:
            return self._refused("failed", saving.error)
        if saving.manifest is None:
            return self._waiting("saving")
        return SaveReply(**self._status(), manifest=saving.manifest)

    def complete(self, request: Complete, now: float) -> Reply:
        """From ``request.round`` on, rounds are complete without this trainer.

        The last word of a trainer counts also on a server that was restarted since: all have acknowledged it.
        """
        refused = self._refuse_stranger(request) if request.last else self._refuse(request, now)
        if refused:
            return refused
        if request.last:
            self._left |= {request.trainer, *request.left}
            self.completed = dict.fromkeys(self._left, request.round) | self.completed
        if request.trainer not in self.completed:
            if not request.last and self.mode == "sync" and request.round != self.round:
                return self._refused(
                    "ahead", f"round {request.round} is left, this server is at {self.round}"
                )
            self.completed[request.trainer] = request.round
            self._staged.pop(request.trainer, None)
            self._marks.discard(request.trainer)
        return CompleteReply(**self._status())

    # The thread that owns the parameters

    @property
    def has_work(self) -> bool:
        """Whether :meth:`ready` would give something now."""
        return self._work is None and not self._broken and self._next_work() is not None

    def ready(self) -> Work | None:
        """What to do now; it is under way until :meth:`applied`, :meth:`written` or :meth:`failed`."""
        assert self._work is None, "the last work was not reported"
        if not self._broken:
            self._work = self._next_work()
        return self._work

    def applied(self, work: Apply | Restore) -> None:
        """The parameters hold it now."""
        self._end(work)
        if isinstance(work, Restore):
            self._restoring = self._restoring and work.number != self.base
        elif self.mode != "sync":
            trainer, process, number, _ = self._queue.popleft()
            self._updates[trainer, process] = number
            self.round += 1
        elif not self._restoring:  # else the round belongs to a generation that is over
            self.round += 1
            self._staged, self._marks = {}, set()

    def written(self, work: Write, manifest: Mapping[str, Any]) -> None:
        """The rows are on disk; ``manifest`` is plain JSON types."""
        self._end(work)
        self._answer_save(work, manifest=manifest)

    def failed(self, work: Work, text: str) -> None:
        """The work broke.

        A save is refused with ``text``. A checkpoint that cannot be read (it may have been replaced) is
        reported, and another one waited for. After a round, every later request is refused with ``text``.
        """
        self._end(work)
        if isinstance(work, Write):
            self._answer_save(work, error=text)
        elif isinstance(work, Restore):
            self._restoring = self._restoring and work.number != self.base
            self._lost = not self._restoring
        else:
            self._broken = text

    # What it knows

    @property
    def finished(self) -> bool:
        """Every trainer has closed on every server, and nothing is left to do."""
        return len(self._left) == self.trainers and self._is_idle()

    def is_over(self, now: float) -> bool:
        """Whether this server may end: finished, or those who closed were lost before their last word."""
        gone = all(t in self._left or self._door.is_silent(t, now) for t in range(self.trainers))
        return len(self.completed) == self.trainers and gone and self._is_idle()

    def _is_idle(self) -> bool:
        return self._work is None and not self._queue and not self._restoring

    def missing(self) -> tuple[int, ...]:
        """The trainers whose commit the current round lacks."""
        return tuple(t for t in range(self.trainers) if t not in self._marks and t not in self.completed)

    def saved_with(self) -> dict[str, Any]:
        """What a manifest must hold beside the values for ``saved`` of a successor: plain JSON types."""
        return {
            "round": self.round,
            "completed": [list(item) for item in sorted(self.completed.items())],
            "updates": [[*key, number] for key, number in sorted(self._updates.items())],
        }

    # Refusals

    def _refuse(self, request: Any, now: float) -> Refused | Waiting | None:
        """For requests to one incarnation and generation."""
        if refused := self._refuse_session(request, now):
            return refused
        if (request.incarnation, request.generation) != (self.incarnation, self.generation):
            return self._refused("stale", f"this is generation {self.generation} of {self.incarnation}")
        if self._lost:
            return self._refused("stale", f"this server could not go back to round {self.base}")
        return self._waiting(f"going back to round {self.base}") if self._restoring else None

    def _refuse_session(self, request: Request, now: float) -> Refused | None:
        if refused := self._refuse_stranger(request):
            return refused
        self._door.hear(request, now)
        return self._denied(self._door.deny_session(request))

    def _refuse_stranger(self, request: Request) -> Refused | None:
        if self._broken:
            return self._refused("failed", self._broken)
        return self._denied(self._door.deny_stranger(request))

    def _refuse_push(self, request: Push) -> Refused | None:
        if request.trainer in self.completed:
            return self._refused("completed", f"trainer {request.trainer} has closed")
        return self._denied(self._door.deny_plan(request.plan))

    def _refuse_async(self, request: Request) -> Refused | None:
        if self.mode == "sync":
            return None
        return self._refused("mode", f"{request.verb} has no meaning in {self.mode} mode")

    # Helpers

    def _begin_update(self, request: Push) -> Reply | None:
        queued = [item for item in self._queue if item[0] == request.trainer]
        last = max([number for _, process, number, _ in queued if process == request.process], default=0)
        if request.number <= max(last, self._last_update(request.trainer, request.process)):
            return PushReply(**self._status(), duplicate=True)
        return self._waiting("an earlier update of this trainer is not applied yet") if queued else None

    def _last_update(self, trainer: int, process: int) -> int:
        return self._updates.get((trainer, process), 0)

    def _wait_for_own(self, trainer: int) -> Waiting | None:
        """Parameters are read between rounds, and after the reader's own updates."""
        if self.mode == "sync":
            return self._waiting("a round is being applied") if isinstance(self._work, Apply) else None
        if any(item[0] == trainer for item in self._queue):
            return self._waiting("an update of this trainer is not applied yet")
        return None

    def _next_work(self) -> Work | None:
        if self._restoring:
            return Restore(self.base)
        for _, saving in sorted(self._saves.items()):
            if saving.manifest is None and not saving.error:
                return Write(saving.request)
        if self.mode != "sync":
            return Apply(self.round, ((self._queue[0][0], self._queue[0][3]),)) if self._queue else None
        if self._marks and not self.missing():
            given = tuple((trainer, self._staged[trainer][1]) for trainer in sorted(self._marks))
            return Apply(self.round, given)
        return None

    def _answer_save(self, work: Write, **answer: Any) -> None:
        saving = self._saves.get(work.request.trainer)
        if saving is not None and saving.request == work.request:
            self._saves[work.request.trainer] = _Saving(work.request, **answer)

    def _end(self, work: Work) -> None:
        assert self._work is work, "only the work under way can end"
        self._work = None

    def _status(self) -> dict[str, Any]:
        return {"incarnation": self.incarnation, "generation": self.generation, "round": self.round}

    def _denied(self, denial: Denial) -> Refused | None:
        return None if denial is None else self._refused(*denial)

    def _refused(self, reason: Reason, text: str) -> Refused:
        return Refused(**self._status(), reason=reason, text=text)

    def _waiting(self, why: str) -> Waiting:
        return Waiting(**self._status(), why=why)


def _save_key(request: Save) -> tuple[int, int]:
    return request.process, request.number
