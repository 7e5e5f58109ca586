"""A server on loopback: who is let in, and what is refused and how."""

from __future__ import annotations

import json
import queue
import select
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from paddlelike.errors import FeedError, StorageError
from paddlelike.view.server import (
    LoopbackServer,
)
from paddlelike.view.server.connections import MOST
from paddlelike.view.server.loopback import Refusal, Reply
from tests.view.asking import JSON, ask


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    routes = {
        ("GET", "/model"): lambda request: Reply(dict(request.query)),
        ("POST", "/predict"): lambda request: Reply(request.json),
    }
    with LoopbackServer(routes, most_bytes=100_000) as found:
        found.start()
        yield found


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("GET", "/model", None, {"Host": "evil.example:80"}, 403),
        ("GET", "/model", None, {"Host": "127.0.0.1"}, 403),
        ("POST", "/predict", b"{}", {**JSON, "Origin": "https://evil.example"}, 403),
        ("POST", "/predict", b"{}", {**JSON, "Origin": "null"}, 403),
        ("GET", "/nothing", None, {}, 404),
        ("GET", "/../model", None, {}, 404),
        ("GET", "/model?" + "a=1&" * 30, None, {}, 400),
        ("GET", "/predict", None, {}, 405),
        ("POST", "/model", b"{}", JSON, 405),
        ("GET", "/model", b"{}", {}, 400),
        ("POST", "/predict", b"{}", {"Content-Type": "text/plain"}, 415),
        ("POST", "/predict", b"a=1", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ("POST", "/predict", None, {**JSON, "Content-Length": "1e3"}, 411),
        ("POST", "/predict", None, {**JSON, "Content-Length": "-1"}, 411),
        ("POST", "/predict", None, {**JSON, "Content-Length": "100001"}, 413),
        ("POST", "/predict", None, {**JSON, "Content-Length": "9" * 4000}, 413),
        ("POST", "/predict", None, {**JSON, "Content-Length": "2", "Transfer-Encoding": "chunked"}, 411),
        ("POST", "/predict", b"{", JSON, 400),
        ("POST", "/predict", b"[" * 90_000, JSON, 400),
        ("POST", "/predict", b"\xff\xfe", JSON, 400),
        ("PUT", "/predict", b"{}", JSON, 501),
    ],
    ids=range(21),
)
def test_malformed_requests_are_refused(
    server: LoopbackServer, method: str, path: str, body: bytes | None, headers: dict[str, str], status: int
) -> None:
    found, answer = ask(server, method, path, body, headers)
    assert found == status
    assert answer["error"]


@pytest.mark.parametrize("header", ["", "Bearer ", "Bearer x", "Bearer \xe4", "Basic {}", "Bearer {}x", "{}"])
def test_requests_without_the_token_are_refused(server: LoopbackServer, header: str) -> None:
    for method, path in [("GET", "/"), ("GET", "/model"), ("POST", "/predict"), ("GET", "/nothing")]:
        status, answer = ask(
            server, method, path, headers={"Authorization": header.format(server.token)}, token=False
        )
        assert (status, set(answer)) == (401, {"error", "hint"})
        assert server.token not in json.dumps(answer)


def test_the_server_listens_only_on_loopback(server: LoopbackServer) -> None:
    assert server._server.server_address[0] == "127.0.0.1"


def test_a_port_that_is_taken_and_a_short_token_are_refused(server: LoopbackServer) -> None:
    with pytest.raises(StorageError, match=f"127.0.0.1:{server.port}"):
        LoopbackServer({}, port=server.port)
    for token in ("short", "a" * 20 + "&x=", "ä" * 20):
        with pytest.raises(ValueError, match="16 or more"):
            LoopbackServer({}, token=token)


def _connect(server: LoopbackServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=30)


