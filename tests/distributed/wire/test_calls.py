"""Calls between a server and a channel, whole and streamed, and how they fail."""

from __future__ import annotations

import concurrent.futures
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from paddlelike.distributed.wire import CHUNK, WHOLE, Channel, Into, Part, Server, make_parts
from paddlelike.distributed.wire.direct import DirectServer
from paddlelike.errors import (
    DeadlineError,
    EndpointError,
    FrameError,
    RejectedError,
    RemoteError,
    UnreachableError,
)
from tests.distributed.jobs import free_endpoints
from tests.distributed.wire.conftest import CLEAR, Serve, assert_arrays_come_back
from tests.distributed.wire.verbs import Count, Fail, Refuse, Source, Store, Verb, Wait
from tests.interrupts.interrupting import interrupt, list_operations, no_longer_than

SIZES = [0, 1, 1000, CHUNK + 1, WHOLE, WHOLE + 1, 7 * CHUNK + 5]


# What goes through


@pytest.mark.parametrize("size", SIZES)
def test_arrays_come_back_as_they_were_sent(serve: Serve, size: int) -> None:
    _, channel = serve({"Store": Store()})
    assert_arrays_come_back(channel.call, size)


@pytest.mark.parametrize("size", [0, 1000, WHOLE])
def test_an_answer_of_known_size_comes_as_one_message(serve: Serve, size: int) -> None:
    _, channel = serve({"Source": Source()})
    into = Into({0: np.zeros(size, np.uint8)})
    channel.call("Source", {"size": size}, receiver=into, answer_size=size)
    into.check()
    assert into.arrays[0].sum() == size


def test_a_wrong_answer_size_is_explained(serve: Serve) -> None:
    _, channel = serve({"Source": Source()})
    into = Into({0: np.zeros(2 * WHOLE, np.uint8)})
    with pytest.raises(RejectedError, match=r"(?s)more than 1048576 bytes.*leave out answer_size"):
        channel.call("Source", {"size": 2 * WHOLE}, receiver=into, answer_size=10)


def test_the_receiver_may_be_made_from_the_header_of_the_answer(serve: Serve) -> None:
    _, channel = serve({"Store": Store()})
    seen = []

    def begin(head: dict[str, Any]) -> Into:
        seen.append(head)
        return Into({100: np.zeros(3, np.uint8)})

    channel.call("Store", {"sizes": {"0": 3}}, make_parts({0: np.arange(3, dtype=np.uint8)}), begin)
    assert seen == [{"kept": [0]}]


def test_parts_are_sent_as_they_are_produced(serve: Serve) -> None:
    count = Count()
    _, channel = serve({"Count": count})
    piece = memoryview(bytes(CHUNK))

    def parts() -> Iterator[Part]:
        for number in range(4):
            yield Part(0, number * CHUNK, piece)
            if number == 2:  # the server has begun before the last part exists
                assert arrived.wait(30)

    arrived = threading.Event()
    begin = count.begin
    count.begin = lambda head: (arrived.set(), begin(head))[1]  # type: ignore[method-assign]
    assert channel.call("Count", {"size": 4 * CHUNK}, parts()) == {"ended": 1}


def test_many_threads_share_a_channel(serve: Serve) -> None:
    _, channel = serve({"Store": Store()}, workers=3)

    def call(number: int) -> bool:
        size = 2 * WHOLE if number % 5 == 0 else 100
        sent = np.random.default_rng(number).integers(0, 256, size, np.uint8)
        into = Into({100: np.zeros_like(sent)})
        channel.call("Store", {"sizes": {"0": size}}, make_parts({0: sent}), into)
        into.check()
        return bool((into.arrays[100] == sent).all())

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert all(pool.map(call, range(30)))


def test_calls_wait_for_a_free_thread(serve: Serve) -> None:
    wait = Wait()
    server, channel = serve({"Wait": wait, "Echo": Verb()}, workers=1)
    with (
        concurrent.futures.ThreadPoolExecutor(server.threads + 1) as pool,
        Channel(channel.endpoint, security=CLEAR) as other,  # one connection carries fewer calls
    ):
        first = [pool.submit((channel, other)[i % 2].call, "Wait", {}) for i in range(server.threads)]
        for _ in first:
            assert wait.entered.acquire(timeout=30)
        second = pool.submit(channel.call, "Echo", {"a": 1})
        assert not second.done()
        wait.go.set()
        assert second.result(30) == {"a": 1}
        assert [one.result(30) for one in first] == [{}] * server.threads


# Refused and failed


