"""The server's end of direct connections: a listener, and a thread for each connection."""

from __future__ import annotations

import contextlib
import hmac
import logging
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from paddlelike.distributed.wire.direct.connection import ERROR, LAST, MORE, Connection, Frame
from paddlelike.distributed.wire.direct.tls import TlsConnection, make_server_context
from paddlelike.distributed.wire.frames import Header
from paddlelike.distributed.wire.idle import FIRST_MESSAGE, IdleWatch
from paddlelike.distributed.wire.parts import Part
from paddlelike.distributed.wire.security import Tls
from paddlelike.distributed.wire.verbs import Refused, Verb
from paddlelike.errors import FrameError, StorageError
from paddlelike.foundation.locks import Lock
from paddlelike.foundation.threads import Thread

VERB: Final = "Direct"  # asks by gRPC for port and ticket
_LONGEST_TEXT: Final = 1000  # characters of an error
_POLL: Final = 0.5  # seconds between two checks whether the server stops

_log = logging.getLogger("paddlelike.distributed")


class DirectServer:
    """Answers calls on direct connections with the same verbs as the gRPC server beside it.

    Parameters
    ----------
    host
        The host to listen at.
    verbs
        The verbs by name.
    idle
        Seconds after which a connection is closed if its peer neither sends nor reads data that is due.
    most
        The number of connections that may wait for their peer at once. When there are more, the one that has
        waited longest is closed, and its trainer connects again.
    tls
        The certificates. None means clear text.
    """

    def __init__(
        self, host: str, verbs: Mapping[str, Verb], *, idle: float, most: int, tls: Tls | None = None
    ) -> None:
        self._host = host
        self._verbs = verbs
        self._tls = tls
        self._context: ssl.SSLContext | None = None
        self._ticket = secrets.token_hex(16)
        self._watch = IdleWatch(idle, most)
        self._most_open = 8 * most
        self._lock = Lock()
        self._open: set[Connection] = set()
        self._working = 0  # calls that a verb works on
        self._stopping = False
        self._listener: socket.socket | None = None

    def start(self) -> None:
        """Listen at a free port, unless Python cannot use the certificates. Raises OSError without a port."""
        if self._tls is not None:
            try:
                self._context = make_server_context(self._tls)
            except (ssl.SSLError, ValueError) as error:  # gRPC accepts them all the same
                _log.warning("no direct connections: Python cannot use the TLS certificates: %s", error)
                return
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        self._listener = socket.create_server((self._host, 0), family=family)
        self._listener.settimeout(_POLL)
        self._watch.start()
        Thread(self._accept, "paddlelike-accept").start()

    def stop(self, grace: float) -> None:
        """Accept no more calls, let calls in progress end for ``grace`` seconds, then close all
        connections.
        """
        self._stopping = True
        end = time.monotonic() + grace
        while self._working and time.monotonic() < end:
            time.sleep(0.005)
        if self._listener is not None:
            self._listener.close()
        with self._lock.hold():
            connections = list(self._open)
        for connection in connections:
            connection.close()
        self._watch.stop()

    # The verb by which clients find the listener

    def begin(self, head: Header) -> None:
        """Accept a call without records."""

    def end(self, head: Header, receiver: None) -> tuple[Header, Iterable[Part]]:
        """Return port and ticket; port 0 means no listener."""
        if self._listener is None or self._stopping:
            return {"port": 0, "ticket": ""}, ()
        return {"port": self._listener.getsockname()[1], "ticket": self._ticket}, ()

    # Connections

    def _accept(self) -> None:
        assert self._listener is not None
        while not self._stopping:
            try:
                sock, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError as error:
                if not self._stopping:  # no file descriptors left, for instance
                    _log.warning("no further direct connection: %s", error)
                    time.sleep(_POLL)
                continue
            try:
                connection = self._make_connection(sock)
                connection.limit_sends(self._watch.limit)
                with self._lock.hold():
                    if len(self._open) >= self._most_open:
                        raise OSError(f"{len(self._open)} are open")
                Thread(partial(self._serve, connection), "paddlelike-direct").start()
            except (OSError, RuntimeError) as error:  # RuntimeError: no further thread
                _log.warning("a direct connection was closed: %s", error)
                sock.close()

    def _make_connection(self, sock: socket.socket) -> Connection:
        return (
            Connection(sock)
            if self._context is None
            else TlsConnection(sock, self._context, server_name=None)
        )

    def _serve(self, connection: Connection) -> None:
        with self._lock.hold():
            self._open.add(connection)
        try:
            if isinstance(connection, TlsConnection):
                with self._wait(connection, FIRST_MESSAGE):
                    connection.shake_hands()
            greeting = self._receive_frame(connection, limit=FIRST_MESSAGE)
            if hmac.compare_digest(greeting.text, self._ticket.encode()) and not greeting.records:
                if isinstance(connection, TlsConnection):
                    connection.send_frame(LAST, b"", [])
                while not self._stopping:
                    frame = self._receive_frame(connection, limit=None)
                    if not self._answer(connection, frame):
                        break
        except (OSError, EOFError, FrameError):
            pass  # the peer is gone, or is not a client of ours
        finally:
            with self._lock.hold():
                self._open.discard(connection)
            connection.close()

    def _receive_frame(self, connection: Connection, *, limit: float | None) -> Frame:
        with self._wait(connection, limit):
            return connection.receive_frame()

    def _wait(self, connection: Connection, limit: float | None) -> contextlib.AbstractContextManager[None]:
        return self._watch.watch_wait(connection.close, limit)

    def _answer(self, connection: Connection, frame: Frame) -> bool:
        """Read one call and answer it. Return whether the connection can carry another one."""
        verb: Verb | None = None
        self._add_working(1)
        try:
            request = frame.decode()
            verb, head = request.get("verb"), request.get("head")
            if not isinstance(verb, str) or verb not in self._verbs or not isinstance(head, dict):
                raise FrameError(f"{str(verb)[:40]!r} is not a verb of this server")
            header, parts = self._perform(connection, self._verbs[verb], head, frame)
            with self._wait(connection, None):  # its sends are limited, one by one
                connection.send(header, parts)
            return True
        except FrameError as error:
            self._refuse(connection, "INVALID_ARGUMENT", str(error))
        except Exception as error:
            if isinstance(error, OSError | EOFError) and not isinstance(error, StorageError):
                raise  # of the connection
            _log.exception("%s failed", verb)
            self._refuse(connection, "ABORTED", f"{type(error).__name__}: {error}")
        finally:
            self._add_working(-1)
        return False

    def _perform(
        self, connection: Connection, verb: Verb, head: Header, frame: Frame
    ) -> tuple[Header, Iterable[Part]]:
        refusal: Refused | None = None
        receiver: Any = None
        try:
            receiver = verb.begin(head)
        except Refused as refused:  # the caller reads the answer only after its remaining data was read
            refusal = refused
        read: Callable[[Frame], None] = connection.skip_records
        if refusal is None:
            read = lambda one: connection.receive_records(one, receiver)  # noqa: E731
        while True:
            with self._wait(connection, self._watch.limit):
                read(frame)
            if frame.kind != MORE:
                break
            frame = self._receive_frame(connection, limit=self._watch.limit)
            if frame.text and refusal is None:
                _give_note(receiver, frame.decode())
        if frame.kind != LAST:
            raise FrameError("the request ends with an error frame")
        if refusal is None:
            try:
                return verb.end(head, receiver)
            except Refused as refused:
                refusal = refused
        return refusal.header, ()

    def _refuse(self, connection: Connection, code: str, text: str) -> None:
        """Report an error to the caller and close the connection: the rest of the request is not read."""
        header = {"code": code, "text": text[:_LONGEST_TEXT]}
        with contextlib.suppress(OSError), self._wait(connection, FIRST_MESSAGE):
            connection.send(header, kind=ERROR)
            connection.socket.shutdown(socket.SHUT_WR)
            while connection.socket.recv(1 << 16):  # else the error is lost together with unread bytes
                pass

    def _add_working(self, count: int) -> None:
        with self._lock.hold():
            self._working += count


def _give_note(receiver: object, note: Header) -> None:
    take = getattr(receiver, "note", None)
    if take is None:
        raise FrameError("a note came with a call that takes none")
    take(note)
