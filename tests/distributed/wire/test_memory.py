"""A large transfer takes little memory besides the arrays themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is in the extra 'dist'")

PROJECT = Path(__file__).parents[3]
BOTH = """
import sys
import grpc
import numpy as np
from paddlelike.distributed.wire import Channel, Into, Security, Server, make_parts
from tests.distributed.wire.verbs import Verb

array = np.full(256 << 20, int(sys.argv[1]), np.uint8)

class Push(Verb):
    def begin(self, head):
        return Into({0: array})
    def end(self, head, receiver):
        receiver.check()
        return {}, ()

class Pull(Verb):
    def end(self, head, receiver):
        return {}, make_parts({0: array})

def status(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))

before = status("VmRSS")
"""
SERVER = """
with Server("127.0.0.1:0", {"Push": Push(), "Pull": Pull()}, security=Security()) as server:
    print(server.port, flush=True)
    left = int(sys.stdin.readline())
    assert array[-1] == left
    print((status("VmHWM") - before) / array.nbytes, flush=True)
"""
CLIENT = """
with Channel("127.0.0.1:" + sys.argv[2], security=Security()) as channel:
    if sys.argv[3] == "Push":
        channel.call("Push", {}, make_parts({0: array}))
    else:
        channel.call("Pull", {}, (), Into({0: array}))
        assert array[-1] == 1
print((status("VmHWM") - before) / array.nbytes)
"""


@pytest.mark.parametrize(("verb", "left"), [("Push", 2), ("Pull", 1)])
def test_large_arrays_are_sent_without_copies(verb: str, left: int) -> None:
    """Each end takes less than a quarter of the payload besides, with all that gRPC takes once.

    That does not grow with the payload: 14 to 37 MiB of 64 and of 256 MiB, more on a busy machine.
    """
    command, pipe = [sys.executable, "-c"], subprocess.PIPE
    with subprocess.Popen(
        [*command, BOTH + SERVER, "1"], cwd=PROJECT, text=True, stdin=pipe, stdout=pipe
    ) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        client = subprocess.run(
            [*command, BOTH + CLIENT, "2", port, verb],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=120,
        )
        there, _ = server.communicate(f"{left}\n", timeout=60)
    assert client.returncode == 0, client.stderr
    assert float(client.stdout) < 0.25
    assert float(there) < 0.25
