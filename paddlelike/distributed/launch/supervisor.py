"""Starts the processes of a job, waits for the workers, ends the servers, and restarts after failures.

A job fails when one of its processes does. It is restarted as a whole, since a lost server takes its
parameters with it and the other servers are at later rounds: every process starts again, and the script
resumes from its last save. (Or only the process is restarted, where servers can roll back to a checkpoint.)
A failure leads to a restart if the process was killed, or ended with ``RESTART`` (75, the ``EX_TEMPFAIL`` of
sysexits.h), which is how trainers and servers end when others are lost. Any other exit code is an error of
the script, which another attempt would only repeat. Servers end together, when all trainers have left; one
that ends long before the others was stopped from outside, and counts as lost.
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

_SETTLE: Final = 1.0  # seconds in which the cause of a failure may still show
_NOTICE: Final = 3.0  # seconds in which trainers of other launchers call a server again


class Slot(Protocol):
    """Runs one process of a job, again after each restart; every engine has its own kind."""

    plan: ProcessPlan

    async def run(self, *, attempt: int) -> int:
        """Start the process, wait for its end and return its exit code, or minus the signal that ended it."""

    async def send(self, signum: int) -> None:
        """Send a signal to the process and its children, if it runs."""

    async def tail(self) -> str:
        """Return the last lines of its log."""


@dataclass(frozen=True, slots=True)
class _Failure:
    slot: Slot
    code: int
    seconds: float

    @property
    def is_restartable(self) -> bool:
        return self.code <= 0 or self.code == RESTART


def explain_code(code: int) -> str:
    """Return an exit code in words.

    >>> explain_code(-9), explain_code(1)
    ('was killed by SIGKILL', 'ended with exit code 1')
    """
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    if code == 0:
        return "ended long before the other servers"
    return f"ended with exit code {code}" + (": restart from the last save" if code == RESTART else "")


def shell_code(code: int) -> int:
    """Return the exit code by which a shell reports the same end.

    >>> shell_code(-9), shell_code(1)
    (137, 1)
    """
    return 128 - code if code < 0 else code or RESTART


def _backoff(attempt: int) -> float:
    """Return the seconds before the next attempt."""
    return float(min(0.05 * 2**attempt, 5.0))


class Supervisor:
    """Runs a job to its end.

    Parameters
    ----------
    slots
        The job's processes: those of this machine, or all.
    max_restarts
        How often the job, or each process, may be restarted.
    grace
        Seconds that servers have to end by themselves after the last worker, and that any process has
        to end after it was asked to.
    report
        Called with every line of the report.
    notify
        Called with a process's plan when it starts (and None), and when it has ended (and its exit code).
    prepare
        Called before each attempt.
    restart_single
        Restart only the process that failed.
    shared
        Whether other launchers have processes of the same job. They learn of a restart when their trainers
        call the servers here, which therefore keep running for a moment before they are restarted again.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        *,
        max_restarts: int,
        grace: float,
        report: Callable[[str], None],
        notify: Callable[[ProcessPlan, int | None], None] = lambda plan, code: None,
        prepare: Callable[[], Awaitable[None]] | None = None,
        restart_single: bool = False,
        shared: bool = False,
    ) -> None:
        self.slots = slots
        self.max_restarts = max_restarts
        self.grace = grace
        self.report = report
        self.interrupted: int | None = None  # the first signal
        self._notify = notify
        self._prepare = prepare
        self._restart_single = restart_single
        self._shared = shared
        self._restarts: Counter[str] = Counter()  # by process, where processes are restarted singly
        self._interrupt = asyncio.Event()
        self._running: dict[asyncio.Task[int], Slot] = {}

    def interrupt(self, signum: int) -> None:
        """End the job with this signal, and report it; a second call kills the processes."""
        name, count = signal.Signals(signum).name, len(self._unfinished())
        if self.interrupted is None:
            self.interrupted = signum
            self.report(
                f"{name}: asked {count} processes to end, within {self.grace:g} s each; "
                "a second signal kills them"
            )
        else:
            signum = signal.SIGKILL
            self.report(f"{name} again: killed {count} processes")
        for slot in set(self._running.values()):
            task = asyncio.ensure_future(slot.send(signum))
            task.add_done_callback(lambda done: done.exception())
        self._interrupt.set()

    async def run(self) -> int:
        """Run the job to its end; return 0, or the exit code for the shell."""
        attempt = 0
        while True:
            if self._prepare is not None:
                await self._prepare()
            failure = await self._attempt(attempt)
            if self.interrupted is not None:
                self.report(f"the job was ended by {signal.Signals(self.interrupted).name}")
                return 128 + self.interrupted
            if failure is None:
                return 0
            await self._report_failure(failure)
            if not failure.is_restartable:
                return shell_code(failure.code)
            if self._restart_single or attempt == self.max_restarts:
                self.report(f"no restart is left of {self.max_restarts}")
                return shell_code(failure.code)
            attempt += 1
            self.report(f"restart {attempt} of {self.max_restarts}, of the whole job")
            await self._pause(_backoff(attempt))

    async def _attempt(self, attempt: int) -> _Failure | None:
        """Run one attempt until every process has ended; return the first failure, if any."""
        begin = time.monotonic()
        self._running = {}
        for slot in self.slots:
            self._start(slot, attempt)
        try:
            while await self._wait_for_workers():
                failure = await self._find_cause(time.monotonic() - begin)
                if not self._restart_single or not await self._restart_alone(failure):
                    return failure
            if self.interrupted is None:
                await self._wait_for(self._unfinished())  # servers that end by themselves
            return None
        finally:
            await self._end_all()

    def _start(self, slot: Slot, attempt: int) -> None:
        async def run() -> int:
            self._notify(slot.plan, None)
            code = await slot.run(attempt=attempt)
            self._notify(slot.plan, code)
            return code

        self._running[asyncio.ensure_future(run())] = slot

    async def _restart_alone(self, failure: _Failure) -> bool:
        """Restart the process that failed while the others run; return False if that is not allowed."""
        slot = failure.slot
        starts = self._restarts[str(slot.plan)] + 1
        if not failure.is_restartable or starts > self.max_restarts:
            return False
        await self._report_failure(failure)
        self.report(f"restart {starts} of {self.max_restarts}, of {slot.plan} alone")
        self._restarts[str(slot.plan)] = starts
        self._running = {task: other for task, other in self._running.items() if other is not slot}
        await self._pause(_backoff(starts))
        if self.interrupted is None:
            self._start(slot, starts)
        return True

    async def _wait_for_workers(self) -> bool:
        """Wait until every worker has ended with 0, and return False; or until a failure, and return True."""
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

    async def _find_cause(self, seconds: float) -> _Failure:
        """Return the failure that caused the others, which may show a moment after them."""
        failures = self._failures(seconds)
        if not any(failure.is_restartable for failure in failures):
            await asyncio.wait(self._running, timeout=min(_SETTLE, self.grace))
            failures = self._failures(seconds)
        if self._shared and all(failure.code == RESTART for failure in failures):
            await self._pause(_NOTICE)
        return next((failure for failure in failures if failure.is_restartable), failures[0])

    def _failures(self, seconds: float) -> list[_Failure]:
        ended = [(slot, task.result()) for task, slot in self._running.items() if task.done()]
        failed = [(slot, code) for slot, code in ended if code != 0]
        if not failed:  # a server ended too early
            failed = [(slot, code) for slot, code in ended if slot.plan.kind == "server"]
        return [_Failure(slot, code, seconds) for slot, code in failed]

    async def _end_all(self) -> None:
        """End the processes that still run, with SIGTERM, then with SIGKILL."""
        if self.interrupted is not None:
            await self._wait_for(self._unfinished())  # they were sent the signal of the interrupt
        for signum in (signal.SIGTERM, signal.SIGKILL):
            unfinished = self._unfinished()
            if not unfinished:
                break
            await asyncio.gather(*(self._running[task].send(signum) for task in unfinished))
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

    async def _report_failure(self, failure: _Failure) -> None:
        plan = failure.slot.plan
        what = f"{plan} {explain_code(failure.code)} after {failure.seconds:.1f} s"
        lines = (await failure.slot.tail()).splitlines()
        self.report(f"{what}; its log ({plan.log}) ends:" if lines else what)
        for line in lines:
            self.report(f"  {line}")
