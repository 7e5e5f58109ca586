"""Calls between trainers and servers as fuzzing targets: their messages, and what servers say of themselves."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

from paddlelike.distributed.placement import ServerTable
from paddlelike.distributed.protocol import messages as protocol
from paddlelike.distributed.wire import Into, make_parts
from paddlelike.distributed.wire.frames import Intake, messages, split
from tests.fuzz.makers.control_files import change_json
from tests.fuzz.makers.mutations import mutate
from tests.fuzz.readers import Target, attempt

__all__ = ["CALLS"]

_WHO: Final = {"job": "", "trainer": 0, "process": 1790000000000000000, "session": 1}
_TO: Final = {"incarnation": "123.456", "generation": 0}
_REQUESTS: Final = (
    protocol.Hello(**_WHO, plan="ab" * 32, mode="sync", trainers=2),
    protocol.Push(**_WHO, **_TO, plan="ab" * 32, number=3, rows=((1, 5),)),
    protocol.Commit(**_WHO, **_TO, round=3, poll=0.5),
    protocol.Pull(**_WHO, **_TO, version=3, slices=(0, 1)),
    protocol.Prefetch(**_WHO, **_TO, table="table", count=4),
    protocol.Beat(**_WHO),
    protocol.Rollback(**_WHO, to=1, generation=2, completed=((0, 4),)),
    protocol.Save(**_WHO, **_TO, number=1, directory="model", version=None, options={"names": ["w"]}),
    protocol.Complete(**_WHO, **_TO, round=9, last=True),
)
_REPLIES: Final = (
    protocol.PushReply(**_TO, round=3),
    protocol.Waiting(**_TO, round=3, missing=(1,), silent=()),
    protocol.Refused(**_TO, round=3, reason="stale", text="an older generation"),
)
_LARGEST: Final = 5  # messages of one input
_HEADERS: Final = [message.to_header() for message in (*_REQUESTS, *_REPLIES)]


def _arrays() -> dict[int, Any]:
    return {0: np.zeros(4, np.int64), 1: np.zeros((5, 2), np.float32), 9: np.zeros(3, np.uint8)}


def _join_parts(parts: list[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def _split_parts(data: bytes) -> list[bytes]:
    parts = []
    while len(data) >= 4 and len(parts) < _LARGEST:
        size = min(struct.unpack_from("<I", data)[0], len(data) - 4)
        parts.append(data[4 : 4 + size])
        data = data[4 + size :]
    return parts


def _make_call(rng: Random) -> bytes:
    """A call as one message or as a stream, with damage in its header, its records or both."""
    header = json.dumps(rng.choice(_HEADERS)).encode()
    if rng.random() < 0.6:
        header = change_json(rng, header)
    body = next(messages({}, make_parts(_arrays() if rng.random() < 0.7 else {})))[6:]
    if rng.random() < 0.4:
        body = mutate(rng, body, ())
    first = struct.pack("<I", len(header)) + header
    end = struct.pack("<IQ", 0, 32 + 40 + 3)
    parts = [first + body] if rng.random() < 0.5 else [first, body, end]
    made = _join_parts(parts)
    return mutate(rng, made, ()) if rng.random() < 0.3 else made


def _read_call(data: bytes, root: Path) -> None:
    parts = _split_parts(data) or [b""]
    header, body = split(parts[0])
    for request in _REQUESTS:
        attempt(lambda verb=request.verb: protocol.request_from_header(verb, header))
        attempt(lambda verb=request.verb: protocol.reply_from_header(verb, header))
    into = Into(_arrays())
    intake = Intake(into)
    if body:
        intake.take(body)
    else:
        for message in parts[1:]:
            intake.take(message)
        intake.finish()
    into.check()


_TABLE: Final = json.dumps(
    [["w", "parameter", [4, 3], 5], ["w@GRAD", "gradient", [4, 3], 5], ["w_moment", "state", [4, 3], 5]]
).encode()


def _make_table(rng: Random) -> bytes:
    kind = rng.random()
    if kind < 0.1:
        depth = rng.choice((100, 5000, 30000))
        return rng.choice((b"[" * depth, b"[" * depth + b"]" * depth))
    made = change_json(rng, _TABLE) if kind < 0.7 else _TABLE
    return mutate(rng, made, ()) if kind > 0.6 else made


def _read_table(data: bytes, root: Path) -> None:
    table = ServerTable.from_bytes(data)
    if ServerTable.from_bytes(table.to_bytes()).digest != table.digest:
        raise AssertionError("a table that reads back as another one")


CALLS: Final = (Target("call", _make_call, _read_call), Target("table", _make_table, _read_table))
