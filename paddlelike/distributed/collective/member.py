"""This process as a worker of a job: its thread for exchanges, its signs of life, its end.

When a worker is killed, its connections close and the exchange of the others fails. A worker that is stopped
or cut off gives no signs of life. In both cases the others end with a FaultError that names it.
"""

from __future__ import annotations

import atexit
import math
import os
import queue
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final, NoReturn

import numpy as np

from paddlelike.distributed.client.heartbeat import exit_by_code
from paddlelike.distributed.collective.jax_runtime import (
    HINT,
    PULSE,
    Exchanges,
    connect,
    disconnect,
    stdout_to_stderr,
)
from paddlelike.distributed.collective.job import Job
from paddlelike.distributed.collective.meeting import meet
from paddlelike.distributed.collective.shares import Shares
from paddlelike.distributed.collective.watch import Watch
from paddlelike.distributed.settings import Settings
from paddlelike.errors import FaultError, PaddlelikeError
from paddlelike.foundation.locks import Event
from paddlelike.foundation.threads import Task, Thread

Array = np.ndarray[Any, Any]

_EXIT: Final = 5.0  # seconds for the end of a process whose job is lost


class Member:
    """This process in its job, which it joins."""

    def __init__(self, job: Job) -> None:
        settings = Settings.from_environment()
        self.job = job
        self._lease, self._barrier = settings.lease, settings.limits.barrier
        exit_by_code()
        self._ending = Event()
        limits = settings.limits
        with _listen_at(job):
            meet(job, limits.window)
            self._notes = connect(job, window=limits.window, lease=self._lease, ending=self._ending)
        self._work: queue.SimpleQueue[Task[Array]] = queue.SimpleQueue()
        self._fault: FaultError | None = None
        self._watch = Watch(self._notes, job, self._lease)  # of the last exchange that took long
        self._entered = 0  # exchanges that this worker has begun
        self._shares: Shares | None = None
        self._exchanges: Exchanges | None = None
        self._life = Thread(self._show_life, "paddlelike-life")
        for thread in (Thread(self._run, "paddlelike-exchanges"), self._life):
            thread.start()
        atexit.register(self._leave)
        with stdout_to_stderr():  # at the first exchange gloo prints its connections
            self.wait(self.submit(lambda exchanges: exchanges.sum(np.zeros(1, np.float32))))

    def submit(self, function: Callable[[Exchanges], Array]) -> Task[Array]:
        """Let the thread carry out an exchange. Raises FaultError when the job is already lost."""
        if self._fault is not None:
            raise self._fault
        task: Task[Array] = Task(lambda: function(self._find_exchanges()))
        self._entered += 1
        self._work.put(task)
        return task

    def wait(self, task: Task[Array]) -> Array:
        """Return the result of an exchange. Raises FaultError when a worker is lost."""
        try:
            return task.result(timeout=PULSE)
        except TimeoutError:
            pass
        except (RuntimeError, ValueError) as error:  # JAX raises either
            self._fail(error)
        self._watch = watch = Watch(self._notes, self.job, self._lease)
        begin = time.monotonic()
        while True:
            try:
                return task.result(timeout=PULSE)
            except TimeoutError:
                lost = watch.find_lost()
            except (RuntimeError, ValueError) as error:
                self._fail(error)
            if not lost and time.monotonic() - begin > self._barrier:
                lost = watch.find_behind(self._entered)
            if lost:
                self._raise_fault(lost)

    def find_shares(self) -> Shares:
        """Return this worker's part of the divided optimizer state."""
        if self._shares is None:
            self._shares = Shares(self.job, self._notes, self._ending, self.watch, self._fail)
        return self._shares

    def watch(self, begin: float) -> None:
        """Raise FaultError when a worker is lost, or has answered nothing since ``begin``."""
        lost = self._watch.find_lost()
        if not lost and time.monotonic() - begin > self._barrier:
            lost = "a worker, which does not answer"
        if lost:
            self._raise_fault(lost)

    def _fail(self, error: Exception) -> NoReturn:
        """Raise a FaultError that names the worker whose loss made an exchange fail."""
        if isinstance(error, PaddlelikeError):
            raise error
        self._watch = watch = Watch(self._notes, self.job, 3 * PULSE)
        end = time.monotonic() + max(self._lease, 5 * PULSE)
        while not (lost := watch.find_lost()) and time.monotonic() < end:
            time.sleep(PULSE / 4)
        self._raise_fault(lost or "a worker", error)

    def _raise_fault(self, lost: str, cause: BaseException | None = None) -> NoReturn:
        self._fault = FaultError(f"{self.job.name(self.job.rank)} lost {lost}", hint=HINT)
        raise self._fault from cause

    def _run(self) -> None:
        while True:
            with suppress(BaseException):  # the thread that waits raises it
                self._work.get().run()

    def _find_exchanges(self) -> Exchanges:
        if self._exchanges is None:  # late, because JAX waits for the devices of all workers
            self._exchanges = Exchanges(self.job, self._notes)
        return self._exchanges

    def _show_life(self) -> None:
        beat = 0
        while not self._ending.wait(PULSE):
            beat += 1
            try:
                self._notes.write(f"pulse/{self.job.rank}", f"{beat} {self._entered}")
            except RuntimeError:  # the coordinator is lost: JAX ends the process
                return

    def _leave(self) -> None:
        """Announce to the other workers that this process ends; worker 0, the coordinator, ends last."""
        error = getattr(sys, "last_value", None)  # that ends this process
        if self._shares is not None and self._fault is None and error is None:
            self._stay_for_saves()
        self._ending.set()
        if self._fault is not None:
            # Neither a thread that waits for a lost worker nor JAX's shutdown may keep the process alive.
            Thread(self._exit_late, "paddlelike-exit").start()
        try:
            self._notes.write(f"left/{self.job.rank}", "after a fault" if self._fault else "at its end")
            if self.job.rank == 0:
                watch = self._watch if self._fault is not None else Watch(self._notes, self.job, 3 * PULSE)
                # After an error JAX ends workers that neither exchange nor leave: they may wait for this one.
                end_by = math.inf if error is None else time.monotonic() + _EXIT
                while not watch.have_all_left() and time.monotonic() < end_by:
                    time.sleep(PULSE / 10)
                time.sleep(PULSE / 2)  # for the others to disconnect
            elif error is None:
                disconnect()
        except RuntimeError:
            pass
        self._life.wait(_EXIT)
        if self._fault is not None or error is not None:
            # Python would end the thread that is in an exchange, which C++ answers by aborting the process.
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(getattr(error, "exit_code", FaultError.exit_code if error is None else 1))

    def _exit_late(self) -> None:
        time.sleep(_EXIT)
        os._exit(FaultError.exit_code)

    def _stay_for_saves(self) -> None:
        """Wait until no other worker trains or saves, since others may request this worker's state."""
        with suppress(RuntimeError):
            self._notes.write(f"ends/{self.job.rank}", "at its end")
            watch = Watch(self._notes, self.job, self._lease)
            while not watch.have_all_left(folders=("ends", "left")):
                time.sleep(PULSE / 10)


@contextmanager
def _listen_at(job: Job) -> Iterator[None]:
    """Listen at this worker's endpoint while it joins: worker 0 of some scripts waits for that, as in Fluid.

    Connections are not answered. Worker 0 does not need this: the meeting and JAX's coordinator listen at its
    endpoint. An unusable address is ignored.
    """
    host, _, port = job.endpoints[job.rank].rpartition(":")
    with ExitStack() as stack:
        if job.rank:
            with suppress(OSError):
                stack.enter_context(socket.create_server((host.strip("[]"), int(port)), backlog=128))
        yield
