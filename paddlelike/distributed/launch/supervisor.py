"""Starts the processes of a job, waits for the workers, ends the servers, and restarts after failures.

A job fails when one of its processes does. It is restarted as a whole, since a lost server takes its
parameters with it and the other servers are at later rounds: every process starts again, and the script
resumes from its last save. (Where servers can roll back to a checkpoint, only the failed process is
restarted.) A failure leads to a restart if the process was killed or ended with ``RESTART`` (75, the
``EX_TEMPFAIL`` of sysexits.h): trainers and servers end so when others are lost. Any other exit code is an
error of the script, which another attempt would repeat. Servers end together, when all trainers have left; a
server that ends long before the others was stopped from outside, and counts as lost. The launchers of one job
agree on the number of the attempt (see ``peers``).
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from paddlelike.distributed.launch.peers import Peers
from paddlelike.distributed.launch.processes_plan import ProcessPlan

RESTART: Final = 75

_SETTLE: Final = 1.0  # seconds in which the cause of a failure may still show
_FOLLOW: Final = 5.0  # the same if all processes that ended had lost another process
_PEERS: Final = 180.0  # seconds for other launchers to restart their servers, as for calls


class Slot(Protocol):
    """Runs one process of a job, again after each restart. Every way to start processes has its class."""

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


class _Overtaken:
    """Raised when another launcher has reached a later attempt of the job."""


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
    """Return the exit code that a shell reports for the same end of a process.

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
        The largest number of restarts of the job, or of each process.
    grace
        Seconds that servers have to end by themselves after the last worker, and that any process has to
        end after a signal.
    report
        Called with every line of the report.
    notify
        Called with the plan of a process and None when the process starts, and with its plan and exit
        code when it has ended.
    prepare
        Called before each attempt.
    restart_single
        Restart only the process that failed.
    peers
        The servers of other launchers of the same job, if there are any: the job is restarted when one of
        them has reached a later attempt, and workers start when all have reached the same attempt.
    replan
        Returns the processes with which the job continues after a failure. None means the same processes.
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
        peers: Peers | None = None,
        replan: Callable[[], Sequence[Slot]] | None = None,
    ) -> None:
        self.slots = slots
        self.max_restarts = max_restarts
        self.grace = grace
        self.report = report
        self.interrupted: int | None = None  # the first signal
        self._notify = notify
        self._prepare = prepare
        self._restart_single = restart_single
        self._peers = peers
        self._replan = replan
        self._restarts: Counter[str] = Counter()  # by process, where processes are restarted singly
        self._interrupt = asyncio.Event()
        self._running: dict[asyncio.Task[int], Slot] = {}

    def interrupt(self, signum: int) -> None:
        """End the job with this signal, and report that. A second call kills the processes."""
        name, count = signal.Signals(signum).name, len(self._list_unfinished())
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
            code = RESTART
            if isinstance(failure, _Failure):
                await self._report_failure(failure)
                code = failure.code
                if not failure.is_restartable:
                    return shell_code(code)
            else:
                self.report("another launcher has restarted the job")
            attempt = max(attempt + 1, self._peers.newest if self._peers is not None else 0)
            if self._restart_single or attempt > self.max_restarts:
                self.report(f"no restart is left of {self.max_restarts}")
                return shell_code(code)
            whole = "of the whole job"
            if self._replan is not None:
                count, self.slots = len(self.slots), self._replan()
                whole = whole if len(self.slots) == count else f"with {len(self.slots)} workers"
            self.report(f"restart {attempt} of {self.max_restarts}, {whole}")
            await self._pause(_backoff(attempt))

    async def _attempt(self, attempt: int) -> _Failure | _Overtaken | None:
        """Run one attempt until every process has ended; return the reason for an early stop, if any."""
        begin = time.monotonic()
        self._running = {}
        try:
            for slot in self.slots:
                if slot.plan.kind == "server":
                    self._start(slot, attempt)
            if self._running:
                await self._wait_for_peers(attempt)
            for slot in self.slots:
                if slot.plan.kind != "server" and not self._is_overtaken(attempt):
                    self._start(slot, attempt)
            while await self._wait_for_workers(attempt):
                if self._is_overtaken(attempt):
                    return _Overtaken()
                failure = await self._find_cause(time.monotonic() - begin)
                if not self._restart_single or not await self._restart_alone(failure):
                    return failure
            if self.interrupted is None:
                await self._wait_for(self._list_unfinished())  # servers that end by themselves
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

    def _is_overtaken(self, attempt: int) -> bool:
        """Return whether another launcher has reached a later attempt."""
        return self._peers is not None and self._peers.newest > attempt

    async def _wait_for_peers(self, attempt: int) -> None:
        """Wait until the servers of other launchers have reached this attempt, or something else happens."""
        if self._peers is None or not (behind := self._peers.behind(attempt)):
            return
        self.report(f"waits for other launchers to restart {', '.join(behind)}")
        ends = [self._peers.wait_until_at(attempt), self._peers.wait_until_beyond(attempt)]
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(end) for end in ends]
        waits.append(asyncio.ensure_future(self._interrupt.wait()))
        await asyncio.wait([*waits, *self._running], timeout=_PEERS, return_when=asyncio.FIRST_COMPLETED)
        for one in waits:
            one.cancel()

    async def _wait_for_workers(self, attempt: int) -> bool:
        """Wait until every worker has ended with 0, and return False; or until a failure, and return True."""
        news: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._interrupt.wait())]
        if self._peers is not None:
            news.append(asyncio.ensure_future(self._peers.wait_until_beyond(attempt)))
        try:
            while True:
                if self._is_overtaken(attempt):
                    return self.interrupted is None
                if any(task.done() and task.result() != 0 for task in self._running):
                    return self.interrupted is None
                waiting = [task for task in (self._tasks("worker") or self._running) if not task.done()]
                if not waiting or self._interrupt.is_set():
                    return False
                servers = [task.done() for task in self._tasks("server")]
                some = any(servers) and not all(servers)
                ended, _ = await asyncio.wait(
                    [*self._list_unfinished(), *news],
                    timeout=self.grace + _SETTLE if some else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if some and not ended:
                    return True
        finally:
            for one in news:
                one.cancel()

    async def _find_cause(self, seconds: float) -> _Failure:
        """Return the failure that caused the other failures, even if it was noticed after them.

        It is a killed process, else an error of the script; processes that end with ``RESTART`` follow such a
        failure.
        """
        begin = time.monotonic()
        while True:
            failures = self._failures(seconds)
            wait = _FOLLOW if all(failure.code == RESTART for failure in failures) else _SETTLE
            left = begin + min(wait, self.grace) - time.monotonic()
            unfinished = self._list_unfinished()
            if left <= 0 or any(failure.code <= 0 for failure in failures) or not unfinished:
                return min(failures, key=lambda failure: (failure.code > 0) + (failure.code == RESTART))
            await asyncio.wait(unfinished, timeout=left, return_when=asyncio.FIRST_COMPLETED)

    def _failures(self, seconds: float) -> list[_Failure]:
        ended = [(slot, task.result()) for task, slot in self._running.items() if task.done()]
        failed = [(slot, code) for slot, code in ended if code != 0]
        if not failed:  # a server ended too early
            failed = [(slot, code) for slot, code in ended if slot.plan.kind == "server"]
        return [_Failure(slot, code, seconds) for slot, code in failed]

    async def _end_all(self) -> None:
        """End the processes that still run, with SIGTERM, then with SIGKILL."""
        if self.interrupted is not None:
            await self._wait_for(self._list_unfinished())  # they were sent the signal of the interrupt
        for signum in (signal.SIGTERM, signal.SIGKILL):
            unfinished = self._list_unfinished()
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

    def _list_unfinished(self) -> list[asyncio.Task[int]]:
        return [task for task in self._running if not task.done()]

    async def _report_failure(self, failure: _Failure) -> None:
        plan = failure.slot.plan
        what = f"{plan} {explain_code(failure.code)} after {failure.seconds:.1f} s"
        lines = (await failure.slot.tail()).splitlines()
        self.report(f"{what}; its log ({plan.log}) ends:" if lines else what)
        for line in lines:
            self.report(f"  {line}")
