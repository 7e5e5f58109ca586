"""A simulated job in one thread: servers, trainers, a network and a disk, driven by a seeded clock.

Nothing waits: events are in a heap, and a seed chooses delays, losses, repetitions, crashes, restarts.
The "model" is a chain of hashes: a gradient applied twice, not at all, in another order or computed from
other parameters gives another final value. `reference` computes the same chain in a plain loop.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from paddlelike.distributed.protocol.messages import (
    CommitReply,
    PrefetchReply,
    PullReply,
    Push,
    Reply,
    Waiting,
    reply_from_header,
    request_from_header,
)
from paddlelike.distributed.protocol.server import ServerState
from paddlelike.distributed.protocol.server.exchanges import Apply, Merge, Restore, Write
from paddlelike.distributed.protocol.trainer import TrainerState
from paddlelike.distributed.protocol.trainer.retries import Call, Closed, Limits, Pause, Resumed
from paddlelike.errors import FaultError

__all__ = ["Faults", "World", "gradient", "reference"]

LIMITS = Limits(call=0.3, window=1e6, barrier=1e6, poll=0.02)


def start_values(servers: int) -> list[int]:
    return [hash((17, server)) for server in range(servers)]


def gradient(trainer: int, round: int, values: tuple[int, ...], noise: Any = 0) -> int:
    """Return a trainer's gradient of every server's parameters."""
    return hash((trainer, round, values, noise))


def step(value: int, contributions: tuple[tuple[int, int], ...]) -> int:
    """One server's optimizer: depends on the order of what it sums."""
    return hash((value, contributions))


def reference(servers: int, rounds: list[int]) -> list[int]:
    """The final values when trainer t takes part in the first rounds[t] rounds and nothing ever fails."""
    values = start_values(servers)
    for number in range(max(rounds)):
        seen = tuple(values)
        given = tuple((t, gradient(t, number, seen)) for t, last in enumerate(rounds) if number < last)
        values = [step(value, given) for value in values]
    return values


@dataclass
class Faults:
    """Probabilities per call, and counts of faults of processes before `quiet`."""

    lose: float = 0.0  # a request, or its answer
    repeat: float = 0.0  # a request arrives twice
    late: float = 0.0  # a request, or its repetition, arrives up to a second later
    delay: float = 0.01
    down: float = 0.5  # seconds until a killed process has a successor, at most
    server_kills: int = 0
    trainer_kills: int = 0
    twins: int = 0
    pauses: int = 0
    first: float = 0.0  # seconds before which no trainer is killed
    quiet: float = 3.0  # seconds after which nothing more is hurt


@dataclass
class Server:
    state: ServerState
    value: int
    history: list[Any]  # what is in `value`, in order (async: update identities; sync: rounds' contributions)
    alive: bool = True
    paused_until: float = 0.0
    working: int = 0  # works under way


@dataclass
class Trainer:
    tid: int
    state: TrainerState
    values: list[int]
    script: Iterator[None] | None = None
    alive: bool = True
    paused_until: float = 0.0
    grad: int = 0
    pulled_state: list[Any] = field(default_factory=list)
    attempts: int = 0
    error: FaultError | None = None
    finished: bool = False
    closed: bool = False  # found that an earlier process had closed
    thinking: bool = False
    acknowledged: list[int] = field(default_factory=list)


