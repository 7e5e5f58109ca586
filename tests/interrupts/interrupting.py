"""Raises KeyboardInterrupt at a chosen operation of a call, and finds what is left of it."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import paddlelike

PACKAGE = str(Path(paddlelike.__file__).parent)
#: Of the standard library, what our locks go through.
OTHERS = (contextlib.__file__, threading.__file__)

Position = tuple[CodeType, int]  # an operation of a function, by its offset


class Tracer:
    """Lists the operations of a call, or interrupts it at one of them: before its ``turn``-th time."""

    def __init__(self, at: Position | None = None, turn: int = 1, also: Sequence[str] = ()) -> None:
        self._files = (*OTHERS, *also)
        self.seen: dict[Position, int] = {}
        self._at, self._left = at, turn
        self.has_raised = False
        self._process = os.getpid()

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        code = frame.f_code
        if os.getpid() != self._process:
            return None
        if code.co_name == "__del__" or not self._is_looked_at(frame):
            return None  # Python ends no program for what is raised in __del__
        if self._at is not None and code is not self._at[0]:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._look

    def _look(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "opcode" and os.getpid() == self._process:
            position = frame.f_code, frame.f_lasti
            if self._at is None:
                self.seen[position] = self.seen.get(position, 0) + 1
            elif position == self._at and not self.has_raised:
                self._left -= 1
                if self._left == 0:
                    self.has_raised = True
                    raise KeyboardInterrupt
        return self._look

    def _is_looked_at(self, frame: FrameType | None) -> bool:
        """Return whether it is a function of the package, or of the standard library below one.

        Where gRPC calls the standard library, an interrupt leaves what gRPC leaves.
        """
        if frame is None:
            return False
        file = frame.f_code.co_filename
        if file.startswith(PACKAGE) or file not in self._files:
            return file.startswith(PACKAGE)
        return file not in OTHERS or self._is_looked_at(frame.f_back)


def list_operations(call: Callable[[], object], also: Sequence[str] = ()) -> dict[Position, int]:
    """Return every operation of a call in this thread, and how often it is carried out.

    They are those of the package and of the standard library's part in it, and of the files ``also``. The
    call is made twice: from Python 3.12 on, a function that is traced for the first time reports none.
    """
    for _ in range(2):
        tracer = Tracer(also=also)
        run_traced(call, tracer)
    return tracer.seen


def interrupt(
    call: Callable[[], object], at: Position, turn: int = 1, also: Sequence[str] = ()
) -> BaseException | None:
    """Call, and raise KeyboardInterrupt before an operation; return what the call raised."""
    tracer = Tracer(at, turn, also)
    try:
        run_traced(call, tracer)
    except BaseException as error:
        return error
    return None


def run_traced(call: Callable[[], object], tracer: Tracer) -> None:
    """Call in a thread of its own, which keeps what an interrupt leaves of Python's handled exceptions."""
    raised: list[BaseException] = []

    def run() -> None:
        sys.settrace(tracer)
        try:
            call()
        except BaseException as error:
            raised.append(error)
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


class Left(NamedTuple):
    """What a process holds."""

    threads: int
    python_threads: int
    files: int
    children: int

    def is_more(self, other: Left) -> bool:
        return any(a > b for a, b in zip(self, other, strict=True))


@contextlib.contextmanager
def no_longer_than(seconds: float) -> Iterator[None]:
    """End the process, and show where every thread is, if the body takes longer."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def count_left() -> Left:
    """Return the numbers of threads, of those that Python knows, of open files, and of child processes.

    The threads in which a server answers stay with it, and do not count.
    """
    answering = sum(thread.name.startswith("paddlelike-serve") for thread in threading.enumerate())
    return Left(
        sum(1 for _ in Path("/proc/self/task").iterdir()) - answering,
        threading.active_count() - answering,
        sum(1 for _ in Path("/proc/self/fd").iterdir()),
        sum(map(_is_child, Path("/proc").glob("[0-9]*/stat"))),
    )


def _is_child(stat: Path) -> bool:
    with contextlib.suppress(OSError):  # it has ended
        return stat.read_text().rpartition(")")[2].split()[1] == str(os.getpid())
    return False


def wait_until_left(expected: Left, seconds: float = 10.0) -> Left:
    """Wait until no more than ``expected`` is left, and return what is."""
    end = time.monotonic() + seconds
    while (found := count_left()).is_more(expected) and time.monotonic() < end:
        time.sleep(0.002)
    return found