@pytest.mark.parametrize("size", [10, 5 * CHUNK], ids=["whole", "streamed"])
def test_a_refusal_is_returned_as_an_answer(serve: Serve, size: int) -> None:
    _, channel = serve({"Refuse": Refuse()})
    parts = make_parts({0: np.zeros(size, np.uint8)})
    assert channel.call("Refuse", {"when": "begin"}, parts) == {"err": "stale"}
    assert channel.call("Refuse", {"when": "end", "size": size}, parts) == {"err": "late"}
    into = Into({})
    assert channel.call("Refuse", {"when": "begin"}, parts, into) == {"err": "stale"}


def test_a_verb_that_fails_is_named_with_its_error(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    server, channel = serve({"Fail": Fail()})
    with pytest.raises(RejectedError, match="ZeroDivisionError: no trainers") as caught:
        channel.call("Fail", {})
    assert (caught.value.endpoint, caught.value.verb) == (f"127.0.0.1:{server.port}", "Fail")
    assert not caught.value.retryable
    assert str(caught.value).startswith(f"Fail to 127.0.0.1:{server.port}: ")
    assert "Fail failed" in caplog.text


def test_an_unknown_verb_is_not_retried(serve: Serve) -> None:
    _, channel = serve({"Echo": Verb()})
    with pytest.raises(RejectedError, match="same version"):
        channel.call("Eco", {})


def test_a_record_for_an_unknown_array_is_not_retried(serve: Serve) -> None:
    _, channel = serve({"Store": Store()})
    with pytest.raises(RejectedError, match="array 9 is not part of this call"):
        channel.call("Store", {"sizes": {"0": 1}}, [Part(9, 0, memoryview(b"x"))])


def test_an_incomplete_push_is_never_completed(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    count = Count()
    _, channel = serve({"Count": count, "Echo": Verb()})

    def parts() -> Iterator[Part]:
        for number in range(3):
            yield Part(0, number * CHUNK, memoryview(bytes(CHUNK)))
        raise LookupError("the gradient is gone")

    with pytest.raises(LookupError, match="the gradient is gone"):
        channel.call("Count", {"size": 4 * CHUNK}, parts())
    assert channel.call("Echo", {"a": 1}) == {"a": 1}
    assert (count.begun, count.ended) == (1, 0)


def test_an_answer_that_does_not_fit_is_refused(serve: Serve) -> None:
    _, channel = serve({"Source": Source()})
    for size, given in ((10, 9), (3 * CHUNK, CHUNK)):
        with pytest.raises(RejectedError, match=r"malformed answer.*which holds"):
            channel.call("Source", {"size": size}, receiver=Into({0: np.zeros(given, np.uint8)}))
    with pytest.raises(RejectedError, match=r"malformed answer.*takes none"):
        channel.call("Source", {"size": 10})


def test_a_header_that_is_not_json_is_not_sent(serve: Serve) -> None:
    _, channel = serve({"Echo": Verb()})
    with pytest.raises(FrameError, match="not plain JSON"):
        channel.call("Echo", {"a": object()})


# Nobody there, too late, gone


def test_an_endpoint_without_a_server_is_retryable() -> None:
    (endpoint,) = free_endpoints(1)
    with Channel(endpoint, security=CLEAR) as channel, pytest.raises(UnreachableError) as caught:
        channel.call("Hello", {}, timeout=30)
    assert caught.value.retryable
    assert isinstance(caught.value, RemoteError | ConnectionError)
    assert f"Hello to {endpoint}" in str(caught.value)
    assert "is the server started" in str(caught.value)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_timeout_is_retryable(serve: Serve, streamed: bool) -> None:
    wait = Wait()
    _, channel = serve({"Wait": wait})
    receiver = Into({}) if streamed else None
    with pytest.raises(DeadlineError, match=r"no answer within 0\.2 s") as caught:
        channel.call("Wait", {}, receiver=receiver, timeout=0.2)
    assert caught.value.retryable
    assert isinstance(caught.value, TimeoutError)
    wait.go.set()


def test_a_server_that_comes_back_is_found_again(serve: Serve) -> None:
    server, channel = serve({"Echo": Verb()})
    assert channel.call("Echo", {"n": 1}) == {"n": 1}
    server.stop()
    with pytest.raises(UnreachableError):
        channel.call("Echo", {"n": 2})
    endpoint = f"127.0.0.1:{server.port}"
    with Server(endpoint, {"Echo": Verb()}, security=CLEAR, workers=2):
        end = time.monotonic() + 30
        while True:
            try:
                assert channel.call("Echo", {"n": 3}) == {"n": 3}
                break
            except UnreachableError:
                assert time.monotonic() < end


@pytest.mark.parametrize("streamed", [False, True])
def test_closing_a_channel_ends_its_calls(serve: Serve, streamed: bool) -> None:
    wait = Wait()
    _, channel = serve({"Wait": wait})
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        call = pool.submit(channel.call, "Wait", {}, receiver=Into({}) if streamed else None)
        assert wait.entered.acquire(timeout=30)
        channel.close()
        with pytest.raises(RejectedError, match="closed during the call"):
            call.result(30)
    wait.go.set()
    with pytest.raises(RejectedError, match="was closed"):
        channel.call("Wait", {})


# The server


def test_stopping_a_server_lets_running_calls_end(serve: Serve) -> None:
    wait = Wait()
    server, channel = serve({"Wait": wait})
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        call = pool.submit(channel.call, "Wait", {})
        assert wait.entered.acquire(timeout=30)
        stop = pool.submit(server.stop, 30)
        wait.go.set()
        assert call.result(30) == {}
        stop.result(30)
    server.stop()  # again is nothing


def test_stopping_a_server_cancels_calls_that_do_not_end(serve: Serve) -> None:
    wait = Wait()
    server, channel = serve({"Wait": wait})
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        call = pool.submit(channel.call, "Wait", {})
        assert wait.entered.acquire(timeout=30)
        server.stop(0.1)
        with pytest.raises(UnreachableError):
            call.result(30)
    wait.go.set()


def test_a_port_that_is_taken_is_an_error(serve: Serve) -> None:
    server, _ = serve({"Echo": Verb()})
    second = Server(f"127.0.0.1:{server.port}", {}, security=CLEAR)
    with pytest.raises(EndpointError, match=f"(?s)127.0.0.1:{server.port} cannot be bound.*another process"):
        second.start()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "[::1]"])
