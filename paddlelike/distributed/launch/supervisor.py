"""Watching a job: starts its processes, waits for the workers, ends the servers, restarts what failed.

A job fails when one of its processes does. It is restarted as a whole, since a server that died takes its
parameters with it and the others have moved on: every process begins again, and the script goes on from
its last save. (Or only the process is restarted, where servers can go back to a checkpoint while they run.)
Restarted are processes that were killed, or that ended with ``RESTART`` (75, the ``EX_TEMPFAIL`` of
sysexits.h): what a trainer or server ends with when others were lost. Any other exit code is an error of
the script, which another attempt would only repeat. Servers end together, when all trainers have closed; one
that ends long before the others was told to end by somebody else, and counts as lost.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from paddlelike.distributed.launch.plan import ProcessPlan

__all__ = ["RESTART", "Slot", "Supervisor", "explain_code", "shell_code"]

RESTART: Final = 75

_SETTLE: Final = 1.0  # seconds in which the cause of a failure may still come to light
_NOTICE: Final = 3.0  # seconds in which trainers of other launchers call a server again


class Slot(Protocol):
    """The place of one process, whichever engine owns it."""

    plan: ProcessPlan

    async def run(self, *, attempt: int) -> int:
        """Start the process and wait for its end: the exit code, or minus the signal that ended it."""

    async def send(self, number: int) -> None:
        """Send a signal to the process and its children, if it runs."""

    async def tail(self) -> str:
        """The last lines of its log."""


@dataclass(frozen=True, slots=True)
class _Failure:
    slot: Slot
    code: int
    seconds: float

    @property
    def can_be_restarted(self) -> bool:
        return self.code <= 0 or self.code == RESTART


def explain_code(code: int) -> str:
    """An exit code in words.

    >>> explain_code(-9), explain_code(1)
    ('was killed by SIGKILL', 'ended with exit code 1')
    """
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    if code == 0:
        return "ended long before the other servers"
    return f"ended with exit code {code}" + (": restart from the last save" if code == RESTART else "")


def shell_code(code: int) -> int:
    """The exit code by which a shell reports the same end.

    >>> shell_code(-9), shell_code(1)
    (137, 1)
    """
    return 128 - code if code < 0 else code or RESTART


def _backoff(attempt: int) -> float:
    """Seconds before the next attempt."""
    return float(min(0.05 * 2**attempt, 5.0))


class Supervisor:
    """Runs a job to its end.

    Parameters
    ----------
    slots
        The job's processes, those of this machine or all.
    max_restarts
        How often the job may be restarted, or each process.
    grace
        Seconds that servers have to end by themselves after the last worker, and that any process has
        to end after it was asked to.
    tell
        Called with every line of the report.
    prepare
        Called before each attempt.
    alone
        Restart only the process that failed.
    shared
        Other launchers have processes of the same job. They learn of a restart by what their trainers find at
        the servers here, which therefore stay for a moment before they are restarted once more.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        *,
        max_restarts: int,
        grace: float,
        tell: Callable[[str], None],
        prepare: Callable[[], Awaitable[None]] | None = None,
        alone: bool = False,
        shared: bool = False,
    ) -> None:
        self.slots = slots
        self.max_restarts = max_restarts
        self.grace = grace
        self.tell = tell
        self._prepare = prepare
        self._alone = alone
        self._shared = shared
        self._restarts: Counter[str] = Counter()  # of each process, where they are restarted alone
        self.interrupted: int | None = None
        self._interrupt = asyncio.Event()
        self._running: dict[asyncio.Task[int], Slot] = {}

    def interrupt(self, number: int) -> None:
        """End the job as this signal asks; a second call ends it at once."""
        number, self.interrupted = (number, number) if self.interrupted is None else (signal.SIGKILL, number)
        for slot in set(self._running.values()):
            task = asyncio.ensure_future(slot.send(number))
            task.add_done_callback(lambda done: done.exception())
        self._interrupt.set()

    async def run(self) -> int:
        """Run the job until it has ended: 0, or the exit code for the shell."""
        attempt = 0
        while True:
            if self._prepare is not None:
                await self._prepare()
            failure = await self._attempt(attempt)
            if self.interrupted is not None:
                return 128 + self.interrupted
            if failure is None:
                return 0
            await self._report(failure)
            if not failure.can_be_restarted:
                return shell_code(failure.code)
            if self._alone or attempt == self.max_restarts:
                self.tell(f"no restart is left of {self.max_restarts}")
                return shell_code(failure.code)
            attempt += 1
            self.tell(f"restart {attempt} of {self.max_restarts}, of the whole job")
            await self._pause(_backoff(attempt))

    async def _attempt(self, attempt: int) -> _Failure | None:
        """One attempt, up to the end of every process; what failed first, if something did."""
        begin = time.monotonic()
        self._running = {asyncio.ensure_future(slot.run(attempt=attempt)): slot for slot in self.slots}
        try:
            while await self._watch():
                failure = await self._cause(time.monotonic() - begin)
                if not self._alone or not await self._restart_alone(failure):
                    return failure
            if self.interrupted is None:
                await self._wait_for(self._unfinished())  # servers that end by themselves
            return None
        finally:
            await self._end_all()

    async def _restart_alone(self, failure: _Failure) -> bool:
        """Start the process that failed again, beside the others; False if it may not be."""
        slot = failure.slot
        starts = self._restarts[str(slot.plan)] + 1
        if not failure.can_be_restarted or starts > self.max_restarts:
            return False
        await self._report(failure)
        self.tell(f"restart {starts} of {self.max_restarts}, of {slot.plan} alone")
        self._restarts[str(slot.plan)] = starts
        self._running = {task: other for task, other in self._running.items() if other is not slot}
        await self._pause(_backoff(starts))
        if self.interrupted is None:
            self._running[asyncio.ensure_future(slot.run(attempt=starts))] = slot
        return True

    async def _watch(self) -> bool:
        """Wait until every worker has ended well (False), or something failed (True)."""
        interrupt = asyncio.ensure_future(self._interrupt.wait())
        try:
            while True:
                if any(task.done() and task.result() != 0 for task in self._running):
                    return self.interrupted is None
                waiting = [task for task in (self._tasks("worker") or self._running) if not task.done()]
                if not waiting or self._interrupt.is_set():
                    return False
                servers = [task.done() for task in self._tasks("server")]
                some = any(servers) and not all(servers)
                ended, _ = await asyncio.wait(
                    [*self._unfinished(), interrupt],
                    timeout=self.grace + _SETTLE if some else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if some and not ended:
                    return True
        finally:
            interrupt.cancel()

    async def _cause(self, seconds: float) -> _Failure:
        """The failure that others follow from; it may be reported a moment after theirs."""
        failures = self._failures(seconds)
        if not any(failure.can_be_restarted for failure in failures):
            await asyncio.wait(self._running, timeout=min(_SETTLE, self.grace))
            failures = self._failures(seconds)
        if self._shared and all(failure.code == RESTART for failure in failures):
            await self._pause(_NOTICE)
        return next((failure for failure in failures if failure.can_be_restarted), failures[0])

    def _failures(self, seconds: float) -> list[_Failure]:
        ended = [(slot, task.result()) for task, slot in self._running.items() if task.done()]
        failed = [(slot, code) for slot, code in ended if code != 0]
        if not failed:  # a server is missing
            failed = [(slot, code) for slot, code in ended if slot.plan.kind == "server"]
        return [_Failure(slot, code, seconds) for slot, code in failed]

    async def _end_all(self) -> None:
        """End what still runs: SIGTERM, then SIGKILL."""
        if self.interrupted is not None:
            await self._wait_for(self._unfinished())  # they got the signal that we got
        for number in (signal.SIGTERM, signal.SIGKILL):
            unfinished = self._unfinished()
            if not unfinished:
                break
            await asyncio.gather(*(self._running[task].send(number) for task in unfinished))
            await self._wait_for(unfinished)

    async def _wait_for(self, tasks: Sequence[asyncio.Task[int]]) -> None:
        if tasks:
            await asyncio.wait(tasks, timeout=self.grace)

    async def _pause(self, seconds: float) -> None:
        await asyncio.wait([asyncio.ensure_future(self._interrupt.wait())], timeout=seconds)

    def _tasks(self, kind: str) -> list[asyncio.Task[int]]:
        return [task for task, slot in self._running.items() if slot.plan.kind == kind]

    def _unfinished(self) -> list[asyncio.Task[int]]:
        return [task for task in self._running if not task.done()]

    async def _report(self, failure: _Failure) -> None:
        plan = failure.slot.plan
        what = f"{plan} {explain_code(failure.code)} after {failure.seconds:.1f} s"
        lines = (await failure.slot.tail()).splitlines()
        self.tell(f"{what}; its log ({plan.log}) ends:" if lines else what)
        for line in lines:
            self.tell(f"  {line}")
