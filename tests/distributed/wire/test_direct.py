"""Direct connections: what goes through, who may connect, and how they fail."""

from __future__ import annotations

import functools
import math
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from paddlelike.distributed.wire import (
    CHUNK,
    FLUSH,
    Channel,
    Into,
    Item,
    Note,
    Part,
    Security,
    Server,
    Tls,
    make_parts,
)
from paddlelike.distributed.wire.direct.tls import make_client_context, make_server_context
from paddlelike.distributed.wire.idle import IdleWatch
from paddlelike.errors import DeadlineError, FrameError, RejectedError, UnreachableError
from tests.distributed.wire.certificates import Authority, write
from tests.distributed.wire.conftest import CLEAR, Serve, assert_arrays_come_back
from tests.distributed.wire.verbs import Count, Fail, Refuse, Source, Store, Verb, Wait

LARGE = 9 << 20  # more than a frame holds
AUTHORITY = Authority()
SECURED = Security(tls=AUTHORITY.issue())


@pytest.fixture(params=[CLEAR, SECURED], ids=["clear", "tls"])
def serve(request: pytest.FixtureRequest, serve: Serve) -> Serve:
    """Start a server and a channel as the other tests of the wire do; every test here runs over TLS too."""
    return functools.partial(serve, security=request.param)


def call(
    channel: Channel, verb: str, head: dict[str, Any], *arguments: Any, **options: Any
) -> dict[str, Any]:
    direct = channel.open_direct()
    assert direct is not None
    return channel.call(verb, head, *arguments, direct=direct, **options)


def connect(server: Server, text: bytes) -> socket.socket:
    """Connect to the direct listener and send a first frame with a text."""
    assert server._direct_server is not None
    listener = server._direct_server._listener
    assert listener is not None
    sock = socket.create_connection(("127.0.0.1", listener.getsockname()[1]), 10)
    tls = server._security.tls
    if tls is not None:
        sock = make_client_context(tls).wrap_socket(sock, server_hostname="127.0.0.1")
    sock.sendall(struct.pack("<BIIQ", 1, len(text), 0, 0) + text)
    if tls is not None and text == ticket(server):
        assert sock.recv(17) == struct.pack("<BIIQ", 1, 0, 0, 0)
    return sock


def get_watch(server: Server) -> IdleWatch:
    assert server._direct_server is not None
    return server._direct_server._watch


def await_wait(server: Server, *, until: float) -> None:
    """Return when the direct server waits for a peer, no longer than until then."""
    end = time.monotonic() + 60
    while until not in [wait.deadline for wait in list(get_watch(server)._waits.values())]:
        assert time.monotonic() < end
        time.sleep(0.001)


def ticket(server: Server) -> bytes:
    assert server._direct_server is not None
    return server._direct_server._ticket.encode()


# What goes through


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 100_000, CHUNK + 1, LARGE])
def test_arrays_come_back_as_they_were_sent(serve: Serve, size: int) -> None:
    _, channel = serve({"Store": Store()})
    assert_arrays_come_back(functools.partial(call, channel), size)


def test_more_arrays_than_one_frame_holds_go_through_in_order(serve: Serve) -> None:
    _, channel = serve({"Store": Store()})
    sent = {index: np.full(3, index % 251, np.uint8) for index in range(1200)}
    into = Into({index + 100: np.zeros(3, np.uint8) for index in sent})
    call(channel, "Store", {"sizes": {str(index): 3 for index in sent}}, make_parts(sent), into)
    into.check()
    assert all((into.arrays[index + 100] == index % 251).all() for index in sent)


def test_calls_of_several_threads_have_a_connection_each(serve: Serve) -> None:
    wait = Wait()
    _, channel = serve({"Wait": wait, "Echo": Verb()})
    thread = threading.Thread(target=call, args=(channel, "Wait", {}))
    thread.start()
    assert wait.entered.acquire(timeout=30)
    assert call(channel, "Echo", {"a": 1}) == {"a": 1}
    wait.go.set()
    thread.join(30)
    assert not thread.is_alive()
    assert len(channel._direct._idle) == 2