def _read_all(connection: socket.socket) -> bytes:
    """Return what the server sends until it closes the connection."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def _read_until(connection: socket.socket, end: bytes) -> bytes:
    """Return what the server sends until an end of it, without a close of the connection."""
    found = b""
    while not found.endswith(end):
        found += connection.recv(65536) or b"closed" + end
    assert b"closed" not in found
    return found


def _get_head(server: LoopbackServer, line: str = "GET / HTTP/1.1", more: str = "") -> bytes:
    return (
        f"{line}\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n{more}".encode()
    )


def test_the_oldest_excess_connections_without_the_token_are_closed() -> None:
    with LoopbackServer({}) as found:
        found.start()
        silent = [_connect(found) for _ in range(MOST + 8)]
        assert [one.recv(1) for one in silent[:8]] == [b""] * 8  # waits until each is closed
        assert select.select(silent[8:], [], [], 0)[0] == []
        for one in silent:
            one.close()


def test_slow_connections_do_not_block_the_owner() -> None:
    with LoopbackServer({("GET", "/"): lambda _: Reply("here")}) as found:
        found.start()
        owner = _connect(found)  # stays open between requests
        owner.sendall(_get_head(found) + b"\r\n")
        assert _read_until(owner, b'"here"')
        slow = [_connect(found) for _ in range(3 * MOST)]
        for one in slow[-MOST:]:
            one.sendall(b"GET / HTTP/1.1\r\nX: y\r\n")  # never ends
        assert ask(found, "GET", "/") == (200, "here")
        owner.sendall(_get_head(found) + b"\r\n")
        assert _read_until(owner, b'"here"')
        for one in [owner, *slow]:
            one.close()


@pytest.mark.parametrize("begun", ["G", "GET / H", "head", "body"])
def test_a_request_that_takes_too_long_is_closed(begun: str) -> None:
    """However often a byte of it comes: the clock stands still but for the test."""
    now, asked = [0.0], queue.SimpleQueue[None]()

    def clock() -> float:
        asked.put(None)
        return now[0]

    def wait_until_asked(times: int) -> None:
        for _ in range(times):
            asked.get(timeout=30)

    with LoopbackServer({("POST", "/"): lambda request: Reply(request.json)}, clock=clock) as found:
        found.start()
        head = _get_head(found, "POST / HTTP/1.1", "Content-Type: application/json\r\nContent-Length: 9\r\n")
        sent = {"head": head, "body": head + b"\r\n[1"}.get(begun, begun.encode())
        with _connect(found) as connection:
            wait_until_asked(3)  # at the connection, at the request, and before the first read
            now[0] += 29
            connection.sendall(sent)
            wait_until_asked(2)  # behind the first read, and before the second
            now[0] += 2
            connection.sendall(b" ")
            assert _read_all(connection) == b""


@pytest.mark.parametrize(
    "fields",
    [
        "Transfer-Encoding : chunked",
        "Content-Length: 2\r\nTransfer-Encoding : chunked",
        "Content-Length : 2",
        " Content-Length: 2",
        "Content-Length: 2\r\n folded: 3",
        "Content-Length: 2\r\nContent-Length: 2",
        "Content-Length: 2\r\nContent-Length: 3",
        "Content-Length: 2, 2",
        "Content-Length: +2",
        "Content-Length: 2\rX: y",
        "Content-Length: 2\r\nX\0Y: z",
        "not a field",
        ": empty",
        "\r\n".join(f"X-{k}: y" for k in range(101)),
        "X: " + "y" * 70_000,
    ],
    ids=range(15),
)
def test_ambiguous_headers_are_refused(server: LoopbackServer, fields: str) -> None:
    head = _get_head(server, "POST /predict HTTP/1.1", f"Content-Type: application/json\r\n{fields}\r\n\r\n")
    with _connect(server) as connection:
        connection.sendall(head + b"[]")
        answer = _read_all(connection)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 411 "))


def test_the_response_to_an_exception_contains_its_message() -> None:
    raised: list[Exception] = [
        FeedError("a b", hint="c"),
        ZeroDivisionError("d"),
        MemoryError(),
        Refusal(418, "e"),
    ]

    def fail(_: Any) -> Reply:
        raise raised.pop(0)

    with LoopbackServer({("GET", "/"): fail}) as found:
        found.start()
        answers = [ask(found, "GET", "/") for _ in range(4)]
    assert [status for status, _ in answers] == [400, 500, 500, 418]
    assert answers[0][1] == {"error": "a b", "hint": "c"}


@pytest.mark.parametrize(
    ("line", "status"),
    [("GET http://[ HTTP/1.1", 400), ("GET", 400), ("GET / HTTP/9.9", 505), ("BREW / HTTP/1.1", 501)],
    ids=["address", "short", "version", "method"],
)
def test_a_line_that_is_not_a_request_gets_an_error_response(
    server: LoopbackServer, line: str, status: int
) -> None:
    head = f"{line}\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(head.encode())
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    found, _, body = answer.partition(b"\r\n\r\n")
    assert json.loads(body)["error"]
    assert found.startswith(f"HTTP/1.1 {status} ".encode())
