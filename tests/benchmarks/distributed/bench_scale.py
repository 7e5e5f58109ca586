"""A hundred trainers, twenty servers, a hundred gigabytes: a page of arithmetic, checked by a simulation.

    python -m tests.benchmarks.distributed.bench_scale [--trainers 100] [--servers 20]

The page is computed from the few constants below (measured on one machine: see ``bench_wire``). The simulation
runs the real state machines, every trainer and every server, over links and processors of which it only counts
the time and the bytes: a message takes its sender's outgoing link, its receiver's incoming link and the server's
processor, each one thing at a time. Nothing here is a real network; what it checks is that the protocol asks for
no more than the page says: no call, no byte and no waiting beside.

What the page says (25 GbE, 2.9 GB/s of payload each way; a server computes on one core)

* All 100 GB dense: a server holds 5 GB, and every round takes in 100 x 5 = 500 GB and gives as much: 172 s + 172 s
  of its card, 240 s + 125 s of its core: 412 s. The servers are the bottleneck, by the ratio of trainers to
  servers. That is not a workload for parameter servers; with a server beside each trainer both ends need 34 + 34 s
  of their cards, as an all-reduce would.
* What really is 100 GB are tables: a batch that touches 100 000 rows of 64 floats moves 26 MB to a trainer and
  back. A server moves 128 MB each way: 44 ms of its card each way, 93 ms of its core for the bytes and 60 ms for
  300 calls: 153 ms, 6 rounds a second. More processes on a server's host share the bytes and the calls.
* With 1 GB dense, shards of 50 MB: 2.4 + 1.7 s. To gain: push every k-th round, sum the trainers of one
  host first, more servers (linear).
* Staging: 100 x the shard: 5 GB for 1 GB dense. What 100 GB dense would take (500 GB a server) does not exist.
* A barrier is 100 calls to each server: 20 ms of its core; from some 300 trainers on, one speaker per host
  should ask.
* Connections: 100 a server. Signs of life: 100 x 20 every 10 s, 200 a second in all.
* A save by trainer 0 with Adam's moments takes in 300 GB by one card: 103 s. Servers that write their own rows
  move nothing; 15 GB each.
* A server that is lost and comes back costs each trainer two Hellos to each server (the second after the
  rollback), one rollback, and one pull of everything: one round's bytes out.
"""

from __future__ import annotations

import argparse
import heapq
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from paddlelike.distributed.protocol.messages import CommitReply, Pull, PullReply, Push, Reply, Waiting
from paddlelike.distributed.protocol.server import ServerState
from paddlelike.distributed.protocol.server.exchanges import Apply, Restore
from paddlelike.distributed.protocol.trainer import TrainerState
from paddlelike.distributed.protocol.trainer.retries import Call, Limits, Pause

GB = 1e9
CARD = 2.9 * GB  # bytes a second, each way
RECEIVE = 0.48 / GB  # processor seconds per byte
SEND = 0.25 / GB
CALL = 0.0002  # processor seconds per call
DELAY = 0.0001  # seconds one way


@dataclass(frozen=True)
class Load:
    """One kind of job, in bytes per trainer and server and round."""

    name: str
    push: float
    pull: float  # with the commit
    fetch: float = 0.0  # rows before the step
    rounds: int = 2


@dataclass
class Measured:
    """What the simulation counted, per round of the last rounds; bytes and calls of the busiest server."""

    seconds: float
    bytes_in: float
    bytes_out: float
    calls: float
    staged: float
    processor: float


class Resource:
    """A link in one direction, or a processor: one thing at a time."""

    def __init__(self) -> None:
        self.free = self.used = 0.0

    def take(self, start: float, cost: float) -> float:
        self.free = max(self.free, start) + cost
        self.used += cost
        return self.free