def test_a_flush_sends_a_part_before_the_next_one_exists(serve: Serve) -> None:
    arrived = threading.Event()

    class Notice(Into):
        def place(self, index: int, offset: int, length: int) -> memoryview:
            arrived.set()
            return super().place(index, offset, length)

    count = Count()
    count.begin = lambda head: Notice({0: np.zeros(2, np.uint8)})  # type: ignore[method-assign]
    _, channel = serve({"Count": count})

    def parts() -> Iterator[Item]:
        yield Part(0, 0, memoryview(b"a"))
        yield FLUSH
        assert arrived.wait(30)
        yield Part(0, 1, memoryview(b"b"))

    assert call(channel, "Count", {}, parts()) == {"ended": 1}


def test_notes_and_parts_of_arrays_arrive_in_the_order_sent(serve: Serve) -> None:
    events: list[Any] = []

    class Notes(Into):
        def place(self, index: int, offset: int, length: int) -> memoryview:
            events.append(offset)
            return super().place(index, offset, length)

        def note(self, header: dict[str, Any]) -> None:
            events.append(header)

    count = Count()
    count.begin = lambda head: Notes({0: np.zeros(2, np.uint8)})  # type: ignore[method-assign]
    _, channel = serve({"Count": count})
    items = [Part(0, 0, memoryview(b"a")), Note({"n": 1}), Part(0, 1, memoryview(b"b")), Note({"n": 2})]
    call(channel, "Count", {}, items)
    assert events == [0, {"n": 1}, 1, {"n": 2}]


# Refusals and failures


@pytest.mark.parametrize("when", ["begin", "end"])
def test_a_refusal_leaves_the_connection_usable(serve: Serve, when: str) -> None:
    _, channel = serve({"Refuse": Refuse(), "Echo": Verb()})
    data = np.zeros(LARGE, np.uint8)
    answer = call(channel, "Refuse", {"when": when, "size": LARGE}, make_parts({0: data}))
    assert answer == {"err": "stale" if when == "begin" else "late"}
    (kept,) = channel._direct._idle
    assert call(channel, "Echo", {}) == {}
    assert channel._direct._idle == [kept]


def test_a_verb_that_fails_is_an_error_of_the_caller_and_the_server_continues(serve: Serve) -> None:
    _, channel = serve({"Fail": Fail(), "Echo": Verb()})
    with pytest.raises(RejectedError, match=r"(?s)ZeroDivisionError: no trainers.*its log has the traceback"):
        call(channel, "Fail", {})
    assert call(channel, "Echo", {}) == {}


def test_records_that_a_call_does_not_take_are_refused_with_the_reason(serve: Serve) -> None:
    _, channel = serve({"Count": Count(), "Echo": Verb()})
    with pytest.raises(RejectedError, match=r"(?s)array 7 is not part of this call.*same program"):
        call(channel, "Count", {"size": LARGE}, make_parts({7: np.zeros(LARGE, np.uint8)}))
    with pytest.raises(RejectedError, match="1 records came with a call that takes none"):
        call(channel, "Echo", {}, make_parts({0: np.zeros(1, np.uint8)}))
    with pytest.raises(RejectedError, match="'Nothing' is not a verb of this server"):
        call(channel, "Nothing", {})


def test_an_error_while_parts_are_made_is_raised_and_the_call_is_not_completed(serve: Serve) -> None:
    count = Count()
    _, channel = serve({"Count": count})

    def parts() -> Iterator[Part]:
        yield Part(0, 0, memoryview(b"a"))
        raise ArithmeticError("while the gradient was computed")

    with pytest.raises(ArithmeticError):
        call(channel, "Count", {"size": 2}, parts())
    assert call(channel, "Count", {"size": 0}) == {"ended": 1}


def test_a_timeout_is_a_deadline_error(serve: Serve) -> None:
    wait = Wait()
    _, channel = serve({"Wait": wait})
    with pytest.raises(DeadlineError, match=r"no answer within 0\.2 s"):
        call(channel, "Wait", {}, timeout=0.2)
    wait.go.set()


def test_a_server_that_was_restarted_is_found_again(serve: Serve) -> None:
    server, channel = serve({"Echo": Verb()})
    assert call(channel, "Echo", {}) == {}
    server.stop(0)
    with pytest.raises(UnreachableError):
        call(channel, "Echo", {})
    with Server(channel.endpoint, {"Echo": Verb()}, security=server._security):
        end = time.monotonic() + 30
        while True:
            try:
                assert call(channel, "Echo", {"n": 1}) == {"n": 1}
                break
            except UnreachableError:  # gRPC still pauses between two attempts to connect
                assert time.monotonic() < end
                time.sleep(0.05)


