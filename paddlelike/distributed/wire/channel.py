"""The client's end of the wire: calls to the verbs of one server."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from paddlelike.distributed.wire import frames
from paddlelike.distributed.wire.direct import VERB, DirectClient
from paddlelike.distributed.wire.direct.connection import Connection
from paddlelike.distributed.wire.frames import WHOLE, Header
from paddlelike.distributed.wire.handlers import STREAM
from paddlelike.distributed.wire.options import SERVICE, client_options, load_grpc
from paddlelike.distributed.wire.parts import Item, Part, Receiver
from paddlelike.distributed.wire.security import Security, parse_endpoint
from paddlelike.errors import DeadlineError, FrameError, RejectedError, RemoteError, UnreachableError
from paddlelike.foundation.locks import Lock

if TYPE_CHECKING:
    import grpc

_HINTS: Final = {  # statuses that are final
    "UNAUTHENTICATED": "give this process the PADDLELIKE_JOB_TOKEN of its server; without one, processes of "
    "one user on one machine share a token file (PADDLELIKE_JOB_TOKEN_FILE)",
    "UNIMPLEMENTED": "run the same version of paddlelike on every trainer and server",
    "INVALID_ARGUMENT": "run the same program and version of paddlelike on every trainer and server",
    "FAILED_PRECONDITION": "leave out answer_size, or give the larger one",
    "ABORTED": "its log has the traceback",
}

Begin = Callable[[Header], Receiver | None]


class Channel:
    """Makes calls to one server; connects at the first call, and again whenever the connection is lost.

    Any number of threads may call at the same time.

    Parameters
    ----------
    endpoint
        ``host:port`` of the server.
    security
        The security of the connection; by default the settings of the environment.

    Raises
    ------
    EndpointError
        ``endpoint`` is not an endpoint, or the environment sets only some of the TLS files.
    """

    def __init__(self, endpoint: str, *, security: Security | None = None) -> None:
        parse_endpoint(endpoint)
        self.endpoint = endpoint
        self._security = Security.from_environment() if security is None else security
        self._lock = Lock()
        self._channel: grpc.Channel | None = None
        self._forked: grpc.Channel | None = None
        self._process = 0  # the process that opened the channel: gRPC's threads do not survive a fork
        self._metadata: tuple[tuple[str, bytes], ...] = ()
        self._calls: dict[tuple[str, bool, bool], Callable[..., Any]] = {}
        self._closed = False
        self._direct = DirectClient(
            endpoint, lambda timeout: self.call(VERB, {}, timeout=timeout), _HINTS, tls=self._security.tls
        )

    def call(
        self,
        verb: str,
        head: Header,
        parts: Iterable[Item] = (),
        receiver: Receiver | Begin | None = None,
        *,
        timeout: float = 60.0,
        answer_size: int | None = None,
        direct: Connection | None = None,
    ) -> Header:
        """Send a header and parts, put the parts of the answer into the receiver, and return its header.

        Parameters
        ----------
        parts
            The parts to send, as one message or, above 1 MiB, as a stream. An iterator is consumed as fast as
            the network accepts its parts. Notes and FLUSH are only for direct connections.
        receiver
            Takes the answer's records; or a function from the answer's header to such a receiver. None if the
            answer has no records.
        timeout
            Seconds for the whole call.
        answer_size
            The most bytes that the answer's records can have, if known: up to 1 MiB they come as one message,
            which is faster. None means that they come as a stream, if there is a receiver.
        direct
            A connection of :meth:`open_direct`, which the call gives back. None means that the call goes over
            gRPC.

        Raises
        ------
        UnreachableError
            The endpoint does not answer, or the connection broke; may be retried.
        DeadlineError
            No answer in ``timeout`` seconds; may be retried. Whether the server acted is not known.
        RejectedError
            The server refused the call or failed in it, or its answer is malformed.
        FrameError
            The header is not plain JSON, or is too large.
        EndpointError
            The endpoint may not be called with these security settings.
        ExtraMissingError
            grpcio is not installed.
        """
        if direct is not None:
            return self._direct.start(direct, verb, head, parts, receiver, timeout)()
        outgoing = _Outgoing(frames.messages(head, _only_parts(parts)))
        streamed = receiver is not None and (answer_size is None or answer_size > WHOLE)
        function = self._function(verb, outgoing.streamed, streamed)
        try:
            answer = function(outgoing.request(), timeout=timeout, metadata=self._metadata)
            return _receive_stream(answer, receiver) if streamed else _receive(iter((answer,)), receiver)
        except load_grpc().RpcError as error:
            if outgoing.failure is not None:
                raise outgoing.failure from None
            raise self._translate(verb, error, timeout) from error
        except FrameError as error:
            raise RejectedError(self.endpoint, verb, f"a malformed answer: {error.message}") from error

    def open_direct(self, timeout: float = 60.0) -> Connection | None:
        """Return a direct connection for one :meth:`call`; None if the server has no direct listener.

        Raises RemoteError where the server cannot be reached at all.
        """
        return self._direct.take(timeout)

    def start_direct(
        self,
        direct: Connection,
        verb: str,
        head: Header,
        parts: Iterable[Item],
        receiver: Receiver | Begin | None,
        timeout: float,
    ) -> Callable[[], Header]:
        """Send a request over a connection of :meth:`open_direct`; return a function that gets the answer.

        Both raise the errors of :meth:`call`. So one thread can call several servers at the same time.
        """
        return self._direct.start(direct, verb, head, parts, receiver, timeout)

    def give_back(self, direct: Connection) -> None:
        """Return an unused connection of :meth:`open_direct` to the pool."""
        self._direct.give_back(direct)

    def close(self) -> None:
        """Cancel the calls in flight and close the connection."""
        self._direct.close()
        with self._lock.hold():
            self._closed = True
            channel, self._channel = self._channel, None
            if channel is not None and self._process == os.getpid():
                channel.close()

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _function(self, verb: str, streams: bool, streamed: bool) -> Callable[..., Any]:
        with self._lock.hold():
            if self._closed:
                raise RejectedError(self.endpoint, verb, "this channel was closed")
            if self._process != os.getpid():
                self._forked, self._channel = self._channel, None  # kept, so that it is not closed here
                self._calls.clear()
            if self._channel is None:
                security = self._security.for_endpoint(self.endpoint)
                self._channel = security.channel(self.endpoint, client_options())
                self._metadata = security.metadata()
                self._process = os.getpid()
            key = verb, streams, streamed
            if key not in self._calls:
                kind = f"{'stream' if streams else 'unary'}_{'stream' if streamed else 'unary'}"
                path = f"/{SERVICE}/{verb}{STREAM if streamed else ''}"
                self._calls[key] = getattr(self._channel, kind)(path)
            return self._calls[key]

    def _translate(self, verb: str, error: grpc.RpcError, timeout: float) -> RemoteError:
        code, details = error.code().name, error.details() or ""
        if code == "DEADLINE_EXCEEDED":
            return DeadlineError(
                self.endpoint,
                verb,
                f"no answer within {timeout:g} s",
                hint="start the server, or give it more time by FLAGS_rpc_deadline (ms)",
            )
        if self._closed:
            return RejectedError(self.endpoint, verb, "this channel was closed during the call")
        if code in _HINTS:
            return RejectedError(self.endpoint, verb, details, hint=_HINTS[code])
        return UnreachableError(self.endpoint, verb, f"{code}: {details}", hint=self._connection_hint())

    def _connection_hint(self) -> str:
        if self._security.tls is not None:
            return "is the server started, with TLS, and does its certificate name the host of the endpoint?"
        return "is the server started, at this host and port? A server with TLS refuses clear text"


def _only_parts(items: Iterable[Item]) -> Iterator[Part]:
    for item in items:
        assert isinstance(item, Part), "notes and flushes need a direct connection"
        yield item


class _Outgoing:
    """The messages of a request, and the error that ended their iteration, if any."""

    def __init__(self, messages: Iterator[bytes]) -> None:
        self._first = next(messages)
        second = next(messages, None)
        self.streamed = second is not None
        self._rest = itertools.chain(() if second is None else (second,), messages)
        self.failure: BaseException | None = None

    def request(self) -> bytes | Iterator[bytes]:
        return self._iterate() if self.streamed else self._first

    def _iterate(self) -> Iterator[bytes]:
        yield self._first
        try:
            yield from self._rest
        except Exception as error:  # in a thread of gRPC; raised again by call()
            self.failure = error


def _receive_stream(answer: grpc.Call, receiver: Receiver | Begin | None) -> Header:
    try:
        header = _receive(answer, receiver)
        next(answer, None)  # raises unless its status is OK
    finally:
        answer.cancel()
    return header


def _receive(messages: Iterator[bytes], receiver: Receiver | Begin | None) -> Header:
    head, body = frames.split(next(messages, b""))
    begun: Receiver | None = receiver(head) if callable(receiver) else receiver
    intake = frames.Intake(begun)
    if body:
        intake.take(body)
        return head
    for message in messages:
        intake.take(message)
        if intake.ended:
            break
    intake.finish()
    return head
