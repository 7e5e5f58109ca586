"""The advice of errors of the connections between trainers and servers, followed to the letter."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from paddlelike.distributed.wire import WHOLE, Channel, Into, Security, Server, Tls, wait_for_servers
from paddlelike.distributed.wire.token_file import read_or_create_token
from tests.distributed.wire.verbs import Fail, Source, Store, Verb
from tests.hints.advice import Advice

pytest.importorskip("grpc", reason="grpcio is in the extra 'dist'")
pytest.importorskip("cryptography", reason="cryptography is in the extra 'test'")

from tests.distributed.wire.certificates import Authority, write

AUTHORITY = Authority()
OURS = AUTHORITY.issue()
FAR = "0.0.0.0:0"
ECHO = {"Echo": Verb()}
SENT = {"a": 1}


@contextmanager
def settings(**environ: str) -> Iterator[Security]:
    """Yield the settings of an environment that says only this about connections."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PADDLELIKE_")}
    with mock.patch.dict(os.environ, {**kept, **environ}, clear=True):
        yield Security.from_environment()


def call(
    server: dict[str, str],
    client: dict[str, str],
    verb: str = "Echo",
    head: Any = SENT,
    verbs: Any = ECHO,
    *,
    endpoint: str = "127.0.0.1:0",
) -> Any:
    """Return the answer to a call between two processes with these environments."""
    with (
        settings(**server) as security,
        Server(endpoint, verbs, security=security) as started,
        settings(**client),
        Channel(f"127.0.0.1:{started.port}") as channel,
    ):
        return channel.call(verb, head, timeout=20)


def call_nobody(*, is_started: bool) -> Any:
    """Call the server of an endpoint; return its answer."""
    if is_started:
        return call(T, T)
    with socket.socket() as idle:
        idle.bind(("127.0.0.1", 0))  # nobody listens there
        with Channel(f"127.0.0.1:{idle.getsockname()[1]}", security=Security()) as channel:
            return channel.call("Echo", SENT, timeout=20)


def call_over_tls(*hosts: str) -> Any:
    """Call a server whose certificate names these hosts."""
    files = write(AUTHORITY.issue(*hosts), Path.cwd())
    return call(files, files)


def bind(*, is_used: bool, tls: Tls | None = None) -> Any:
    """Serve at a port that another socket has, or at a free one."""
    security = Security(tls=tls)
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1] if is_used else 0
        with (
            Server(f"127.0.0.1:{port}", ECHO, security=security) as server,
            Channel(f"127.0.0.1:{server.port}", security=security) as channel,
        ):
            return channel.call("Echo", SENT, timeout=20)


def wait(*, is_started: bool) -> Any:
    """Wait for two servers; return how often the wait found one missing."""
    missing: list[Any] = []
    with Server("127.0.0.1:0", ECHO, security=Security()) as server, socket.socket() as idle:
        idle.bind(("127.0.0.1", 0))  # nobody listens there
        port = server.port if is_started else idle.getsockname()[1]
        wait_for_servers([f"127.0.0.1:{server.port}", f"127.0.0.1:{port}"], 0.01, report=missing.append)
    return len(missing)


def fetch(**options: Any) -> Any:
    """Return the sum of ones that a server sends."""
    into = Into({0: np.zeros(2 * WHOLE, np.uint8)})
    with (
        Server("127.0.0.1:0", {"Source": Source()}, security=Security()) as server,
        Channel(f"127.0.0.1:{server.port}", security=Security()) as channel,
    ):
        channel.call("Source", {"size": 2 * WHOLE}, receiver=into, timeout=20, **options)
    into.check()
    return int(into.arrays[0].sum())


def share_token(mistake: str) -> Any:
    """Let two processes share a token file after a mistake about it; return whether they talk."""
    path = Path("job_token").absolute()
    if mistake == "open":
        path.write_text("secret")
        path.chmod(0o644)
    elif mistake == "folder":
        path.mkdir()
    elif mistake == "empty":
        path.touch(0o600)
    names = {"PADDLELIKE_JOB_TOKEN_FILE": str(path)}
    with settings(**names):
        token = read_or_create_token()
    return [call(names, names), len(token) >= 32]


T = {"PADDLELIKE_JOB_TOKEN": "secret"}
INSECURE = {"PADDLELIKE_INSECURE": "1"}