class Cluster:
    """All state machines of a job, and the time that its messages take."""

    def __init__(self, trainers: int, servers: int, load: Load) -> None:
        limits = Limits(call=1e9, window=1e9, barrier=1e9, poll=1e9)
        self.load, self.now, self.count = load, 0.0, 0
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.servers = [self.server(index, trainers, "first") for index in range(servers)]
        self.trainers = [
            TrainerState(
                trainer=tid,
                trainers=trainers,
                process=1,
                endpoints=[f"h:{index}" for index in range(servers)],
                plans=["p"] * servers,
                mode="sync",
                rollback=True,
                limits=limits,
            )
            for tid in range(trainers)
        ]
        self.links = [[Resource(), Resource()] for _ in range(trainers + servers)]  # in, out
        self.processors = [Resource() for _ in range(servers)]
        self.calls = [Counter[str]() for _ in range(servers)]
        self.bytes_in = [0.0] * servers
        self.bytes_out = [0.0] * servers
        self.staged, self.peak = [0.0] * servers, 0.0
        self.waiting: list[list[Callable[[], None]]] = [[] for _ in range(servers)]  # barrier calls on hold

    def server(self, index: int, trainers: int, incarnation: str) -> ServerState:
        return ServerState(
            incarnation=f"{incarnation} {index}",
            trainers=trainers,
            mode="sync",
            plan="p",
            now=0.0,
            checkpoints=lambda: (0,),
        )

    def later(self, when: float, action: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (when, self.count, action))

    def run(self) -> None:
        while self.events:
            self.now, _, action = heapq.heappop(self.events)
            action()

    # One message from trainer to server or back

    def travel(self, sender: int, receiver: int, size: float) -> float:
        """When a message of ``size`` bytes that is ready now is through."""
        out, into = self.links[sender][1], self.links[receiver][0]
        return max(out.take(self.now, size / CARD), into.take(self.now, size / CARD)) + DELAY

    def node(self, server: int) -> int:
        return len(self.trainers) + server

    def send(self, tid: int, call: Call, done: Callable[[], None]) -> None:
        size = self.load.push if isinstance(call.request, Push) else 0.0
        arrived = self.travel(tid, self.node(call.server), size)
        index = call.server
        self.calls[index][call.request.verb] += 1
        self.bytes_in[index] += size
        ready = self.processors[index].take(max(self.now, arrived - size / CARD), CALL + size * RECEIVE)
        self.later(max(arrived, ready), lambda: self.serve(tid, call, done))

    def serve(self, tid: int, call: Call, done: Callable[[], None]) -> None:
        state = self.servers[call.server]
        reply: Reply | None
        if isinstance(call.request, Push):
            reply = state.begin_push(call.request, self.now)
            if reply is None:
                reply = state.end_push(call.request, self.load.push, self.now)
                self.staged[call.server] += self.load.push
                self.peak = max(self.peak, self.staged[call.server])
        else:
            reply = getattr(state, call.request.verb.lower())(call.request, self.now)
        assert reply is not None
        if isinstance(reply, Waiting):  # a long poll: asked again when something has changed
            self.waiting[call.server].append(lambda: self.serve(tid, call, done))
        else:
            self.answer(tid, call, reply, done)
        self.work(call.server)

    def work(self, index: int) -> None:
        state = self.servers[index]
        work = state.take_work()
        if work is None:
            return
        assert isinstance(work, Apply | Restore)
        self.staged[index] = 0.0
        state.end_apply(work)
        woken, self.waiting[index] = self.waiting[index], []
        for again in woken:
            self.later(self.now, again)

    def answer(self, tid: int, call: Call, reply: Reply, done: Callable[[], None]) -> None:
        size = 0.0
        if isinstance(reply, CommitReply):
            size = self.load.pull
        elif isinstance(reply, PullReply):
            assert isinstance(call.request, Pull)
            size = self.load.fetch if call.request.slices == (1,) else self.load.pull
        self.bytes_out[call.server] += size
        sent = self.travel(self.node(call.server), tid, size)
        ready = self.processors[call.server].take(self.now, size * SEND)

        def received() -> None:
            self.trainers[tid].take_reply(call, reply, self.now)
            done()

        self.later(max(sent, ready), received)

    # A trainer's goals, one after the other

    def pursue(self, tid: int, goals: list[str], then: Callable[[], None]) -> None:
        """Goals of one trainer; ``then`` when the last is reached."""
        if not goals:
            then()
            return
        state = self.trainers[tid]
        if goals[0] == "fetch":
            state.pull(self.now, [(1,) for _ in self.servers])
        else:
            getattr(state, goals[0])(self.now)
        self.drive(tid, goals, then)

    def drive(self, tid: int, goals: list[str], then: Callable[[], None]) -> None:
        state = self.trainers[tid]
        order = range(len(self.servers))
        for index in (
            *order[tid % len(order) :],
            *order[: tid % len(order)],
        ):  # not all to the same server first
            step = state.next_step(index, self.now)
            if isinstance(step, Call):
                self.send(tid, step, lambda: self.drive(tid, goals, then))
            elif isinstance(step, Pause) and step.until < 1e8:
                self.later(step.until, lambda: self.drive(tid, goals, then))
        if state.outcome is not None and goals and goals is not self._ended.get(tid):
            self._ended[tid] = goals
            self.pursue(tid, goals[1:], then)

    def all(self, goals: list[str], *, only: int | None = None) -> float:
        """Let every trainer (or one) pursue goals; how long it took."""
        begin, ends = self.now, []
        self._ended: dict[int, list[str]] = {}
        for tid in range(len(self.trainers)) if only is None else [only]:
            self.pursue(tid, list(goals), lambda: ends.append(self.now))
        self.run()
        assert len(ends) == (len(self.trainers) if only is None else 1), "the job stands still"
        return max(ends) - begin

    def measure(self) -> Measured:
        """The rounds of this load, after everyone has joined."""
        self.all(["join"])
        calls = [counter.total() for counter in self.calls]
        into, out = list(self.bytes_in), list(self.bytes_out)
        used = [one.used for one in self.processors]
        fetch = ["fetch"] if self.load.fetch else []
        rounds = self.load.rounds
        seconds = self.all([*fetch, "push", "commit"] * rounds)
        return Measured(
            seconds / rounds,
            max(now - then for now, then in zip(self.bytes_in, into, strict=True)) / rounds,
            max(now - then for now, then in zip(self.bytes_out, out, strict=True)) / rounds,
            max(now.total() - then for now, then in zip(self.calls, calls, strict=True)) / rounds,
            self.peak,
            max(now.used - then for now, then in zip(self.processors, used, strict=True)) / rounds,
        )