def test_closing_a_channel_ends_the_call_under_way(serve: Serve) -> None:
    wait = Wait()
    _, channel = serve({"Wait": wait})
    errors: list[Exception] = []

    def run() -> None:
        try:
            call(channel, "Wait", {})
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert wait.entered.acquire(timeout=30)
    channel.close()
    thread.join(30)
    wait.go.set()
    assert [type(error) for error in errors] == [RejectedError]


# Who may connect


def test_the_ticket_is_given_only_to_holders_of_the_token(serve: Serve) -> None:
    server, _ = serve({"Echo": Verb()}, security=Security(token="secret"))
    with Channel(f"127.0.0.1:{server.port}", security=Security(token="other")) as stranger:
        assert stranger.open_direct() is None
        with pytest.raises(RejectedError, match="token"):
            stranger.call("Direct", {})


@pytest.mark.parametrize("text", [b"", b"x" * 32, b"\xff"])
def test_a_wrong_ticket_closes_the_connection(serve: Serve, text: bytes) -> None:
    server, channel = serve({"Echo": Verb()})
    with connect(server, text) as sock:
        assert sock.recv(1) == b""
    assert call(channel, "Echo", {}) == {}


STRANGERS = {
    "none": None,
    "of another authority": Authority("another job").issue(),
    "expired": AUTHORITY.issue(days=-1),
}


@pytest.mark.parametrize("serve", [SECURED], indirect=True, ids=["tls"])
@pytest.mark.parametrize("stranger", STRANGERS.values(), ids=STRANGERS)
def test_over_tls_the_ticket_is_refused_without_a_certificate_of_the_job(
    serve: Serve, stranger: Tls | None, tmp_path: Path
) -> None:
    server, channel = serve({"Echo": Verb()})
    assert server._direct_server is not None
    assert server._direct_server._listener is not None
    port = server._direct_server._listener.getsockname()[1]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if stranger is not None:
        files = write(stranger, tmp_path)
        context.load_cert_chain(files["PADDLELIKE_TLS_CERT"], files["PADDLELIKE_TLS_KEY"])
    text = ticket(server)
    plain = socket.create_connection(("127.0.0.1", port), 10)
    with context.wrap_socket(plain, do_handshake_on_connect=False) as sock:
        try:
            sock.do_handshake()
            sock.sendall(struct.pack("<BIIQ", 1, len(text), 0, 0) + text)
            came = sock.recv(17)
        except OSError:
            came = b""
    assert came == b""
    assert call(channel, "Echo", {}) == {}


@pytest.mark.parametrize("serve", [SECURED], indirect=True, ids=["tls"])
def test_a_client_that_the_direct_listener_refuses_calls_over_grpc(serve: Serve) -> None:
    """Here the listener's certificate is for another host than the one that the client called."""
    server, channel = serve({"Echo": Verb()})
    assert server._direct_server is not None
    server._direct_server._context = make_server_context(AUTHORITY.issue("10.9.8.7"))
    assert channel.open_direct() is None
    assert channel.call("Echo", {"a": 1}, direct=channel.open_direct()) == {"a": 1}


