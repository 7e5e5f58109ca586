"""The client's end of direct connections: opens them as they are needed, and keeps them between calls."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from paddlelike.distributed.wire.direct.connection import ERROR, LAST, Connection, Frame
from paddlelike.distributed.wire.direct.tls import TlsConnection, make_client_context
from paddlelike.distributed.wire.frames import Header
from paddlelike.distributed.wire.parts import Item, Receiver
from paddlelike.distributed.wire.security import Tls, parse_endpoint
from paddlelike.errors import DeadlineError, FrameError, RejectedError, UnreachableError
from paddlelike.foundation.locks import Lock

_CONNECT: Final = 3.0  # seconds to connect
_AGAIN: Final = 60.0  # seconds until a listener that could not be reached is tried again

_log = logging.getLogger("paddlelike.distributed")


class DirectClient:
    """The direct connections of one channel.

    Parameters
    ----------
    endpoint
        The server's endpoint.
    ask
        Asks the server by gRPC for its direct listener; takes seconds, returns the answer's header.
    hints
        The advice by the code of an error.
    tls
        The certificates. None means clear text.
    """

    def __init__(
        self, endpoint: str, ask: Callable[[float], Header], hints: dict[str, str], *, tls: Tls | None = None
    ) -> None:
        self.endpoint = endpoint
        self._tls = tls
        self._context: ssl.SSLContext | None = None
        self._host = parse_endpoint(endpoint)[0]
        self._ask = ask
        self._hints = hints
        self._lock = Lock()
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._process = os.getpid()
        self._not_before = 0.0
        self._closed = False

    def take(self, timeout: float) -> Connection | None:
        """Return a connection for one call of this thread; None if the server is reachable only by gRPC.

        Raises RemoteError if the server does not answer by gRPC either.
        """
        with self._lock.hold():
            if self._process != os.getpid():  # the parent's connections are the parent's
                self._idle, self._busy, self._process = [], set(), os.getpid()
            if self._idle:
                connection = self._idle.pop()
                self._busy.add(connection)
                return connection
            if self._closed or time.monotonic() < self._not_before:
                return None
        opened = self._connect(timeout)
        with self._lock.hold():
            if opened is None or self._closed:
                self._not_before = time.monotonic() + _AGAIN
                if opened is not None:
                    opened.close()
                return None
            self._busy.add(opened)
        return opened

    def give_back(self, connection: Connection) -> None:
        """Keep a connection of :meth:`take` for later calls."""
        with self._lock.hold():
            self._busy.discard(connection)
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def start(
        self,
        connection: Connection,
        verb: str,
        head: Header,
        items: Iterable[Item],
        receiver: Receiver | Callable[[Header], Receiver | None] | None,
        timeout: float,
    ) -> Callable[[], Header]:
        """Send a request over a connection of :meth:`take`; return a function that waits for the answer.

        The function gives the connection back. Both raise the errors of :meth:`.Channel.call`.
        """
        with self._translate(connection, verb, timeout):
            connection.limit_waits(timeout)
            connection.send({"verb": verb, "head": head}, items)
        return lambda: self._receive(connection, verb, receiver, timeout)

    def _receive(
        self,
        connection: Connection,
        verb: str,
        receiver: Receiver | Callable[[Header], Receiver | None] | None,
        timeout: float,
    ) -> Header:
        answer: Header = {}

        def begin(frame: Frame) -> Receiver | None:
            answer.update(frame.decode())
            if frame.kind == ERROR:
                return None
            return receiver(answer) if callable(receiver) else receiver

        with self._translate(connection, verb, timeout):
            try:
                kind = connection.receive(begin)
            except FrameError as error:
                why = f"a malformed answer: {error.message}"
                raise RejectedError(self.endpoint, verb, why) from error
            if kind == ERROR:  # the server closes the connection
                hint = self._hints.get(str(answer.get("code")))
                raise RejectedError(self.endpoint, verb, str(answer.get("text")), hint=hint)
        self.give_back(connection)
        return answer

    @contextlib.contextmanager
    def _translate(self, connection: Connection, verb: str, timeout: float) -> Iterator[None]:
        """Close the connection after any error inside the ``with``; name the endpoint in the error."""
        try:
            yield
        except BlockingIOError:
            self._drop(connection)
            raise DeadlineError(
                self.endpoint,
                verb,
                f"no answer within {timeout:g} s",
                hint="start the server, or give it more time by FLAGS_rpc_deadline (ms)",
            ) from None
        except (OSError, EOFError) as error:
            self._drop(connection)
            if self._closed:
                raise RejectedError(self.endpoint, verb, "this channel was closed during the call") from error
            raise UnreachableError(
                self.endpoint,
                verb,
                f"the connection broke: {error}",
                hint="start the server, or give it more time by FLAGS_rpc_deadline (ms)",
            ) from error
        except BaseException:
            self._drop(connection)
            raise

    def close(self) -> None:
        """Close all connections; calls in progress fail."""
        with self._lock.hold():
            self._closed = True
            connections = [*self._idle, *self._busy] if self._process == os.getpid() else []
            self._idle, self._busy = [], set()
        for connection in connections:
            connection.close()

    def _drop(self, connection: Connection) -> None:
        """Close a connection that failed, and the idle ones: the server may have been restarted."""
        with self._lock.hold():
            self._busy.discard(connection)
            stale, self._idle = self._idle, []
        for one in (connection, *stale):
            one.close()

    def _connect(self, timeout: float) -> Connection | None:
        """Return a new connection; None if the server has no direct listener that can be reached."""
        try:
            found = self._ask(min(timeout, 10.0))
        except RejectedError as error:  # a server of another version, or without direct connections
            _log.debug("%s: no direct listener: %s", self.endpoint, error)
            return None
        port, ticket = found.get("port"), found.get("ticket")
        if type(port) is not int or not 0 < port < 1 << 16 or not isinstance(ticket, str):
            return None
        try:
            sock = socket.create_connection((self._host, port), min(timeout, _CONNECT))
            if self._tls is not None:
                return self._secure(sock, ticket)
        except (OSError, EOFError, FrameError) as error:
            _log.info(
                "%s: its direct port %d cannot be reached (%s); calls go over gRPC",
                self.endpoint,
                port,
                error,
            )
            return None
        connection = Connection(sock)
        try:
            connection.limit_waits(timeout)
            connection.send_frame(LAST, ticket.encode(), [])
        except OSError as error:
            connection.close()
            raise UnreachableError(self.endpoint, "Direct", str(error)) from error
        return connection

    def _secure(self, sock: socket.socket, ticket: str) -> Connection:
        """Return a connection over TLS, once the server has accepted this process's certificate and ticket.

        Raises OSError, EOFError or FrameError where it did not.
        """
        assert self._tls is not None
        if self._context is None:
            self._context = make_client_context(self._tls)
        connection = TlsConnection(sock, self._context, server_name=self._host)
        try:
            connection.limit_waits(_CONNECT)
            connection.shake_hands()
            connection.send_frame(LAST, ticket.encode(), [])
            connection.receive_frame()
        except BaseException:
            connection.close()
            raise
        return connection
