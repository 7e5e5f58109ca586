"""Launchers of one job agree on its attempts, whoever fails, and however often."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from paddlelike.distributed.launch.peers import Peers
from paddlelike.distributed.launch.processes_plan import ProcessPlan
from paddlelike.distributed.launch.supervisor import RESTART, Supervisor

A, B = "10.0.0.1:1", "10.0.0.2:1"


@dataclass
class World:
    """The servers and workers of two launchers; a worker that meets servers of two attempts ends with 75.

    ``failures``: by endpoint of its launcher, at which attempts a server is killed. ``notice``: seconds after
    which a launcher sees what the servers of the other one have reached.
    """

    failures: dict[str, list[int]]
    notice: dict[str, float]
    attempts: dict[str, int] = field(default_factory=dict)
    starts: list[str] = field(default_factory=list)
    done: set[str] = field(default_factory=set)


@dataclass
class FakeSlot:
    world: World
    endpoint: str  # of the server of its launcher
    plan: ProcessPlan
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, *, attempt: int) -> int:
        self.world.starts.append(f"{self.plan.kind} {self.endpoint} {attempt}")
        self.ended.clear()
        return await (self.serve(attempt) if self.plan.kind == "server" else self.train(attempt))

    async def serve(self, attempt: int) -> int:
        self.world.attempts[self.endpoint] = attempt
        if attempt in self.world.failures[self.endpoint]:
            await asyncio.sleep(0.05)
            return -9
        await self.ended.wait()
        return 0

    async def train(self, attempt: int) -> int:
        for _ in range(20):  # steps
            await asyncio.sleep(0.005)
            if self.ended.is_set():
                return 0
            if set(self.world.attempts.values()) != {attempt}:
                return RESTART
        self.world.done.add(self.endpoint)
        while len(self.world.done) < 2 and not self.ended.is_set():  # servers wait for all trainers
            await asyncio.sleep(0.005)
            if set(self.world.attempts.values()) != {attempt}:
                self.world.done.discard(self.endpoint)
                return RESTART
        return 0

    async def send(self, signum: int) -> None:
        self.ended.set()

    async def tail(self) -> str:
        return ""


async def tell(world: World, peers: Peers, endpoint: str, seconds: float) -> None:
    """Tell a launcher what the servers of the other one have reached, some time later."""
    while True:
        attempt = world.attempts.get(endpoint, 0)
        await asyncio.sleep(seconds)
        peers.note({endpoint: attempt})


def run_job(failures: dict[str, list[int]], notice: dict[str, float], max_restarts: int) -> World:
    """Run two launchers to their ends, which must be good."""
    world = World(failures, notice, {A: 0, B: 0})

    async def launch(here: str, there: str) -> int:
        peers = Peers([there])
        slots = [FakeSlot(world, here, ProcessPlan(kind, 0, "", "", {})) for kind in ("server", "worker")]
        telling = asyncio.ensure_future(tell(world, peers, there, notice[here]))
        supervisor = Supervisor(
            slots, max_restarts=max_restarts, grace=0.05, report=lambda line: None, peers=peers
        )
        try:
            return await supervisor.run()
        finally:
            telling.cancel()

    async def both() -> list[int]:
        return await asyncio.wait_for(asyncio.gather(launch(A, B), launch(B, A)), 60)

    assert asyncio.run(both()) == [0, 0]
    return world


def test_a_launcher_joins_the_attempt_of_its_peer() -> None:
    world = run_job({A: [0], B: []}, {A: 0.01, B: 0.01}, max_restarts=1)
    assert world.attempts == {A: 1, B: 1}


def test_launchers_that_fail_at_once_meet_at_the_next_attempt() -> None:
    world = run_job({A: [0], B: [0]}, {A: 0.01, B: 0.01}, max_restarts=1)
    assert world.attempts == {A: 1, B: 1}


def test_two_quick_failures_of_a_launcher_use_one_attempt_of_its_peer() -> None:
    world = run_job({A: [0, 1], B: []}, {A: 0.01, B: 0.5}, max_restarts=2)
    assert world.attempts == {A: 2, B: 2}


def test_workers_wait_for_the_servers_of_the_other_launcher() -> None:
    world = run_job({A: [0], B: []}, {A: 0.01, B: 0.3}, max_restarts=1)
    assert world.starts.index(f"server {B} 1") < world.starts.index(f"worker {A} 1")
