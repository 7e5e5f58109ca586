"""A fork server for processes of tests: it has imported what they use, so each starts at once.

Its objects are frozen: no process copies them for its garbage collector, or frees them at its end. Beside
each process another one waits for its end and sends the exit code. A process runs ``main()`` of a module in
an environment of its own. :func:`start_fork_server` starts the server, :class:`Forked` is one process.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

__all__ = ["Forked", "fork_process", "start_fork_server"]

ROOT = Path(__file__).parents[2]


@contextmanager
def start_fork_server(path: Path, *within: str, imports: Sequence[str] = ()) -> Iterator[tuple[str, int]]:
    """Start a fork server; yield its address and process id.

    ``within``: the command that runs it. ``imports``: modules that it imports beside those of every program.
    """
    limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    child = subprocess.Popen(
        [*within, sys.executable, "-m", "tests.helpers.fork_server", str(path), *imports],
        cwd=ROOT,
        env=os.environ | limits,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        with child.stdout as said:
            assert said.readline() == b"ready\n"
            yield str(path), child.pid
    finally:
        child.kill()
        child.wait()


class Forked:
    """A process of a fork server, with the methods of ``subprocess.Popen`` that tests use.

    ``stdout`` is read by the caller; its standard error goes into a file.
    """

    def __init__(self, address: str, module: str, environment: Mapping[str, str]) -> None:
        self._log = tempfile.NamedTemporaryFile(prefix="stderr-")  # noqa: SIM115  (closed by ``close``)
        self._end, self.pid, self.stdout = fork_process(address, module, environment, Path(self._log.name))
        self._end_lock = threading.Lock()
        self.returncode: int | None = None

    @property
    def errors(self) -> str:
        """Its standard error so far."""
        return Path(self._log.name).read_text(errors="replace")

    def poll(self) -> int | None:
        """Return its exit code, or minus the signal that ended it; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit code, or minus the signal. Raises TimeoutExpired."""
        with self._end_lock:
            if self.returncode is None:
                if not select.select([self._end], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired("a forked process", timeout or 0)
                self.returncode = int.from_bytes(_read(self._end, 4), "big", signed=True)
            return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, if it runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, if it runs."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Return its output and errors at its end."""
        output = self.stdout.read()
        self.wait(timeout)
        return output, self.errors

    def close(self) -> None:
        """Kill it, and close what was open for it."""
        self.kill()
        self.wait()
        self.stdout.close()
        self._end.close()
        self._log.close()


def fork_process(
    address: str, module: str, environment: Mapping[str, str], log: Path
) -> tuple[socket.socket, int, Any]:
    """Fork a process; return the socket on which its exit code will come, its id, and its standard output."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    output, output_end = os.pipe()
    errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    text = json.dumps([module, dict(environment)]).encode()
    socket.send_fds(connection, [len(text).to_bytes(4, "big")], [output_end, errors])
    connection.sendall(text)
    os.close(output_end)
    os.close(errors)
    return connection, int.from_bytes(_read(connection, 4), "big"), os.fdopen(output)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionError("the fork server has ended")
        data += piece
    return data


def serve(address: str) -> str:
    """Fork a process for every connection; return in that process, with the module that it is to run."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, fds, _, _ = socket.recv_fds(connection, 4, 2)
    module, environment = json.loads(_read(connection, int.from_bytes(size, "big")))
    child = os.fork()
    if child:
        for fd in (0, 1, 2, *fds):
            os.close(fd)
        connection.sendall(child.to_bytes(4, "big"))
        _, status = os.waitpid(child, 0)
        connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
        os._exit(0)
    connection.close()
    os.dup2(fds[0], 1)
    os.dup2(fds[1], 2)
    for fd in fds:
        os.close(fd)
    os.environ.clear()
    os.environ.update(environment)
    return str(module)


def end_process(error: BaseException | None) -> NoReturn:
    """End as the interpreter does, threads and exit functions first, but free no objects."""
    code = 0
    if error is not None:
        try:
            if not isinstance(error, SystemExit):
                code = 1
                sys.last_value = error  # as the interpreter does: exit functions look there
                sys.excepthook(type(error), error, error.__traceback__)
        except SystemExit as end:  # the hook chose a code
            error = end
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def import_all() -> None:
    """Import what a process imports at its first use, by building, running and cutting a network once."""
    import paddlelike as fluid
    import paddlelike.distributed.remote
    from tests.helpers.fresh import fresh_programs

    assert paddlelike.distributed.remote is not None
    with fresh_programs():
        x, words = fluid.data("x", [None, 3]), fluid.data("words", [None, 1], "int64")
        embedded = fluid.layers.reshape(fluid.embedding(words, [4, 3], is_sparse=True), [-1, 3])
        error = fluid.layers.square_error_cost(fluid.layers.fc(x + embedded, 1, act="tanh"), x)
        loss = fluid.layers.mean(error)
        rate = fluid.layers.exponential_decay(0.05, decay_steps=4, decay_rate=0.9)
        fluid.optimizer.MomentumOptimizer(rate, momentum=0.9).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        feed = {"x": np.ones((2, 3), "float32"), "words": np.ones((2, 1), "int64")}
        exe.run(feed=feed, fetch_list=[loss.name])
        fluid.DistributeTranspiler().transpile(0, pservers="a:1,b:1", trainers=1)


if __name__ == "__main__":
    import_all()
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.freeze()
    name = serve(sys.argv[1])
    try:
        importlib.import_module(name).main()
    except BaseException as problem:
        end_process(problem)
    end_process(None)
