"""A fork server for the processes of test jobs: it has imported everything, so a job starts in 0.1 s.

Beside each process another one waits for its end and sends the exit code. ``serve`` is the fork server,
``fork_process`` its client.
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

__all__ = ["fork_process", "serve"]


def fork_process(address: str, environment: Mapping[str, str], log: Path) -> tuple[socket.socket, int, Any]:
    """Fork a process; return the socket on which its exit code will come, its id, and its standard output."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    output, output_end = os.pipe()
    errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    text = json.dumps(dict(environment)).encode()
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


def serve(address: str) -> None:
    """Fork a process for every connection; return in that process."""
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
    environment = json.loads(_read(connection, int.from_bytes(size, "big")))
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


if __name__ == "__main__":
    import paddlelike.distributed.remote

    assert paddlelike.distributed.remote is not None
    serve(sys.argv[1])
    from tests.distributed.faults import role

    role.main()
