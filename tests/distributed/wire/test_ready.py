"""Waiting until servers listen."""

from __future__ import annotations

import socket

import pytest

from paddlelike.distributed.wire import Server, wait_for_servers
from paddlelike.errors import DeadlineError, EndpointError
from tests.distributed.wire.conftest import CLEAR, Serve
from tests.distributed.wire.verbs import Verb


def test_servers_that_listen_are_ready_at_once(serve: Serve) -> None:
    servers = [serve({"Echo": Verb()})[0] for _ in range(2)]
    seen: list[list[str]] = []
    wait_for_servers([f"127.0.0.1:{server.port}" for server in servers], 30, report=seen.append)
    assert seen == []


def test_trainers_wait_for_a_server_that_starts_later() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = f"127.0.0.1:{listener.getsockname()[1]}"
    started: list[Server] = []

    def start(missing: list[str]) -> None:
        assert missing == [endpoint]
        if not started:
            started.append(Server(endpoint, {}, security=CLEAR))
            started[0].start()

    try:
        wait_for_servers([endpoint], 30, report=start)
    finally:
        started[0].stop()


def test_missing_servers_are_named(serve: Serve) -> None:
    server, _ = serve({"Echo": Verb()})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        gone = f"127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(
        DeadlineError, match=r"(?s)no process listens after 0\.2 s.*start the servers"
    ) as caught:
        wait_for_servers([f"127.0.0.1:{server.port}", gone], 0.2)
    assert gone in str(caught.value)
    assert f":{server.port}" not in str(caught.value)


def test_an_endpoint_without_a_port_is_an_error_at_once() -> None:
    with pytest.raises(EndpointError):
        wait_for_servers(["127.0.0.1"], 30)


def test_a_connection_that_closes_at_once_harms_no_server(serve: Serve) -> None:
    server, channel = serve({"Echo": Verb()})
    for _ in range(20):
        wait_for_servers([f"127.0.0.1:{server.port}"], 30)
    assert channel.call("Echo", {"a": 1}) == {"a": 1}