def loads(trainers: int, servers: int) -> dict[str, Load]:
    rows = 100_000 * 64 * 4 / servers
    return {
        "all dense": Load("100 GB dense", 100 * GB / servers, 100 * GB / servers, rounds=1),
        "tables": Load("100 k rows of 64 floats", rows, 0.0, fetch=rows),
        "1 GB dense": Load("1 GB dense", GB / servers, GB / servers),
    }


def expected(load: Load, trainers: int, servers: int) -> Measured:
    """The page: formulas, nothing else. The phases of a round follow each other: all wait at its barriers."""
    into, out = trainers * load.push, trainers * (load.pull + load.fetch)
    phases = [(load.push, RECEIVE), (load.pull, SEND), *([(load.fetch, SEND)] if load.fetch else [])]
    seconds = processor = 0.0
    for size, cost in phases:
        busy = trainers * (CALL + size * cost)
        seconds += max(
            busy, trainers * size / CARD, servers * size / CARD
        )  # processor, server's card, trainer's
        processor += busy
    return Measured(seconds, into, out, trainers * len(phases), trainers * load.push, processor)


def recovery(trainers: int, servers: int) -> tuple[Counter[str], float]:
    """Calls to one server, and the bytes it sent, until all are back after another server was restarted."""
    load = Load("1 GB dense", GB / servers, GB / servers)
    cluster = Cluster(trainers, servers, load)
    cluster.all(["join", "push", "commit"])
    cluster.servers[0] = cluster.server(0, trainers, "second")
    cluster.calls, cluster.bytes_out = [Counter() for _ in range(servers)], [0.0] * servers
    cluster.all(["push"])
    return cluster.calls[-1], cluster.bytes_out[-1]


def save_by_trainer_0(trainers: int, servers: int, size: float) -> float:
    """Seconds until trainer 0 has pulled ``size`` bytes from all servers."""
    cluster = Cluster(trainers, servers, Load("save", 0.0, 0.0, fetch=size / servers))
    cluster.all(["join"])
    return cluster.all(["fetch"], only=0)


def check(trainers: int = 100, servers: int = 20) -> list[tuple[str, str, float, float, float]]:
    """(load, quantity, by arithmetic, simulated, how far they may be apart)."""
    found = []
    for name, load in loads(trainers, servers).items():
        want, have = expected(load, trainers, servers), Cluster(trainers, servers, load).measure()
        found += [
            (name, "seconds a round", want.seconds, have.seconds, 0.15),
            (name, "GB into a server", want.bytes_in / GB, have.bytes_in / GB, 1e-9),
            (name, "GB out of a server", want.bytes_out / GB, have.bytes_out / GB, 1e-9),
            (name, "calls to a server", want.calls, have.calls, 1e-9),
            (name, "GB of staging", want.staged / GB, have.staged / GB, 1e-9),
            (name, "processor seconds", want.processor, have.processor, 1e-6),
        ]
    seconds = save_by_trainer_0(trainers, servers, 300 * GB)
    found.append(("save", "seconds by trainer 0", 300 * GB / CARD, seconds, 0.05))
    calls, out = recovery(trainers, servers)
    found.append(("a lost server", "GB out of another", trainers / servers, out / GB, 1e-9))
    found.append(("a lost server", "Hellos a trainer", 2.0, calls["Hello"] / trainers, 0.5))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trainers", type=int, default=100)
    parser.add_argument("--servers", type=int, default=20)
    args = parser.parse_args()
    wrong = 0
    print(f"{'':<16}{'':<24}{'arithmetic':>12}{'simulated':>12}")
    for name, what, want, have, apart in check(args.trainers, args.servers):
        ok = abs(have - want) <= apart * abs(want)
        wrong += not ok
        print(f"{name:<16}{what:<24}{want:>12.4g}{have:>12.4g}{'' if ok else '  <- differs'}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
