"""Processes of test jobs, forked from one that has imported everything: a job starts in a tenth of a second.

Each has a process of its own beside it that waits for its end and tells the exit code. ``run`` is the nursery
itself; ``born`` is what asks for a process.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["born", "run"]


def born(address: str, environment: Mapping[str, str], log: Path) -> tuple[socket.socket, int, Any]:
    """A new process: where its exit code will come, its id, and its standard output."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    said, saying = os.pipe()
    errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    text = json.dumps(dict(environment)).encode()
    socket.send_fds(line, [len(text).to_bytes(4, "big")], [saying, errors])
    line.sendall(text)
    os.close(saying)
    os.close(errors)
    return line, int.from_bytes(_read(line, 4), "big"), os.fdopen(said)


def _read(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = line.recv(size - len(data))
        if not piece:
            raise ConnectionError("the nursery has ended")
        data += piece
    return data


def run(address: str) -> None:
    """Fork a process for each who asks; in that process, return."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            line, _ = door.accept()
            if os.fork() == 0:
                break
            line.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, fds, _, _ = socket.recv_fds(line, 4, 2)
    environment = json.loads(_read(line, int.from_bytes(size, "big")))
    child = os.fork()
    if child:
        for fd in (0, 1, 2, *fds):
            os.close(fd)
        line.sendall(child.to_bytes(4, "big"))
        _, status = os.waitpid(child, 0)
        line.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
        os._exit(0)
    line.close()
    os.dup2(fds[0], 1)
    os.dup2(fds[1], 2)
    for fd in fds:
        os.close(fd)
    os.environ.clear()
    os.environ.update(environment)


if __name__ == "__main__":
    import paddlelike.distributed.remote

    assert paddlelike.distributed.remote is not None
    run(sys.argv[1])
    from tests.distributed.faults import role

    role.main()
