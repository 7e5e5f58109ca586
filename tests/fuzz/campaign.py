"""Many inputs in several processes. An input is made from seed, target and number alone.

So a worker that is killed by its input costs nothing: the number is known, and the input is made again.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import inspect
import multiprocessing
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest import mock

from paddlelike import ops
from paddlelike.errors import PaddlelikeError
from tests.fuzz.guard import PEAK, Fault, Guard, watch_calls
from tests.fuzz.readers import Target
from tests.helpers.fresh import fresh_programs

__all__ = ["Found", "Outcome", "make", "run_target", "set_up_target"]

_HANG: Final = 300.0  # seconds without a sign of life: the guard notices more, unless nothing reaches Python
_ROOM: Final = 2 << 30  # address space beyond what a worker begins with: memory that Python does not trace


@dataclass(frozen=True)
class Found:
    """A fault and the input that shows it."""

    target: str
    what: str  # the error's type and text
    where: str  # the last line of the package that it came through
    data: bytes

    @property
    def file_name(self) -> str:
        """``<target>-<hash>.bin``."""
        return f"{self.target}-{hashlib.sha256(self.data).hexdigest()[:12]}.bin"

    @property
    def kind(self) -> tuple[str, str, str]:
        """Faults of one kind are told once."""
        return self.target, re.sub(r"'.*'|\".*\"|\d+", "_", self.what.split(": ")[0])[:80], self.where


@dataclass
class Outcome:
    """What came of the inputs of one target."""

    accepted: int = 0
    refused: int = 0
    faults: dict[tuple[str, str, str], list[Any]] = field(default_factory=dict)  # kind: [Found, how often]

    @property
    def inputs(self) -> int:
        """All of them."""
        return self.accepted + self.refused + self.fault_count

    @property
    def fault_count(self) -> int:
        """Inputs that broke a promise."""
        return sum(count for _, count in self.faults.values())

    def add(self, other: Outcome) -> None:
        """Take over another outcome."""
        self.accepted += other.accepted
        self.refused += other.refused
        for kind, (found, count) in other.faults.items():
            self.faults.setdefault(kind, [found, 0])[1] += count

    def count(self, found: Found | bool) -> None:
        """One more input: accepted or not, or a fault."""
        if isinstance(found, bool):
            self.accepted += found
            self.refused += not found
            return
        self.faults.setdefault(found.kind, [found, 0])[1] += 1

    def __str__(self) -> str:
        return (
            f"{self.inputs:,} inputs, {self.accepted:,} accepted, {self.refused:,} refused, "
            f"{self.fault_count:,} faults"
        )


def make(target: Target, seed: int, number: int) -> bytes:
    """The input of that number, the same whenever it is made: manifests hold the time."""
    with mock.patch("time.gmtime", return_value=time.gmtime(0)):
        return target.make(Random(f"{seed}/{target.name}/{number}"))


def run_one(target: Target, guard: Guard, data: bytes) -> Found | bool:
    """Run an input: whether it was accepted, or the fault.

    One that takes too much memory runs again: the interpreter's table of interned strings, which grows by
    megabytes at once, may have grown just then.
    """
    found = _run(target, guard, data)
    return _run(target, guard, data) if isinstance(found, Found) and PEAK in found.what else found


def _run(target: Target, guard: Guard, data: bytes) -> Found | bool:
    try:
        target.run(data, guard)
        return True
    except PaddlelikeError as error:
        str(error)
        return False
    except Exception as error:
        what = str(error) if isinstance(error, Fault) else f"{type(error).__name__}: {error}"
        return Found(target.name, what[:300], _where(error), data)


def replay(target: Target, data: bytes) -> Found | bool:
    """Run one input, and show the fault's whole traceback."""
    root = Path(tempfile.mkdtemp(prefix="paddlelike-fuzz-"))
    try:
        with watch_calls(), fresh_programs(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            guard = set_up_target(target, root)
            try:
                target.run(data, guard)
            except PaddlelikeError as error:
                print(f"refused: {type(error).__name__}: {error}")
                return False
            except Exception as error:
                traceback.print_exc()
                return Found(target.name, str(error), _where(error), data)
        print(f"accepted; {guard.peak} bytes of memory at the peak, {len(data)} in the input")
        return True
    finally:
        shutil.rmtree(root, ignore_errors=True)


def run_target(
    target: Target, *, seed: int, count: int, jobs: int, until: float | None, progress: Callable[[int], None]
) -> Outcome:
    """Run ``count`` inputs, or as many as there is time for, in ``jobs`` processes."""
    context = multiprocessing.get_context("fork")
    root = Path(tempfile.mkdtemp(prefix="paddlelike-fuzz-"))
    outcome = Outcome()
    workers = [
        _Worker(context, target, root / str(job), seed, range(job, count, jobs), until) for job in range(jobs)
    ]
    try:
        while any(worker.alive for worker in workers):
            wait([worker.connection for worker in workers if worker.alive], timeout=0.5)
            for worker in workers:
                worker.look(outcome)
            progress(outcome.inputs + sum(worker.done for worker in workers if worker.alive))
    finally:
        for worker in workers:
            worker.end()
        shutil.rmtree(root, ignore_errors=True)
    return outcome


class _Worker:
    """A process that runs inputs, and is started again behind an input that kills it."""

    def __init__(
        self, context: Any, target: Target, root: Path, seed: int, numbers: range, until: float | None
    ) -> None:
        self._context, self._target, self._root, self._until = context, target, root, until
        self._seed, self._numbers = seed, numbers
        self._start()

    def _start(self) -> None:
        self._at = self._context.Value("q", -1, lock=False)  # the place of the input that runs
        self._seen, self._since = -1, time.monotonic()
        self.connection, theirs = self._context.Pipe(duplex=False)
        arguments = (self._target, self._root, self._seed, self._numbers, self._until, self._at, theirs)
        self._process = self._context.Process(target=_work, args=arguments, daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # of forks beside threads: those do not matter
            self._process.start()
        theirs.close()
        self.alive = True

    @property
    def done(self) -> int:
        """Inputs of this process so far."""
        return max(self._at.value, 0)

    def look(self, outcome: Outcome) -> None:
        """Take the result, or notice that the process hangs or is gone."""
        if not self.alive:
            return
        if self.connection.poll():
            try:
                result = self.connection.recv()
                if isinstance(result, str):
                    raise RuntimeError(f"the fuzzer itself failed:\n{result}")
                outcome.add(result)
                self.alive = False
                return
            except EOFError:
                self._process.join()
                self._go_on(outcome, f"the process ended with {self._process.exitcode}")
                return
        if self._at.value != self._seen:
            self._seen, self._since = self._at.value, time.monotonic()
        elif time.monotonic() - self._since > _HANG:
            self._process.kill()
            self._process.join()
            self._go_on(outcome, f"nothing for {_HANG:.0f} seconds")

    def _go_on(self, outcome: Outcome, what: str) -> None:
        place = self._at.value
        if place < 0:
            raise RuntimeError(
                f"the fuzzer itself failed before the first input of {self._target.name}: {what}"
            )
        data = make(self._target, self._seed, self._numbers[place])
        outcome.count(Found(self._target.name, what, "", data))
        outcome.refused += place  # how many of them were accepted is lost
        self._numbers = self._numbers[place + 1 :]
        if self._numbers:
            self._start()
        else:
            self.alive = False

    def end(self) -> None:
        """Stop it."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join()


def _work(
    target: Target, root: Path, seed: int, numbers: range, until: float | None, at: Any, out: Connection
) -> None:
    """The body of a worker process."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if not _dies_with_its_parent():
        return
    sys.stderr = open(os.devnull, "w")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _ROOM, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    outcome = Outcome()
    started = time.monotonic()
    setting_up = 0.0  # seconds, which no input has to share

    def begin(place: int) -> bool:
        nonlocal setting_up
        setting_up = setting_up or time.monotonic() - started
        at.value = place
        return until is not None and time.monotonic() > until + setting_up

    try:
        for found in _results(target, root, seed, numbers, begin):
            outcome.count(found)
        out.send(outcome)
    except Exception:
        out.send(traceback.format_exc())


def _dies_with_its_parent() -> bool:
    """Ask the system to end this process with the one that started it; False when that is gone already."""
    parent = multiprocessing.parent_process()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    return parent is not None and os.getppid() == parent.pid


def _results(target: Target, root: Path, seed: int, numbers: range, begin: Callable[[int], Any]) -> Any:
    with watch_calls(), fresh_programs(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guard = set_up_target(target, root)
        for place, number in enumerate(numbers):
            if begin(place):
                return
            yield run_one(target, guard, make(target, seed, number))


def set_up_target(target: Target, root: Path) -> Guard:
    """Set up the directory, and run a few inputs for what is imported or made at the first use."""
    import difflib  # noqa: F401
    import linecache  # noqa: F401

    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    guard = Guard(root)
    if target.set_up is not None:
        target.set_up(Path(guard.root))
    for number in range(30):
        with contextlib.suppress(Exception):  # judged when they come in the campaign
            target.run(make(target, -1, number), guard)
    ops.load_operators()
    for name, module in list(sys.modules.items()):
        if name.startswith("paddlelike."):
            for thing in list(vars(module).values()):
                if isinstance(thing, type) and is_dataclass(thing):
                    inspect.signature(thing)  # which compiles its ``__init__``
    return guard


def _where(error: BaseException) -> str:
    """The last line of the package in the traceback."""
    frames = traceback.extract_tb(
        (error.__cause__ if isinstance(error, Fault) and error.__cause__ else error).__traceback__
    )
    ours = [f for f in frames if f"{os.sep}paddlelike{os.sep}" in f.filename]
    if not ours:
        return ""
    path = ours[-1].filename.rsplit(f"{os.sep}paddlelike{os.sep}", 1)[1]
    return f"{path}:{ours[-1].lineno} in {ours[-1].name}"
