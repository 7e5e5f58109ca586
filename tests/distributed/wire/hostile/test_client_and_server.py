"""Hostile peers: a server answers the next call, and takes no memory for bytes that were not sent."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from paddlelike.distributed.wire import CHUNK, Channel, Into, Security, make_parts
from paddlelike.distributed.wire.frames import messages
from paddlelike.distributed.wire.idle import FIRST_MESSAGE, IdleWatch
from paddlelike.errors import RejectedError, RemoteError, UnreachableError
from tests.distributed.wire.conftest import CLEAR, Serve
from tests.distributed.wire.hostile import http2
from tests.distributed.wire.hostile.http2 import Connection, frame, grpc_message
from tests.distributed.wire.test_frames import BAD_BODIES, BAD_HEADERS, damaged_messages
from tests.distributed.wire.verbs import Count, Source, Store, Verb

grpc = pytest.importorskip("grpc", reason="grpcio is in the extra 'dist'")

PROJECT = Path(__file__).parents[4]
MIB = 1 << 20
HEAD = struct.pack("<I", 2) + b"{}"
WHOLE = HEAD + struct.pack("<IQ", 0, 0)


class Victim:
    """A server in another process."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.distributed.wire.hostile.victim"]
        self._process = subprocess.Popen(
            command,
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.channel = Channel(f"127.0.0.1:{self.port}", security=CLEAR)
        self.check()

    def check(self, timeout: float = 30) -> None:
        """Assert that a valid call is answered by the process that was started."""
        size = 100
        sent = np.arange(size, dtype=np.uint8)
        into = Into({100: np.zeros_like(sent)})
        self.channel.call("Store", {"sizes": {"0": size}}, make_parts({0: sent}), into, timeout=timeout)
        np.testing.assert_array_equal(into.arrays[100], sent)
        assert self._process.poll() is None

    def peak(self) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def end(self) -> None:
        self.channel.close()
        self._process.communicate(timeout=30)


@pytest.fixture(scope="module")
def victim() -> Iterator[Victim]:
    started = Victim()
    yield started
    started.end()


# Messages


def send(port: int, frames: list[bytes], method: str = "Store") -> str:
    """Send messages of any content with a proper gRPC client; return the name of the status."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            list(channel.stream_stream(f"/paddlelike.PS.v1/{method}")(iter(frames), timeout=30))
        except grpc.RpcError as error:
            return str(error.code().name)
    return "OK"


@pytest.mark.parametrize("message", [m for m, _ in BAD_HEADERS], ids=[text for _, text in BAD_HEADERS])
def test_a_bad_header_is_an_invalid_argument(victim: Victim, message: bytes) -> None:
    assert send(victim.port, [message]) == "INVALID_ARGUMENT"
    victim.check()


@pytest.mark.parametrize("message", [m for m, _ in BAD_BODIES], ids=[text for _, text in BAD_BODIES])
def test_a_bad_body_is_an_invalid_argument(victim: Victim, message: bytes) -> None:
    (head,) = messages({"sizes": {"0": 8}}, ())
    assert send(victim.port, [head[:-12], message]) == "INVALID_ARGUMENT"  # as a stream
    if message:
        assert send(victim.port, [head[:-12] + message]) == "INVALID_ARGUMENT"  # as one message
    victim.check()


@pytest.mark.parametrize(
    "frames",
    [[], [HEAD], [HEAD, struct.pack("<IQ", 0, 1)], [b""] * 100],
    ids=["nothing", "no-end", "wrong-end", "empty"],
)
def test_a_stream_that_is_cut_is_an_invalid_argument(victim: Victim, frames: list[bytes]) -> None:
    assert send(victim.port, frames, "Echo") == "INVALID_ARGUMENT"
    victim.check()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.binary(max_size=300) | damaged_messages() | st.sampled_from([HEAD, WHOLE]), max_size=5),
    st.sampled_from(["Store", "Store.stream", "Echo", "Echo.stream", "Source.stream", "Nope"]),
)
def test_random_messages_do_not_stop_a_server(victim: Victim, frames: list[bytes], method: str) -> None:
    assert send(victim.port, frames, method) in {"OK", "INVALID_ARGUMENT", "ABORTED", "UNIMPLEMENTED"}
    victim.check()


# Memory


def test_a_message_above_the_limit_is_refused_before_memory_is_allocated(victim: Victim) -> None:
    before = victim.peak()
    with Connection(victim.port) as connection:
        connection.call("Store")
        connection.data(1, grpc_message(b"x" * 1000, length=0xFFFFFFFF))
        connection.until_end(1)
    victim.check()
    assert victim.peak() - before < 16 * MIB


def test_a_compressed_message_above_the_limit_is_not_unpacked(victim: Victim) -> None:
    before = victim.peak()
    with grpc.insecure_channel(f"127.0.0.1:{victim.port}", [("grpc.max_send_message_length", -1)]) as channel:
        call = channel.unary_unary("/paddlelike.PS.v1/Echo")
        with pytest.raises(grpc.RpcError):  # 64 KiB on the way
            call(HEAD + bytes(64 * MIB), timeout=30, compression=grpc.Compression.Gzip)
    victim.check()
    assert victim.peak() - before < 16 * MIB


def test_a_message_above_the_limit_is_refused(victim: Victim) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{victim.port}", [("grpc.max_send_message_length", -1)]) as channel:
        call = channel.unary_unary("/paddlelike.PS.v1/Echo")
        with pytest.raises(grpc.RpcError, match="RESOURCE_EXHAUSTED"):
            call(HEAD + bytes(9 * MIB), timeout=30)
    victim.check()


def test_announced_records_take_no_memory(victim: Victim) -> None:
    before = victim.peak()
    record = struct.pack("<IIQI", 1, 0, 0, 0xFFFFFFFF)
    for _ in range(10):
        assert send(victim.port, [HEAD, record + b"few"]) != "OK"
    victim.check()
    assert victim.peak() - before < 16 * MIB


def test_many_open_calls_take_little_memory(victim: Victim) -> None:
    """Each would send 7 MB and sends 30 KB; all but the first threads' wait outside our code."""
    before = victim.peak()
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            connection = stack.enter_context(Connection(victim.port))
            for stream in (1, 3):
                connection.call("Echo", stream)
                connection.data(stream, grpc_message(b"x" * 15_000, length=7_000_000))
                connection.data(stream, b"x" * 15_000)
        victim.check()
        assert victim.peak() - before < 16 * MIB


# Peers that stop in the middle


def open_stalled_call(kind: str, port: int) -> Connection:
    """Begin a call that neither continues nor closes."""
    connection = Connection(port, window=0 if kind == "unread-answer" else 65535)
    if kind == "unread-answer":
        connection.call("Source.stream")
        (head,) = messages({"size": 3 * CHUNK}, ())
        connection.data(1, grpc_message(head), end=True)
        return connection
    connection.call("Store")
    if kind == "half-a-message":
        connection.data(1, grpc_message(WHOLE)[:-3])
    elif kind == "half-a-stream":
        connection.data(1, grpc_message(HEAD))
    return connection


@pytest.mark.parametrize("kind", ["no-message", "half-a-message", "half-a-stream", "unread-answer"])
def test_a_peer_that_stops_in_the_middle_does_not_block_a_thread_for_long(serve: Serve, kind: str) -> None:
    verbs = {"Store": Store(), "Source": Source(), "Echo": Verb()}
    server, channel = serve(verbs, workers=1, idle=0.5)
    with open_stalled_call(kind, server.port), open_stalled_call(kind, server.port):
        end = time.monotonic() + 60
        while True:
            try:
                assert channel.call("Echo", {"a": 1}, timeout=30) == {"a": 1}
                break
            except UnreachableError:  # cancelled as well: a loaded machine may be slower than the limit
                assert time.monotonic() < end


def test_only_time_spent_waiting_for_a_peer_counts_as_silence(serve: Serve) -> None:
    class Slow(Verb):
        def end(self, head: dict[str, object], receiver: object) -> object:  # type: ignore[override]
            watch.cancel_expired(time.monotonic() + 1e6)  # as if it took that long
            return super().end(head, receiver)

    server, channel = serve({"Slow": Slow()}, idle=600)
    watch = server._watch
    assert channel.call("Slow", {"a": 1}) == {"a": 1}
    cancelled: list[str] = []
    for name, ahead in (("one", 599), ("two", 599), ("three", 601)):  # more than the limit in all
        wait = watch.begin_wait(functools.partial(cancelled.append, name), is_started=True)
        watch.cancel_expired(time.monotonic() + ahead)
        watch.end_wait(wait)
    assert cancelled == ["three"]


def test_the_first_message_must_arrive_within_a_time_limit() -> None:
    watch = IdleWatch(600, most=8)
    cancelled: list[str] = []
    for name, is_started in (("silent", False), ("begun", True)):
        watch.begin_wait(functools.partial(cancelled.append, name), is_started=is_started)
    watch.cancel_expired(time.monotonic() + FIRST_MESSAGE + 1)
    assert cancelled == ["silent"]


def test_the_oldest_of_too_many_waits_are_cancelled() -> None:
    watch = IdleWatch(600, most=3)
    cancelled: list[str] = []
    for name, is_started in (("a", True), ("b", False), ("c", False), ("d", True), ("e", True), ("f", True)):
        watch.begin_wait(functools.partial(cancelled.append, name), is_started=is_started)
    assert cancelled == ["a", "b", "c"]


TOKEN = Security(token="secret")


@pytest.mark.parametrize("connections", [1, 120], ids=["one connection", "a connection each"])
@pytest.mark.parametrize("sends", ["nothing", "a header"])
def test_silent_streams_that_hold_the_token_do_not_stop_a_server(
    serve: Serve, connections: int, sends: str
) -> None:
    _, channel = serve({"Store": Store(), "Echo": Verb()}, security=TOKEN, workers=12, idle=600)
    (head,) = messages({"sizes": {"0": 8}}, ())
    over = threading.Event()

    def silent() -> Iterator[bytes]:
        if sends == "a header":
            yield head[:-12]
        over.wait(60)

    with contextlib.ExitStack() as stack:
        stack.callback(over.set)
        options = [("grpc.use_local_subchannel_pool", 1)]
        flood = [
            stack.enter_context(grpc.insecure_channel(channel.endpoint, options)) for _ in range(connections)
        ]
        calls = [
            flood[number % connections].stream_stream("/paddlelike.PS.v1/Store.stream")(
                silent(), metadata=TOKEN.metadata()
            )
            for number in range(120)
        ]
        seen = 0
        for number in range(50):  # calls of a trainer, each tried again where it is cancelled as well
            with contextlib.suppress(UnreachableError):
                assert channel.call("Echo", {"number": number}, timeout=30) == {"number": number}
                seen += 1
        assert seen >= 45
        for call in calls:
            call.cancel()


def test_unfinished_health_checks_do_not_block_a_thread(serve: Serve) -> None:
    server, channel = serve({"Echo": Verb()}, security=TOKEN, workers=1, idle=600)
    with contextlib.ExitStack() as stack:
        for _ in range(3 * server.threads):
            stack.enter_context(Connection(server.port)).call("Check", service="grpc.health.v1.Health")
        assert channel.call("Echo", {"a": 1}, timeout=30) == {"a": 1}


CLIENT = """
import sys
from paddlelike.distributed.wire import CHUNK, Channel, Part, Security
def parts():
    for number in range(3):
        yield Part(0, number * CHUNK, memoryview(bytes(CHUNK)))
    print("half", flush=True)
    sys.stdin.read()
Channel(sys.argv[1], security=Security()).call("Count", {"size": 8 * CHUNK}, parts())
"""


def test_a_client_that_is_killed_in_the_middle_frees_its_thread(serve: Serve) -> None:
    count = Count()
    server, channel = serve({"Count": count, "Echo": Verb()}, workers=1, idle=600)
    command = [sys.executable, "-c", CLIENT, f"127.0.0.1:{server.port}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"half\n"
        os.kill(client.pid, signal.SIGKILL)
    assert channel.call("Echo", {"a": 1}, timeout=30) == {"a": 1}
    assert count.ended == 0


# Bytes that are not gRPC, or not even HTTP/2

VALID = (
    http2.PREFACE
    + frame(4, 0, 0)
    + frame(1, 4, 1, http2.literal(":method", "POST") + http2.literal(":path", "/paddlelike.PS.v1/Echo"))
    + frame(0, 1, 1, grpc_message(WHOLE))
)
GARBAGE = {
    "nothing": b"",
    "zeros": bytes(5000),
    "http1": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tls": bytes.fromhex("1603010200010001fc0303") + bytes(300),
    "half-preface": http2.PREFACE[:10],
    "no-settings": http2.PREFACE + frame(0, 0, 1, b"x"),
    "frame-of-16-MB": http2.PREFACE + frame(4, 0, 0) + frame(0, 0, 1, b"x", length=0xFFFFFF),
    "bad-settings": http2.PREFACE + frame(4, 0, 0, b"12345"),
    "unknown-kinds": http2.PREFACE
    + frame(4, 0, 0)
    + b"".join(frame(kind, 255, 7, b"y" * 8) for kind in range(10, 99)),
    "endless-headers": http2.PREFACE
    + frame(4, 0, 0)
    + frame(1, 0, 1, b"\0\1a\1b")
    + frame(9, 0, 1, b"\0\1a\1b" * 3000) * 50,
    "bad-hpack": http2.PREFACE + frame(4, 0, 0) + frame(1, 5, 1, b"\xff" * 50),
    "even-stream": http2.PREFACE + frame(4, 0, 0) + frame(1, 5, 2, b"\0\1a\1b"),
    "pings": http2.PREFACE + frame(4, 0, 0) + frame(6, 0, 0, b"12345678") * 500,
    "resets": http2.PREFACE
    + frame(4, 0, 0)
    + b"".join(frame(1, 4, n, b"\x83\x86\0\5:path\1/") + frame(3, 0, n, bytes(4)) for n in range(1, 2001, 2)),
    "window-overflow": http2.PREFACE + frame(4, 0, 0) + frame(8, 0, 0, b"\x7f\xff\xff\xff") * 3,
    "goaway": http2.PREFACE + frame(4, 0, 0) + frame(7, 0, 0, bytes(8)),
}


def pour(port: int, data: bytes) -> None:
    """Send data, shut the sending side down, read until the server closes."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as connection,
        contextlib.suppress(OSError),
    ):
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
def test_garbage_does_not_stop_a_server(victim: Victim, data: bytes) -> None:
    before = victim.peak()
    pour(victim.port, data)
    victim.check()
    assert (
        victim.peak() - before < 64 * MIB
    )  # gRPC itself takes 30 for the 75,000 headers of 0.75 MB, for a while


@pytest.mark.parametrize("seed", range(40))
def test_damaged_connections_do_not_stop_a_server(victim: Victim, seed: int) -> None:
    random_ = random.Random(seed)
    for _ in range(5):
        data = bytearray(VALID)
        for _ in range(random_.randint(1, 6)):
            at = random_.randrange(len(http2.PREFACE) if random_.random() < 0.9 else 0, len(data))
            match random_.randrange(3):
                case 0:
                    data[at] ^= 1 << random_.randrange(8)
                case 1:
                    data[at:at] = random_.randbytes(random_.randint(1, 30))
                case 2:
                    del data[at : at + random_.randint(1, 10)]
        pour(victim.port, bytes(data))
    victim.check()


def test_many_connections_at_once_do_not_stop_a_server(victim: Victim) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(socket.create_connection(("127.0.0.1", victim.port), timeout=30))
        victim.check()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: pour(victim.port, VALID), range(100)))
    victim.check()


# The other direction: a server that is not a server


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\n\r\nhi", bytes(1000)], ids=["closes", "http1", "zeros"]
)
def test_a_client_survives_a_peer_that_is_not_a_server(answer: bytes) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        concurrent.futures.ThreadPoolExecutor(1) as pool,
        Channel(f"127.0.0.1:{listener.getsockname()[1]}", security=CLEAR) as channel,
    ):
        call = pool.submit(channel.call, "Hello", {}, timeout=10)
        connection, _ = listener.accept()
        with connection:
            connection.sendall(answer)
        with pytest.raises(RemoteError):
            call.result(30)


@contextlib.contextmanager
def serve_messages(frames: list[bytes]) -> Iterator[Channel]:
    """Yield a channel to a gRPC server that answers every call with these messages."""

    def answer(requests: Iterator[bytes], context: object) -> Iterator[bytes]:
        yield from frames

    handler = grpc.stream_stream_rpc_method_handler(answer)
    pool = concurrent.futures.ThreadPoolExecutor(1)
    server = grpc.server(
        pool, [grpc.method_handlers_generic_handler("paddlelike.PS.v1", {"A.stream": handler})]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with Channel(f"127.0.0.1:{port}", security=CLEAR) as channel:
            yield channel
    finally:
        server.stop(0).wait()
        pool.shutdown()


@pytest.mark.parametrize(
    "frames",
    [[], [b""], [HEAD], [HEAD, HEAD], [HEAD, struct.pack("<IQ", 0, 1)]],
    ids=["nothing", "empty", "no-end", "no-body", "wrong-end"],
)
def test_a_client_refuses_a_truncated_answer(frames: list[bytes]) -> None:
    with serve_messages(frames) as channel, pytest.raises(RejectedError, match="a malformed answer"):
        channel.call("A", {}, receiver=Into({}), timeout=30)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=100) | damaged_messages() | st.sampled_from([HEAD, WHOLE]), max_size=4))
def test_a_client_refuses_a_malformed_answer(frames: list[bytes]) -> None:
    into = Into({0: np.zeros(4, np.uint8), 1: np.zeros(8)})
    with serve_messages(frames) as channel, contextlib.suppress(RejectedError):
        assert isinstance(channel.call("A", {}, receiver=into, timeout=30), dict)