ADVICE: dict[str, Advice] = {
    "a token file that is empty": Advice(
        lambda: share_token("empty"),
        "remove it; or {}",
        lambda: share_token("nothing"),
        [SENT, True],
    ),
    "a process without the token": Advice(
        lambda: call(T, {"PADDLELIKE_JOB_TOKEN": "other"}),
        "give this process the PADDLELIKE_JOB_TOKEN of its server; without one, processes of one user on one "
        "machine share a token file (PADDLELIKE_JOB_TOKEN_FILE)",
        lambda: [call(T, T), *share_token("nothing")],
        [SENT, SENT, True],
    ),
    "a verb of another version": Advice(
        lambda: call(T, T, "Later"),
        "run the same version of paddlelike on every trainer and server",
        lambda: call(T, T, "Echo"),
        SENT,
    ),
    "a header of another program": Advice(
        lambda: call(T, T, "Store", {"sizes": {"0": 4}}, {"Store": Store()}),
        "run the same program and version of paddlelike on every trainer and server",
        lambda: call(T, T, "Store", {"sizes": {}}, {"Store": Store()}),
        {"kept": []},
    ),
    "an answer that is larger than its announced size": Advice(
        lambda: fetch(answer_size=10),
        "leave out answer_size, or give the larger one",
        lambda: [fetch(), fetch(answer_size=2 * WHOLE)],
        [2 * WHOLE, 2 * WHOLE],
    ),
    "a server that is not started": Advice(
        lambda: call_nobody(is_started=False),
        "is the server started, at this host and port? A server with TLS refuses clear text",
        lambda: call_nobody(is_started=True),
        SENT,
    ),
    "a certificate for another host": Advice(
        lambda: call_over_tls("10.9.8.7"),
        "is the server started, with TLS, and does its certificate name the host of the endpoint?",
        lambda: call_over_tls("127.0.0.1"),
        SENT,
    ),
    "servers that are not started": Advice(
        lambda: wait(is_started=False),
        "start the servers first, and give all processes the same list of endpoints",
        lambda: wait(is_started=True),
        0,
    ),
    "clear text to another machine": Advice(
        lambda: call({}, {}, endpoint=FAR),
        "set {} for TLS; or PADDLELIKE_INSECURE=1 on a network that you trust",
        lambda: [call(INSECURE, INSECURE, endpoint=FAR), call_far_over_tls()],
        [SENT, SENT],
    ),
    "a token in clear text": Advice(
        lambda: call({**T, **INSECURE}, T, endpoint=FAR),
        "set {} for TLS, or unset PADDLELIKE_JOB_TOKEN",
        lambda: [call(INSECURE, INSECURE, endpoint=FAR), call_far_over_tls(**T)],
        [SENT, SENT],
    ),
    "a port in use": Advice(
        lambda: bind(is_used=True),
        "another process listens on the port, or the host is not an address of this machine",
        lambda: bind(is_used=False),
        SENT,
    ),
    "a certificate that is not one": Advice(
        lambda: bind(is_used=False, tls=replace(OURS, key=b"not a key")),
        "another process listens on the port, or the host is not an address of this machine, or the TLS "
        "certificate and key are not PEM texts",
        lambda: bind(is_used=False, tls=OURS),
        SENT,
    ),
    "a token file that cannot be read": Advice(
        lambda: share_token("folder"),
        "name another file with {}, or set PADDLELIKE_JOB_TOKEN for every process of the job",
        lambda: [*share_token("nothing"), call(T, T)],
        [SENT, True, SENT],
    ),
    "a token file that others can read": Advice(
        lambda: share_token("open"),
        "remove it; a new one is written. Or {}",
        lambda: share_token("nothing"),
        [SENT, True],
    ),
}


def call_far_over_tls(**more: str) -> Any:
    files = {**write(AUTHORITY.issue("127.0.0.1", "0.0.0.0"), Path.cwd()), **more}
    return call(files, files, endpoint=FAR)


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
def test_following_a_hint_of_a_connection_gives_the_right_result(advice: Advice) -> None:
    advice.follow()


@pytest.mark.obeys("its log has the traceback")
def test_the_log_of_a_server_has_the_traceback_of_a_failed_call(caplog: pytest.LogCaptureFixture) -> None:
    with settings(**T), pytest.raises(Exception, match="its log has the traceback"):
        call(T, T, "Fail", SENT, {"Fail": Fail()})
    assert "ZeroDivisionError: no trainers" in caplog.text