class World:
    """One job.

    Parameters
    ----------
    rounds
        Of each trainer.
    until_stuck
        The job is over when every living trainer has ended; else every trainer must end.
    every
        Trainer 0 saves after every so many rounds; 0: never.
    keep_all
        Whether a save leaves the earlier ones; else it replaces them atomically.
    noisy
        Whether gradients are random, as with dropout.
    """

    def __init__(
        self,
        seed: int,
        *,
        servers: int = 2,
        rounds: list[int],
        every: int = 2,
        mode: str = "sync",
        faults: Faults | None = None,
        rollback: bool = True,
        noisy: bool = False,
        limits: Limits = LIMITS,
        server_class: type[ServerState] = ServerState,
        trainer_class: type[TrainerState] = TrainerState,
        until_stuck: bool = False,
        keep_all: bool = True,
    ) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.faults = faults or Faults()
        self.rounds, self.every, self.mode, self.rollback, self.noisy = rounds, every, mode, rollback, noisy
        self.limits, self.server_class, self.trainer_class = limits, server_class, trainer_class
        self.until_stuck, self.keep_all = until_stuck, keep_all
        self.checkpoints: dict[int, list[Any]] = {}  # sync: round -> per server (value, history, saved)
        self.saves: list[Any] = [None] * servers  # async: per server (value, history, saved)
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.count = 0
        self.incarnations = 0
        self.processes = 0
        self.kills = self.late_kills = 0
        self.gradients: dict[int, tuple[int, int, tuple[int, ...]]] = {}
        self.servers: list[Server] = [self.boot(server) for server in range(servers)]
        self.trainers: list[Trainer] = []
        for tid in range(len(rounds)):
            self.later(self.random.random() * 0.2, lambda tid=tid: self.start_trainer(tid))
        self.plan_faults()

    # Time

    def later(self, delay: float, action: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (self.now + delay, self.count, action))

    def run(self, limit: float = 200.0) -> None:
        """Until every trainer's newest process has ended; AssertionError when nothing moves any more."""
        while self.events and not self.over():
            self.now, _, action = heapq.heappop(self.events)
            assert self.now < limit, f"stuck: {self.describe()}"
            action()
        assert self.over(), f"nothing left to happen: {self.describe()}"

    def over(self) -> bool:
        newest = [t for t in self.newest_trainers() if t.alive or not self.until_stuck]
        if self.until_stuck:
            return bool(newest) and all(t.finished for t in newest)
        return len(newest) == len(self.rounds) and all(t.finished for t in newest)

    def settle(self) -> None:
        """Let what is under way happen: servers end, but where one may have forgotten who had left."""
        end = self.now + 20.0
        while self.events and self.events[0][0] < end:
            self.now, _, action = heapq.heappop(self.events)
            action()
        finished = all(s.state.is_finished for s in self.servers)
        assert finished or self.late_kills, f"a server waits: {self.describe()}"

    # What must hold in the end

    def newest_trainers(self) -> list[Trainer]:
        return list({t.tid: t for t in self.trainers}.values())

    def errors(self) -> list[FaultError]:
        """Of processes that were not replaced by a newer one."""
        return [t.error for t in self.newest_trainers() if t.error is not None]

    def check_sync(self) -> list[int]:
        """Every server holds the same rounds, each once, from gradients of just these parameters."""
        first = self.servers[0].history
        values = start_values(len(self.servers))
        for server in self.servers:
            assert server.history == first, "servers applied other gradients"
        assert len(first) == max(self.rounds), "rounds were lost or applied twice"
        for number, given in enumerate(first):
            assert [t for t, _ in given] == [t for t, last in enumerate(self.rounds) if number < last]
            for tid, one in given:
                assert self.gradients[one] == (tid, number, tuple(values)), "a gradient of other parameters"
            values = [step(value, given) for value in values]
        assert [server.value for server in self.servers] == values
        for trainer in self.newest_trainers():
            assert trainer.error is None, trainer.error
            if self.rounds[trainer.tid] == max(self.rounds) and not trainer.closed:
                assert trainer.values == values, "a trainer ended with other parameters"
        return values

    def check_replaced(self) -> None:
        """Processes that were replaced either ended before, or were told so."""
        for trainer in self.trainers:
            if trainer.error is not None:
                assert "taken its place" in str(trainer.error)

    def check_async(self) -> None:
        """No update twice in what a server holds; every acknowledged one, where no server was lost."""
        for server in self.servers:
            held = [given[0][1] for given in server.history]
            assert len(held) == len(set(held)), "an update was applied twice"
            if not self.kills:
                for trainer in self.trainers:
                    mine = {n for t, p, n in held if (t, p) == (trainer.tid, trainer.state.process)}
                    assert mine >= set(trainer.acknowledged), "an acknowledged update was not applied"

    def describe(self) -> str:
        servers = [
            (s.alive, s.state.generation, s.state.round, sorted(s.state._round.marks)) for s in self.servers
        ]
        trainers = [
            (t.tid, t.alive, t.finished, t.state._stage, t.state._goal, t.state.round) for t in self.trainers
        ]
        return f"at {self.now:.2f}: servers {servers}, trainers {trainers}"

    # Servers

    def boot(self, server: int) -> Server:
        self.incarnations += 1
        value, history, saved = hash((17, server)), [], None
        if self.mode == "sync" and self.checkpoints:
            value, history, saved = self.checkpoints[max(self.checkpoints)][server]
        elif self.mode != "sync" and self.saves[server]:
            value, history, saved = self.saves[server]
        state = self.server_class(
            incarnation=f"{server}.{self.incarnations}",
            trainers=len(self.rounds),
            mode=self.mode,
            plan=f"plan{server}",
            job="job",
            now=self.now,
            saved=saved,
            checkpoints=self.rounds_kept,
        )
        return Server(state, value, list(history))

    def kill_server(self, index: int) -> None:
        leaving = [t.state.is_leaving for t in self.newest_trainers()]
        enough = all(leaving) if self.mode != "sync" else any(leaving)
        if (leaving and enough) or not self.servers[index].alive:
            return  # what a server forgets of trainers that have left cannot be made good
        self.kills += 1
        self.late_kills += any(leaving)
        self.servers[index].alive = False
        self.later(self.random.random() * self.faults.down, lambda: self.restart_server(index))

    def restart_server(self, index: int) -> None:
        self.servers[index] = self.boot(index)

    def kick(self, server: Server, index: int) -> None:
        """The thread that owns the parameters: looks for work, does it a little later."""
        if server.working >= (1 if self.mode == "sync" else 2) or not server.alive:
            return
        work = server.state.take_work() or server.state.find_merge()
        if work is None:
            return
        server.working += 1
        self.later(self.random.random() * 0.02, lambda: self.work(server, index, work))

    def work(self, server: Server, index: int, work: Any) -> None:
        if not server.alive:
            return
        if server.paused_until > self.now:
            self.later(server.paused_until - self.now, lambda: self.work(server, index, work))
            return
        server.working -= 1
        if isinstance(work, Merge):
            work.into[1].extend(work.other[1])
            server.state.end_merge(work)
        elif isinstance(work, Apply):
            given = work.contributions
            if self.mode == "sync":  # each is a list, of itself and of those that were merged into it
                given = tuple(pair for _, merged in work.contributions for pair in merged)
            server.value = step(server.value, given)
            server.history.append(given)
            server.state.end_apply(work)
        elif isinstance(work, Restore):
            self.restore(server, index, work)
        else:
            assert isinstance(work, Write)
            saved = (server.value, tuple(server.history), server.state.position())
            self.saves[index] = saved
            server.state.end_write(work, {"round": saved[2]["round"]})
        self.kick(server, index)

    def restore(self, server: Server, index: int, work: Restore) -> None:
        if work.round not in self.rounds_kept():
            server.state.fail_work(work, "no such checkpoint")
            return
        if work.round:
            server.value, history, _ = self.checkpoints[work.round][index]
            server.history = list(history)
        else:
            server.value, server.history = hash((17, index)), []
        server.state.end_apply(work)

    def rounds_kept(self) -> tuple[int, ...]:
        """The rounds a server can go back to: those saved, or the start values."""
        return (0, *self.checkpoints) if self.keep_all else tuple(self.checkpoints) or (0,)

    # The network

    def send(self, trainer: Trainer, call: Call) -> None:
        roll = self.random.random
        sent = call.request.to_header()
        grad = trainer.grad
        ended = [False]  # one answer or failure per call

        def fail(why: str) -> None:
            if not ended[0] and trainer.alive:
                ended[0] = True
                trainer.state.fail_call(call, why, self.now)
                self.drive(trainer)

        def answer(reply: Reply, payload: Any) -> None:
            if not ended[0] and trainer.alive:
                ended[0] = True
                self.receive(trainer, call, reply, payload)

        def arrive() -> None:
            self.deliver(
                call, sent, grad, lambda reply, payload: self.reply(call, reply, payload, answer, fail)
            )

        def travel() -> float:
            return roll() * (1.0 if roll() < self.faults.late else self.faults.delay)

        if roll() >= self.faults.lose:
            self.later(travel(), arrive)
        if roll() < self.faults.repeat:
            self.later(travel(), arrive)
        self.later(call.timeout, lambda: fail("deadline"))

    def reply(self, call: Call, reply: Reply | None, payload: Any, answer: Any, fail: Any) -> None:
        if reply is None:
            self.later(self.random.random() * 0.02, lambda: fail("refused"))
        elif self.random.random() >= self.faults.lose:
            head = reply.to_header()
            back = reply_from_header(call.request.verb, head)
            self.later(self.random.random() * self.faults.delay, lambda: answer(back, payload))

    def deliver(self, call: Call, head: dict[str, Any], grad: int, done: Callable[..., None]) -> None:
        server = self.servers[call.server]
        if not server.alive:
            done(None, None)
            return
        if server.paused_until > self.now:
            self.later(server.paused_until - self.now, lambda: self.deliver(call, head, grad, done))
            return
        request = request_from_header(call.request.verb, head)
        if isinstance(request, Push):
            begun = server.state.begin_push(request, self.now)
            if begun is None:  # the bytes take their time
                self.later(
                    self.random.random() * self.faults.delay,
                    lambda: self.end_push(server, call, request, grad, done),
                )
            else:
                done(begun, None)
            return
        reply = getattr(server.state, call.request.verb.lower())(request, self.now)
        payload = None
        if isinstance(reply, (CommitReply, PullReply, PrefetchReply)):
            payload = (server.value, tuple(server.history), server.state.position())
        self.kick(server, call.server)
        if isinstance(reply, Waiting) and reply.missing:
            # A long poll: the handler asks again until the poll is over
            self.later(0.01, lambda: self.poll(server, call, request, done, self.now + 0.05))
        else:
            done(reply, payload)

    def poll(self, server: Server, call: Call, request: Any, done: Callable[..., None], until: float) -> None:
        if not server.alive:
            done(None, None)
            return
        reply = server.state.commit(request, self.now)
        if isinstance(reply, Waiting) and self.now < until:
            self.later(0.01, lambda: self.poll(server, call, request, done, until))
            return
        self.kick(server, call.server)
        done(reply, (server.value, tuple(server.history), server.state.position()))

    def end_push(
        self, server: Server, call: Call, request: Push, grad: int, done: Callable[..., None]
    ) -> None:
        if not server.alive:
            done(None, None)
            return
        given = (
            [(request.trainer, grad)]
            if self.mode == "sync"
            else (request.trainer, request.process, request.number)
        )
        reply = server.state.end_push(request, given, self.now)
        self.kick(server, call.server)
        done(reply, None)

    # Trainers

    def start_trainer(self, tid: int) -> None:
        self.processes += 1
        state = self.trainer_class(
            trainer=tid,
            trainers=len(self.rounds),
            process=self.processes,
            endpoints=[f"server:{index}" for index in range(len(self.servers))],
            plans=[f"plan{index}" for index in range(len(self.servers))],
            mode=self.mode,
            job="job",
            rollback=self.rollback,
            limits=self.limits,
        )
        trainer = Trainer(tid, state, [0] * len(self.servers))
        trainer.script = self.script(trainer)
        self.trainers.append(trainer)
        self.resume(trainer)

    def newest(self, tid: int) -> Trainer | None:
        return next((t for t in reversed(self.trainers) if t.tid == tid), None)

    def kill_trainer(self, tid: int) -> None:
        trainer = self.newest(tid)
        if trainer is None or not trainer.alive or trainer.finished:
            return
        trainer.alive = False
        self.later(self.random.random() * self.faults.down, lambda: self.start_trainer(tid))

    def resume(self, trainer: Trainer) -> None:
        """Runs the script to its next goal."""
        assert trainer.script is not None
        try:
            next(trainer.script)
        except StopIteration:
            trainer.finished = True
        except FaultError as error:
            trainer.finished, trainer.error = True, error
        else:
            self.drive(trainer)

    def drive(self, trainer: Trainer) -> None:
        if not trainer.alive or trainer.finished:
            return
        if trainer.paused_until > self.now:
            self.later(trainer.paused_until - self.now, lambda: self.drive(trainer))
            return
        for server in range(len(self.servers)):
            todo = trainer.state.next_step(server, self.now)
            if isinstance(todo, Call):
                self.send(trainer, todo)
            elif isinstance(todo, Pause) and todo.until < 1e9:
                self.later(max(todo.until - self.now, 1e-6), lambda: self.drive(trainer))
        outcome = trainer.state.outcome
        if outcome is not None and not trainer.thinking:
            trainer.thinking = True

            def think() -> None:
                if trainer.alive:
                    if trainer.paused_until > self.now:
                        self.later(trainer.paused_until - self.now, think)
                        return
                    trainer.thinking = False
                    self.resume(trainer)

            self.later(self.random.random() * 0.01, think)

    def receive(self, trainer: Trainer, call: Call, reply: Reply, payload: Any) -> None:
        if isinstance(reply, (CommitReply, PullReply)):
            trainer.values[call.server] = payload[0]
            trainer.pulled_state[call.server : call.server + 1] = [payload]
        trainer.state.take_reply(call, reply, self.now)
        self.drive(trainer)

    def script(self, trainer: Trainer) -> Iterator[None]:
        """Run a user's program: join, rounds, leave. Each yield waits for a goal's end."""
        state, tid = trainer.state, trainer.tid
        trainer.pulled_state = [None] * len(self.servers)

        def outcome() -> Any:
            if isinstance(state.outcome, FaultError):
                raise state.outcome
            return state.outcome

        state.join(self.now)
        yield
        if isinstance(outcome(), Closed):
            trainer.closed = True
            return
        if self.mode != "sync":
            yield from self.script_async(trainer, outcome)
            return
        while True:
            if state.round >= self.rounds[tid]:
                state.complete(self.now)
                yield
                if isinstance(outcome(), Resumed):
                    continue
                return
            trainer.attempts += 1
            seen = tuple(trainer.values)
            noise = (state.process, trainer.attempts) if self.noisy else 0
            trainer.grad = gradient(tid, state.round, seen, noise)
            self.gradients[trainer.grad] = (tid, state.round, seen)
            state.push(self.now)
            yield
            if isinstance(outcome(), Resumed):
                continue
            state.commit(self.now)
            yield
            if isinstance(outcome(), Resumed):
                continue
            if tid == 0 and self.every and state.round % self.every == 0:
                state.pull(self.now)
                yield
                if isinstance(outcome(), Resumed):
                    continue
                if not self.keep_all:  # a save replaces the one before
                    self.checkpoints.clear()
                self.checkpoints[state.round] = list(trainer.pulled_state)

    def script_async(self, trainer: Trainer, outcome: Callable[[], Any]) -> Iterator[None]:
        state = trainer.state
        for number in range(self.rounds[trainer.tid]):
            state.push(self.now)
            yield
            outcome()
            trainer.acknowledged.append(state.update)
            state.pull(self.now)
            yield
            outcome()
            if trainer.tid == 0 and self.every and (number + 1) % self.every == 0:
                state.save(self.now, f"save{number}")
                yield
                outcome()
        state.complete(self.now)
        yield
        outcome()

    # Faults

    def plan_faults(self) -> None:
        faults, roll = self.faults, self.random
        for _ in range(faults.server_kills):
            index = roll.randrange(len(self.servers))
            self.later(roll.random() * faults.quiet, lambda index=index: self.kill_server(index))
        for _ in range(faults.trainer_kills):
            tid = roll.randrange(len(self.rounds))
            when = faults.first + roll.random() * (faults.quiet - faults.first)
            self.later(when, lambda tid=tid: self.kill_trainer(tid))
        for _ in range(faults.twins):
            tid = roll.randrange(len(self.rounds))
            self.later(0.2 + roll.random() * faults.quiet, lambda tid=tid: self.twin(tid))
        for _ in range(faults.pauses):
            self.later(roll.random() * faults.quiet, self.pause)
        self.later(faults.quiet, self.calm)

    def twin(self, tid: int) -> None:
        old = self.newest(tid)
        if old is not None and not old.finished:
            self.start_trainer(tid)

    def pause(self) -> None:
        roll = self.random
        who: Any = roll.choice([*self.servers, *self.trainers])
        who.paused_until = self.now + roll.random()

    def calm(self) -> None:
        self.faults.lose = self.faults.repeat = self.faults.late = 0.0