def test_an_endpoint_may_be_a_host_name_or_any_ip_address(host: str) -> None:
    if host == "[::1]":
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as error:
            pytest.skip(f"no IPv6 here: {error}")
    with (
        Server(f"{host}:0", {"Echo": Verb()}, security=CLEAR) as server,
        Channel(f"{host}:{server.port}", security=CLEAR) as channel,
    ):
        assert channel.call("Echo", {"a": 1}, timeout=30) == {"a": 1}


def test_only_the_host_of_the_endpoint_is_bound(serve: Serve) -> None:
    server, _ = serve({"Echo": Verb()})
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), timeout=5).close()


def test_a_proxy_in_the_environment_is_not_used(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://{free_endpoints(1)[0]}")
    _, channel = serve({"Echo": Verb()})
    assert channel.call("Echo", {"a": 1}) == {"a": 1}


FORKED = """
import os, sys
from paddlelike.distributed.wire import Channel, Security
channel = Channel(sys.argv[1], security=Security())
if sys.argv[2] == "used":
    channel.call("Echo", {"who": "before"})
child = os.fork()
if child == 0:
    os._exit(channel.call("Echo", {"who": "child"}, timeout=30) != {"who": "child"})
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert channel.call("Echo", {"who": "parent"}, timeout=30) == {"who": "parent"}
channel.close()
"""


@pytest.mark.parametrize("channel", ["fresh", "used"])
def test_a_process_keeps_calling_after_a_fork(serve: Serve, channel: str) -> None:
    """As a trainer does whose data loader forks: before its first call, or after it."""
    server, _ = serve({"Echo": Verb()})
    command = [sys.executable, "-c", FORKED, f"127.0.0.1:{server.port}", channel]
    subprocess.run(command, check=True, timeout=60)


def test_without_grpcio_the_extra_is_named() -> None:
    code = """
import sys
sys.modules["grpc"] = None
import paddlelike
from paddlelike.distributed.wire import Server, Channel, Security
from paddlelike.errors import ExtraMissingError
for act in (Server("127.0.0.1:0", {}).start, lambda: Channel("127.0.0.1:1").call("Hello", {})):
    try:
        act()
    except ExtraMissingError as error:
        assert 'pip install "paddlelike[dist]"' in str(error)
    else:
        raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_importing_the_wire_package_does_not_import_grpc() -> None:
    code = "import sys, paddlelike, paddlelike.distributed.wire; assert 'grpc' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.slow
def test_a_server_can_be_stopped_again_wherever_its_stop_was_interrupted() -> None:
    """Where Python's own ``Event`` waits, an interrupt would keep a lock that gRPC takes."""
    servers: list[Server] = []

    def start_and_stop() -> None:
        servers[:] = [Server("127.0.0.1:0", {"Echo": Verb()}, security=CLEAR, workers=2)]
        servers[0].start()
        servers[0].stop(0.1)

    operations = list_operations(start_and_stop)
    places = [at for at in operations if at[0] in (Server.stop.__code__, DirectServer.stop.__code__)]
    places += [at for at in operations if at[0].co_filename == threading.__file__]
    assert len(places) > 40
    for at in places:
        with no_longer_than(60):
            assert isinstance(interrupt(start_and_stop, at, operations[at]), KeyboardInterrupt | None)
            servers[0].stop(0.1)
        assert servers[0]._server is None
