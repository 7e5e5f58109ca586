"""Security: endpoints, clear text, TLS on both sides, the job's token."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from paddlelike.distributed.wire import (
    CHUNK,
    Channel,
    Into,
    Security,
    Server,
    Tls,
    is_loopback,
    make_parts,
    parse_endpoint,
)
from paddlelike.errors import EndpointError, RejectedError, UnreachableError
from tests.distributed.wire.conftest import CLEAR, Serve
from tests.distributed.wire.verbs import Store, Verb

pytest.importorskip("cryptography", reason="cryptography is in the extra 'test'")

import numpy as np

from tests.distributed.wire.certificates import Authority, write

AUTHORITY = Authority()
OURS = AUTHORITY.issue()


# Endpoints


@pytest.mark.parametrize(
    "text",
    [
        "",
        "6174",
        ":6174",
        "host",
        "host:",
        "host:x",
        "host:-1",
        "host:65536",
        "::1:6174",
        "a/b:1",
        "host:\u0661",
        "http://h:1",
    ],
)
def test_a_text_that_is_not_an_endpoint_is_refused(text: str) -> None:
    with pytest.raises(EndpointError, match="is not an endpoint"):
        parse_endpoint(text)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("169.254.0.1", False),
        ("no.such.host.invalid", False),
    ],
)
def test_loopback_is_this_machine_only(host: str, local: bool) -> None:
    assert is_loopback(host) is local


def test_a_name_with_one_address_outside_is_not_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(0, 0, 0, "", ("127.0.0.1", 0)), (0, 0, 0, "", ("10.0.0.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert not is_loopback("two.faces")


# What is refused before anything listens or connects


@pytest.mark.parametrize("endpoint", ["0.0.0.0:0", "10.1.2.3:6174"])
def test_clear_text_does_not_leave_the_machine(endpoint: str) -> None:
    for act in (
        Server(endpoint, {}, security=CLEAR).start,
        lambda: Channel(endpoint, security=CLEAR).call("A", {}),
    ):
        with pytest.raises(
            EndpointError, match=r"(?s)clear text may not leave.*PADDLELIKE_TLS_CA.*PADDLELIKE_INSECURE=1"
        ):
            act()


def test_a_token_is_not_sent_in_clear_text() -> None:
    security = Security(token="secret", insecure=True)
    with pytest.raises(EndpointError, match=r"token would travel to 10.1.2.3:6174 in clear text") as caught:
        Channel("10.1.2.3:6174", security=security).call("A", {})
    assert "secret" not in str(caught.value)


def test_the_insecure_override_allows_every_host(serve: Serve) -> None:
    server, _ = serve({"Echo": Verb()}, endpoint="0.0.0.0:0", security=Security(insecure=True))
    with Channel(f"127.0.0.1:{server.port}", security=CLEAR) as channel:
        assert channel.call("Echo", {"a": 1}) == {"a": 1}


def test_secrets_are_not_printed() -> None:
    text = repr(Security(tls=OURS, token="secret"))
    assert "secret" not in text
    assert "PRIVATE" not in text


# From the environment


def test_security_settings_are_read_from_the_environment(tmp_path: Path) -> None:
    variables = write(OURS, tmp_path)
    assert Security.from_environment({}) == Security(use_token_file=True)
    found = Security.from_environment({**variables, "PADDLELIKE_JOB_TOKEN": "t", "PADDLELIKE_INSECURE": "1"})
    assert found == Security(tls=OURS, token="t", insecure=True)
    assert not Security.from_environment({"PADDLELIKE_INSECURE": "0"}).insecure


def test_a_missing_tls_variable_is_named(tmp_path: Path) -> None:
    variables = write(OURS, tmp_path)
    del variables["PADDLELIKE_TLS_KEY"]
    with pytest.raises(EndpointError, match="not set: PADDLELIKE_TLS_KEY"):
        Security.from_environment(variables)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    variables = write(OURS, tmp_path)
    (tmp_path / "KEY.pem").unlink()
    with pytest.raises(EndpointError, match=r"KEY.pem cannot be read: No such file"):
        Security.from_environment(variables)


def test_a_file_that_is_not_a_key_is_an_error() -> None:
    security = Security(tls=Tls(AUTHORITY.certificate, OURS.certificate, b"not a key"))
    with pytest.raises(EndpointError, match=r"(?s)127.0.0.1:0 cannot be bound.*TLS certificate"):
        Server("127.0.0.1:0", {}, security=security).start()


# TLS on both sides


@pytest.mark.parametrize("size", [10, 3 * CHUNK])
def test_two_processes_of_a_job_talk_over_tls(serve: Serve, size: int) -> None:
    _, channel = serve({"Store": Store()}, security=Security(tls=OURS, token="job 7"))
    sent = np.arange(size, dtype=np.uint8)
    into = Into({100: np.zeros_like(sent)})
    channel.call("Store", {"sizes": {"0": size}}, make_parts({0: sent}), into)
    into.check()
    np.testing.assert_array_equal(into.arrays[100], sent)


def test_tls_may_serve_every_host(serve: Serve) -> None:
    security = Security(tls=AUTHORITY.issue("127.0.0.1", "0.0.0.0"))
    _, channel = serve({"Echo": Verb()}, endpoint="0.0.0.0:0", security=security)
    assert channel.call("Echo", {"a": 1}) == {"a": 1}


STRANGERS = {
    "clear": CLEAR,
    "another-authority": Security(tls=Authority("another job").issue()),
    "expired": Security(tls=AUTHORITY.issue(days=-1)),
    "own-certificate-of-another": Security(
        tls=Tls(
            AUTHORITY.certificate, *(lambda tls: (tls.certificate, tls.key))(Authority("another job").issue())
        )
    ),
}


@pytest.mark.parametrize("stranger", STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_is_not_served(serve: Serve, stranger: Security) -> None:
    asked: list[Any] = []

    class Secret(Verb):
        def end(self, head: dict[str, Any], receiver: Any) -> Any:
            asked.append(head)
            return super().end(head, receiver)

    server, channel = serve({"Secret": Secret()}, security=Security(tls=OURS))
    with (
        Channel(f"127.0.0.1:{server.port}", security=stranger) as strange,
        pytest.raises(UnreachableError, match="TLS"),
    ):
        strange.call("Secret", {"from": "stranger"}, timeout=10)
    assert channel.call("Secret", {"from": "friend"}) == {"from": "friend"}
    assert asked == [{"from": "friend"}]


def test_a_client_with_tls_sends_nothing_to_a_server_without_tls(serve: Serve) -> None:
    server, _ = serve({"Echo": Verb()})
    secured = Channel(f"127.0.0.1:{server.port}", security=Security(tls=OURS))
    with secured, pytest.raises(UnreachableError, match="TLS"):
        secured.call("Echo", {}, timeout=10)


def test_a_certificate_for_another_host_is_refused(serve: Serve) -> None:
    server, _ = serve({"Echo": Verb()}, security=Security(tls=AUTHORITY.issue("10.9.8.7")))
    client = Channel(f"127.0.0.1:{server.port}", security=Security(tls=OURS))
    with client, pytest.raises(UnreachableError, match="name the host of the endpoint"):
        client.call("Echo", {}, timeout=10)


# The job's token


@pytest.mark.parametrize("token", [None, "", "other", "secret ", "secre", "sécret", "x" * 4000])
@pytest.mark.parametrize("size", [0, 3 * CHUNK], ids=["whole", "streamed"])
def test_a_client_of_another_job_is_refused(serve: Serve, token: str | None, size: int) -> None:
    server, _ = serve({"Store": Store()}, security=Security(token="secret"))
    call = ("Store", {"sizes": {"0": size}}, make_parts({0: np.zeros(size, np.uint8)}))
    with Channel(f"127.0.0.1:{server.port}", security=Security(token=token)) as channel:
        with pytest.raises(RejectedError, match=r"(?s)token.*PADDLELIKE_JOB_TOKEN") as caught:
            channel.call(*call)
        assert not caught.value.retryable
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("token", ["secret", "sécret", "a b\n\0c", "x" * 4000])
def test_a_client_of_the_same_job_is_served(serve: Serve, token: str) -> None:
    _, channel = serve({"Echo": Verb()}, security=Security(token=token))
    assert channel.call("Echo", {"a": 1}) == {"a": 1}


def test_a_request_with_two_tokens_is_refused() -> None:
    from paddlelike.distributed.wire.security import TOKEN_KEY

    security = Security(token="a")
    assert security.accepts([(TOKEN_KEY, b"a")])
    assert not security.accepts([(TOKEN_KEY, b"a"), (TOKEN_KEY, b"a")])
    assert not security.accepts([(TOKEN_KEY, "a")])
    assert not security.accepts([("paddlelike-token", b"a")])
    assert not security.accepts(None)