def test_a_server_may_speak_only_grpc(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    _, channel = serve({"Echo": Verb()}, direct=False)
    assert channel.open_direct() is None
    monkeypatch.setenv("PADDLELIKE_DIRECT", "0")
    _, channel = serve({"Echo": Verb()})
    assert channel.open_direct() is None


def test_calls_use_grpc_when_the_direct_port_cannot_be_reached(serve: Serve) -> None:
    server, channel = serve({"Echo": Verb()})
    assert server._direct_server is not None
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = free.getsockname()[1]
    server._direct_server.end = lambda *_: ({"port": nobody, "ticket": ""}, ())  # type: ignore[method-assign]
    assert channel.open_direct() is None
    assert channel.call("Echo", {"a": 1}, direct=channel.open_direct()) == {"a": 1}


# Peers that are silent or hostile


def test_silent_connections_with_the_ticket_do_not_stop_calls(serve: Serve) -> None:
    server, channel = serve({"Echo": Verb()}, workers=1)
    silent = [connect(server, ticket(server)) for _ in range(server.threads + 20)]
    for sock in silent[:10]:  # some in the midst of a call
        sock.sendall(b"\0\x05")
    assert call(channel, "Echo", {}) == {}
    assert silent[0].recv(1) == b""  # the one that waited longest was closed
    for sock in silent:
        sock.close()


def test_a_stalled_call_is_closed_after_the_deadline(serve: Serve) -> None:
    server, _ = serve({"Count": Count()}, idle=0.2)
    with connect(server, ticket(server)) as sock:
        text = b'{"verb":"Count","head":{"size":2}}'
        sock.sendall(struct.pack("<BIIQ", 0, len(text), 0, 0) + text)
        assert sock.recv(1) == b""


def test_empty_frames_keep_a_slow_call_alive(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0  # seconds, by the clock of the server's waits
    monkeypatch.setattr("paddlelike.distributed.wire.idle.time", SimpleNamespace(monotonic=lambda: now))
    server, channel = serve({"Count": Count()}, idle=600)

    def parts() -> Iterator[Item]:
        nonlocal now
        for _ in range(3):
            yield FLUSH
            await_wait(server, until=now + 600)
            now += 400
            get_watch(server).cancel_expired(now)
        yield Part(0, 0, memoryview(b"ab"))

    assert call(channel, "Count", {"size": 2}, parts()) == {"ended": 1}


def test_a_connection_may_be_idle_between_two_calls(serve: Serve) -> None:
    server, channel = serve({"Echo": Verb()})
    assert call(channel, "Echo", {}) == {}
    (kept,) = channel._direct._idle
    await_wait(server, until=math.inf)
    get_watch(server).cancel_expired(time.monotonic() + 1e9)
    assert call(channel, "Echo", {}) == {}
    assert channel._direct._idle == [kept]


HEAD = b'{"verb":"Count","head":{"size":4}}'
BAD_FRAMES = {
    "kind": struct.pack("<BIIQ", 9, 0, 0, 0),
    "text": struct.pack("<BIIQ", 1, 1 << 20, 0, 0),
    "records": struct.pack("<BIIQ", 1, 0, 1 << 30, 0),
    "payload": struct.pack("<BIIQ", 1, 0, 1, 1 << 50),
    "no JSON": struct.pack("<BIIQ", 1, 3, 0, 0) + b"abc",
    "no verb": struct.pack("<BIIQ", 1, 2, 0, 0) + b"{}",
    "sums": struct.pack("<BIIQ", 1, len(HEAD), 1, 4) + HEAD + struct.pack("<IQI", 0, 0, 3) + b"abcd",
    "place": struct.pack("<BIIQ", 1, len(HEAD), 1, 4) + HEAD + struct.pack("<IQI", 0, 1 << 60, 4) + b"abcd",
    "an error": struct.pack("<BIIQ", 2, len(HEAD), 0, 0) + HEAD,
    "noise": np.random.default_rng(0).bytes(200),
}


@pytest.mark.parametrize("frame", BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_a_malformed_frame_ends_only_its_own_connection(serve: Serve, frame: bytes) -> None:
    count = Count()
    server, channel = serve({"Count": count, "Echo": Verb()})
    with connect(server, ticket(server)) as sock:
        sock.sendall(frame)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(1 << 16):
            pass
    assert count.ended == 0
    assert call(channel, "Echo", {}) == {}


def test_a_malformed_answer_is_reported_as_a_fault_of_the_server(serve: Serve) -> None:
    _, channel = serve({"Source": Source()})
    with pytest.raises(RejectedError, match="malformed answer"):
        call(channel, "Source", {"size": 8}, (), Into({0: np.zeros(4, np.uint8)}))


def test_notes_need_a_receiver_that_takes_them(serve: Serve) -> None:
    _, channel = serve({"Count": Count()})
    with pytest.raises(RejectedError, match="a note came with a call that takes none"):
        call(channel, "Count", {"size": 0}, [Note({}), FLUSH])
    with pytest.raises(FrameError, match="not plain JSON"):
        call(channel, "Count", {"size": 0}, [Note({"a": object()})])
