"""The meeting of a job's workers, before JAX's runtime joins them.

JAX aborts a process if its coordinator cannot listen or the wait is too long, without naming the missing
worker. So worker 0 first listens at its endpoint itself. Each other worker connects there and sends the line
``worker RANK of COUNT``. It reads a line ``waits RANKS`` with the missing workers each second, then ``go``,
or ``ends RANKS`` at the deadline, or ``refused WHY``.
"""

from __future__ import annotations

import selectors
import socket
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from paddlelike.distributed.collective.job import Job
from paddlelike.errors import FaultError, RoleError

_TICK: Final = 1.0  # seconds between two lines of worker 0, and two tries of another worker
_REMIND: Final = 10.0  # seconds between two lines on the terminal
_LINE: Final = 200  # bytes of the longest line
SAME_ENDPOINTS: Final = (
    "start all workers with the same PADDLE_TRAINER_ENDPOINTS; FLAGS_rpc_deadline (ms) is how long they wait "
    "for each other"
)


def meet(job: Job, seconds: float) -> None:
    """Wait until all workers of a job are there.

    Raises
    ------
    FaultError
        Worker 0 cannot listen at its endpoint, or a worker does not join within ``seconds``; the error names
        it.
    RoleError
        Worker 0 belongs to another job, or has a worker of this rank already.
    """
    if job.rank == 0:
        _Meeting(job, seconds).wait()
    else:
        _arrive(job, seconds)


class _Meeting:
    """Worker 0, which waits for the others."""

    def __init__(self, job: Job, seconds: float) -> None:
        self._job, self._seconds = job, seconds
        self._came: dict[int, socket.socket] = {}
        self._texts: dict[socket.socket, bytes] = {}  # what each connection has sent
        self._selector = selectors.DefaultSelector()

    def wait(self) -> None:
        """Wait for all workers, and notify them."""
        job, clock = self._job, _Clock(self._job, self._seconds)
        with _listen(job) as listener, self._selector:
            listener.setblocking(False)
            self._selector.register(listener, selectors.EVENT_READ)
            try:
                while absent := self._find_absent():
                    for key, _ in self._selector.select(_TICK):
                        if key.fileobj is listener:
                            self._accept(listener)
                        else:
                            self._read(key.fileobj)  # type: ignore[arg-type]  # a socket
                    if clock.is_over():
                        self._tell(f"ends {_join(absent)}")
                        raise _make_absence(job, absent, self._seconds)
                    if clock.tick(absent):
                        self._tell(f"waits {_join(absent)}")
                self._tell("go")
            finally:
                for connection in self._texts:
                    connection.close()

    def _find_absent(self) -> list[int]:
        return [rank for rank in range(1, self._job.size) if rank not in self._came]

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            connection.setblocking(False)
            self._texts[connection] = b""
            self._selector.register(connection, selectors.EVENT_READ)

    def _read(self, connection: socket.socket) -> None:
        """Read what a connection has sent; one that ends, or sends anything else, is closed."""
        if connection not in self._texts:  # closed since it was selected
            return
        try:
            data = connection.recv(_LINE)
        except OSError:
            data = b""
        text = self._texts[connection] + data
        self._texts[connection] = text
        if data and len(text) < _LINE and b"\n" not in text:
            return
        why = self._admit(text, connection) if data else ""
        if why is None:
            return
        with suppress(OSError):
            connection.send(f"refused {why}\n".encode())
        self._close(connection)

    def _admit(self, text: bytes, connection: socket.socket) -> str | None:
        """Count a worker by the line that it sent; return why it is refused, or None if it is admitted."""
        line = text.partition(b"\n")[0].decode("ascii", "replace").split()
        if len(line) != 4 or line[0] != "worker" or not (line[1].isdecimal() and line[3].isdecimal()):
            return "this is worker 0 of a job of paddlelike, which reads 'worker RANK of COUNT'"
        rank, size = int(line[1]), int(line[3])
        if size != self._job.size:
            return f"its job has {self._job.size} workers, the job of worker {rank} has {size}"
        if not 0 < rank < size:
            return f"it waits for the workers 1 to {self._job.size - 1}, not for worker {rank}"
        before = self._came.get(rank)
        if before is not None and _is_open(before):
            return f"two processes have PADDLE_TRAINER_ID={rank}: another one is worker {rank} already"
        if before is not None:
            self._close(before)
        self._came[rank] = connection
        return None

    def _tell(self, line: str) -> None:
        for connection in list(self._came.values()):
            try:
                connection.send(f"{line}\n".encode())
            except OSError:  # the worker has ended; another may come in its place
                self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        self._came = {rank: one for rank, one in self._came.items() if one is not connection}
        self._selector.unregister(connection)
        del self._texts[connection]
        connection.close()


