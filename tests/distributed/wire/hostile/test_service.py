"""A real parameter server goes on serving its trainers, whatever is called."""

from __future__ import annotations

import copy
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlelike.core import SelectedRows
from paddlelike.distributed.client.client import Client
from paddlelike.distributed.placement import Kind
from paddlelike.distributed.wire import Channel, Into, Part, Security, wait_for_servers
from paddlelike.distributed.wire.frames import messages
from paddlelike.errors import FrameError

grpc = pytest.importorskip("grpc", reason="grpcio is in the extra 'dist'")
pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[4]
Call = tuple[str, dict[str, Any], list[Any]]


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = f"127.0.0.1:{listener.getsockname()[1]}"
    command = [sys.executable, "-m", "tests.distributed.wire.service", endpoint]
    with subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        wait_for_servers([endpoint], 120)
        yield process, endpoint
        process.communicate(timeout=30)


@pytest.fixture(scope="module")
def calls(service: tuple[subprocess.Popen[bytes], str]) -> list[Call]:
    """Every call that a proper trainer makes in its life, but the last words."""
    recorded: list[Call] = []
    original = Channel.call

    def record(self: Channel, verb: str, head: Any, parts: Any = (), *rest: Any, **options: Any) -> Any:
        parts = list(parts)
        recorded.append((verb, copy.deepcopy(head), parts))
        if verb == "Commit":
            arrived.set()
        return original(self, verb, head, parts, *rest, **options)

    arrived = threading.Event()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Channel, "call", record)
        patch.setattr(Channel, "open_direct", lambda channel, timeout=60.0: None)  # all calls over gRPC
        trainer = Client(0, [service[1]])
        table = trainer.tables[0]
        names = [entry.name for entry in table.having(Kind.PARAMETER)]
        trainer.pull([(service[1], name) for name in names])
        tall = next(name for name in names if table[name].shape[0] > 3)
        trainer.prefetch([(service[1], tall, np.arange(3))])
        for entry in table.having(Kind.GRADIENT):
            value = np.zeros(entry.shape, entry.numpy_dtype)
            if entry.name.startswith("table"):
                value = SelectedRows(np.arange(2), entry.shape[0], value[:2])
            trainer.stage(service[1], entry.name, value)
        failed: list[Exception] = []
        round_ = threading.Thread(target=lambda: failed.extend(_failure(trainer.push)), daemon=True)
        round_.start()
        assert arrived.wait(60), failed  # it now waits for the other trainers
        trainer.abandon()
        round_.join(60)
    verbs = {verb for verb, _, _ in recorded}
    assert verbs >= {"Describe", "Hello", "Pull", "Prefetch", "Push", "Commit"}
    last = recorded[-1][1]
    told = {key: last[key] for key in ("v", "job", "trainer", "process", "session") if key in last}
    addressed = {**told, "incarnation": last["incarnation"], "generation": last["generation"]}
    made = [
        ("Beat", told, []),
        ("Status", {}, []),
        ("Rollback", {**told, "to": 0, "generation": 1 << 40, "completed": []}, []),
        (
            "Save",
            {**addressed, "number": 1, "directory": "/no/such/directory", "version": None, "options": {}},
            [],
        ),
        ("Share", {**addressed, "number": 1, "size": 3, "poll": 0.01}, [Part(0, 0, memoryview(b"abc"))]),
        ("Complete", {**addressed, "round": 7, "last": True}, []),
    ]
    return recorded + [call for call in made if call[0] not in verbs]


def _failure(act: Any) -> list[Exception]:
    try:
        act()
    except Exception as error:  # the trainer is abandoned
        return [error]
    return []


JUNK: list[Any] = [
    None, True, -1, 0, 1, 2, 1 << 31, (1 << 63) - 1, (1 << 64) - 1, 0.5, 1e308, -0.0, "", "x", "../../etc",
    "\0", "é" * 50, "table", "fc_0.w_0", "table@GRAD", [], [0], [[0, 1]], [[0]], [[1 << 40, 1 << 40]], [-1],
    ["a"], [[[]]], {}, {"a": 1}, {"names": ["a"]}, {"names": 1}, [[n, 1] for n in range(200)],
    list(range(3000)),
]  # fmt: skip


def damage(call: Call, chance: random.Random) -> tuple[str, list[bytes]]:
    """A valid call with something wrong in its header, its records, or its bytes."""
    verb, head, parts = call[0], copy.deepcopy(call[1]), list(call[2])
    for _ in range(chance.randint(0, 2)):
        key = chance.choice([*head, "v", "extra"])
        if chance.random() < 0.2:
            head.pop(key, None)
        else:
            head[key] = chance.choice(JUNK)
    if "poll" in head:
        head["poll"] = chance.choice([0, 0.01, "x", -1])  # to wait is not a damage
    if "trainer" in head and chance.random() < 0.7:
        head["trainer"] = chance.choice([0, 1, 2, 99, -1])
    for _ in range(chance.randint(0, 2)):
        match chance.randrange(4):
            case 0 if parts:
                parts.pop(chance.randrange(len(parts)))
            case 1 if parts:
                parts.append(chance.choice(parts))
            case 2 if parts:
                at = chance.randrange(len(parts))
                part = parts[at]
                parts[at] = part._replace(index=chance.choice([0, 1, part.index + 1, 1 << 31]))
            case _ if parts:
                at = chance.randrange(len(parts))
                parts[at] = parts[at]._replace(offset=chance.choice([1, 4, 1 << 40]))
    try:
        frames = list(messages(head, parts))
    except FrameError:
        frames = [b"\2\0\0\0{}"]
    if chance.random() < 0.2:
        data = bytearray(frames[0])
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        frames[0] = bytes(data)
    return verb, frames


@pytest.mark.parametrize("seed", range(4))
def test_a_server_outlives_damaged_calls(
    service: tuple[subprocess.Popen[bytes], str], calls: list[Call], seed: int
) -> None:
    process, endpoint = service
    chance = random.Random(seed)
    statuses = set()
    token = Security.from_environment().for_endpoint(endpoint).metadata()
    with grpc.insecure_channel(endpoint) as channel:
        for number in range(250):
            call = chance.choice(calls)
            if call[0] in ("Rollback", "Complete") and number < 200:
                continue  # after them all others are refused
            verb, frames = damage(call, chance)
            method = f"/paddlelike.PS.v1/{verb}{chance.choice(['', '.stream'])}"
            try:
                list(channel.stream_stream(method)(iter(frames), timeout=60, metadata=token))
                statuses.add("OK")
            except grpc.RpcError as error:
                statuses.add(error.code().name)
    assert process.poll() is None
    assert statuses <= {"OK", "INVALID_ARGUMENT", "ABORTED", "FAILED_PRECONDITION", "UNIMPLEMENTED"}
    assert {"OK", "INVALID_ARGUMENT"} <= statuses
    with Channel(endpoint) as proper:
        verb, head, _ = next(call for call in calls if call[0] == "Describe")
        proper.call(verb, head, (), lambda _: _Any(), timeout=60)
        assert proper.call("Status", {}, timeout=60)["endpoint"] == endpoint


class _Any(Into):
    def __init__(self) -> None:
        super().__init__({})

    def place(self, index: int, offset: int, length: int) -> memoryview:
        return memoryview(bytearray(length))