def _arrive(job: Job, seconds: float) -> None:
    """Report this worker to worker 0, and wait for the others."""
    clock, absent = _Clock(job, seconds), [0]
    while not clock.is_over():
        clock.tick(absent)
        try:
            with socket.create_connection(_find_address(job.endpoints[0]), _TICK) as connection:
                connection.sendall(f"worker {job.rank} of {job.size}\n".encode())
                connection.settimeout(2 * _TICK)
                for line in connection.makefile("r", encoding="ascii", errors="replace"):
                    word, _, rest = line.strip().partition(" ")
                    if word == "go":
                        return
                    if word == "refused":
                        raise RoleError(
                            f"{job.name(0)} refuses {job.name(job.rank)}: {rest}", hint=SAME_ENDPOINTS
                        )
                    if word not in ("waits", "ends"):
                        break
                    absent = [int(one) for one in rest.split(",") if one.isdecimal() and int(one) < job.size]
                    if word == "ends" or clock.is_over():
                        raise _make_absence(job, absent, seconds)
                    clock.tick(absent)
        except OSError:
            pass
        absent = [0]
        time.sleep(_TICK / 10)
    raise _make_absence(job, absent, seconds)


def _is_open(connection: socket.socket) -> bool:
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


class _Clock:
    """The time that a worker has waited; from time to time it is printed on the terminal."""

    def __init__(self, job: Job, seconds: float) -> None:
        self._job, self._seconds, self._begin = job, seconds, time.monotonic()
        self._ticked, self._said = self._begin, self._begin

    def is_over(self) -> bool:
        """Return whether the time limit is over."""
        return time.monotonic() - self._begin > self._seconds

    def tick(self, absent: Iterable[int]) -> bool:
        """Return whether a second has passed since the last call that returned True."""
        now = time.monotonic()
        if now - self._said > _REMIND:
            self._said = now
            sys.stderr.write(
                f"paddlelike: {self._job.name(self._job.rank)} waits for {_name(self._job, absent)}, "
                f"{now - self._begin:.0f} of {self._seconds:g} s\n"
            )
            sys.stderr.flush()
        is_due = now - self._ticked >= _TICK
        if is_due:
            self._ticked = now
        return is_due


def _listen(job: Job) -> socket.socket:
    address = _find_address(job.endpoints[0])
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        return socket.create_server(address, family=family, backlog=max(job.size, 16))
    except OSError as error:
        raise FaultError(
            f"{job.name(0)} cannot listen at its endpoint: {error.strerror}",
            hint="end the process that uses the port, or give another one in PADDLE_TRAINER_ENDPOINTS; the "
            "launcher takes another one by itself where it chose it",
        ) from error


def _find_address(endpoint: str) -> tuple[str, int]:
    host, _, port = endpoint.rpartition(":")
    return host.strip("[]"), int(port)


def _make_absence(job: Job, absent: Iterable[int], seconds: float) -> FaultError:
    return FaultError(
        f"{job.name(job.rank)} waited {seconds:g} s for {_name(job, absent)}, and ends", hint=SAME_ENDPOINTS
    )


def _name(job: Job, ranks: Iterable[int]) -> str:
    return " and ".join(map(job.name, ranks)) or "the other workers"


def _join(ranks: Iterable[int]) -> str:
    return ",".join(map(str, ranks))
