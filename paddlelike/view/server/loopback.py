"""An HTTP server for the user of this machine: on loopback only, and with a token for every request.

Other users of the machine, and web pages in the user's browser, can reach a loopback port as well. So every
request needs the token, which only the printed URL has. The Host header must be the server's own, against
names rebound to 127.0.0.1. A POST must be JSON, which a form cannot send, and its Origin, if any, must be
this server. The size and time of a request are bounded; connections that have not shown the token give way to
later ones (:mod:`.connections`).
"""

from __future__ import annotations

import hmac
import io
import json
import secrets
import time
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit

from paddlelike.errors import PaddlelikeError, StorageError
from paddlelike.foundation.threads import Thread
from paddlelike.view.page.document import encode_json
from paddlelike.view.server.connections import MOST, Places, TimedReader, read_fields

MOST_BYTES: Final = 64 << 20  # of the body of a request
_PATIENCE: Final = 30.0  # seconds in which a request arrives, and in which an answer is taken
_SHORTEST: Final = 16  # characters of a token


class Request(NamedTuple):
    """An accepted request: its query without the token, and its JSON body (None for a GET)."""

    query: Mapping[str, str]
    json: Any = None


class Reply(NamedTuple):
    """An answer: HTML, or a value as JSON."""

    value: Any
    is_html: bool = False


class Refusal(Exception):  # noqa: N818  (an answer more than an error)
    """A refused request, with the status and the reason as text."""

    def __init__(self, status: int, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        self.status, self.text, self.hint = status, text, hint


Routes = Mapping[tuple[str, str], Callable[[Request], Reply]]


class LoopbackServer:
    """A server on 127.0.0.1, and a context manager that closes it.

    Parameters
    ----------
    routes
        The function that answers each method and path, such as ``("GET", "/")``. The functions are called
        from several threads.
    port
        0: any free one.
    token
        None means a random one.
    most_bytes
        The most bytes of the body of a request.
    clock
        The seconds by which requests are timed.

    Raises
    ------
    StorageError
        The port cannot be had.
    ValueError
        The token is shorter than 16 characters, or cannot be part of a URL.

    >>> import urllib.request
    >>> with LoopbackServer({("GET", "/"): lambda request: Reply({"fine": True})}) as server:
    ...     server.start()
    ...     urllib.request.urlopen(server.url).read()
    b'{"fine":true}'
    """

    def __init__(
        self,
        routes: Routes,
        *,
        port: int = 0,
        token: str | None = None,
        most_bytes: int = MOST_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.token = secrets.token_urlsafe(24) if token is None else token
        if (
            len(self.token) < _SHORTEST
            or not self.token.replace("-", "").replace("_", "").isalnum()
            or not self.token.isascii()
        ):
            raise ValueError(
                f"a token has {_SHORTEST} or more letters, digits, - and _; got {len(self.token)} characters"
            )
        self.routes = routes
        self.most_bytes = most_bytes
        self.clock = clock
        try:
            self._server = _Server(port, self)
        except (OSError, OverflowError) as error:
            raise StorageError(
                f"cannot listen on 127.0.0.1:{port}: {error}", hint="name another --port"
            ) from None
        self._thread: Thread | None = None

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The address with the token."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def start(self) -> None:
        """Answer requests in a thread."""
        thread = Thread(partial(self._server.serve_forever, 0.05), "paddlelike-server")
        thread.start()
        self._thread = thread

    def serve_forever(self) -> None:
        """Answer requests until this thread is interrupted."""
        self._server.serve_forever()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._server.shutdown()
            self._thread.wait()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Limits the number of connections; its threads end with the process."""

    daemon_threads = True
    request_queue_size = 4 * MOST
    block_on_close = False

    def __init__(self, port: int, owner: LoopbackServer) -> None:
        self.owner = owner
        self.places = Places()
        super().__init__(("127.0.0.1", port), _Handler)

    def process_request(self, request: Any, client_address: object) -> None:
        self.places.enter(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.places.leave(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: object) -> None:
        """Ignore the error: the client has gone."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "paddlelike", ""
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._timed = TimedReader(self.connection, _PATIENCE, self.server.owner.clock)
        self.rfile = io.BufferedReader(self._timed)

    def handle_one_request(self) -> None:
        """Read a whole request within its time limit, and answer it."""
        self._timed.start()
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Read the header, after checking that each line is a valid header field."""
        self.command, self.requestline, self.request_version = "", "", self.protocol_version
        arriving = self.rfile
        try:
            self.rfile = io.BytesIO(read_fields(arriving))
            return super().parse_request()
        except ValueError as error:
            self.send_error(400, str(error))
            return False
        finally:
            self.rfile = arriving

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing: the address holds the token."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send refusals of the base class in the same form as all others."""
        self.close_connection = True
        self.request_version = self.protocol_version  # else one that is not understood has no status line
        self._send(
            code, encode_json({"error": message or HTTPStatus(code).phrase}).encode(), "application/json"
        )

    def _answer(self, method: str) -> None:
        try:
            if method == "GET" and ("Content-Length" in self.headers or "Transfer-Encoding" in self.headers):
                raise Refusal(400, "a GET request must not have a body")
            reply = self._find_reply(method)
            body = reply.value if reply.is_html else encode_json(reply.value)
            self._send(
                200, body.encode(), "text/html; charset=utf-8" if reply.is_html else "application/json"
            )
        except Refusal as refusal:
            self.close_connection = True  # its body was perhaps not read
            text = encode_json({"error": refusal.text, "hint": refusal.hint})
            self._send(refusal.status, text.encode(), "application/json")

    def _find_reply(self, method: str) -> Reply:
        owner = self.server.owner
        self._check_host()
        try:
            where = urlsplit(self.path)
            query = dict(parse_qsl(where.query, max_num_fields=20))
        except ValueError as error:
            raise Refusal(400, f"the address is not valid: {error}") from None
        self._check_token(query.pop("token", ""))
        route = owner.routes.get((method, where.path))
        if route is None:
            known = [one for one, path in owner.routes if path == where.path]
            if known:
                raise Refusal(405, f"{where.path} takes {', '.join(known)}, not {method}")
            raise Refusal(404, f"{where.path} does not exist")
        request = Request(query, self._read_json() if method == "POST" else None)
        try:
            return route(request)
        except PaddlelikeError as error:
            raise Refusal(
                400, getattr(error, "message", None) or str(error), getattr(error, "hint", None)
            ) from None
        except MemoryError:
            raise Refusal(500, "the memory is exhausted") from None
        except (
            OSError,
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:  # of kernels and files
            raise Refusal(500, f"{type(error).__name__}: {error}") from None

    def _check_host(self) -> None:
        hosts = self.headers.get_all("Host") or []
        own = [f"{name}:{self.server.owner.port}" for name in ("127.0.0.1", "localhost")]
        if len(hosts) != 1 or hosts[0].lower() not in own:
            raise Refusal(403, f"the Host header is {', '.join(hosts) or 'missing'}, expected {own[0]}")
        origins = self.headers.get_all("Origin") or []
        if any(origin.lower() not in [f"http://{name}" for name in own] for origin in origins):
            raise Refusal(403, f"the request comes from a page of {', '.join(origins)}")

    def _check_token(self, given: str) -> None:
        kind, _, header = (self.headers.get("Authorization") or "").partition(" ")
        token = header.strip() if kind.lower() == "bearer" else given
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.server.owner.token.encode()):
            raise Refusal(401, "the token is missing or wrong", "open the address that was printed, as it is")
        self.close_connection |= not self.server.places.admit(self.connection)

    def _read_json(self) -> object:
        kind = (self.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal(415, f"the content type is {kind or 'missing'}, expected application/json")
        lengths = self.headers.get_all("Content-Length") or [""]
        if len(lengths) > 1:
            raise Refusal(400, f"the request has {len(lengths)} Content-Lengths, expected one")
        length = lengths[0]
        if not (length.isascii() and length.isdigit()) or "Transfer-Encoding" in self.headers:
            raise Refusal(411, "the request has no Content-Length")
        if len(length) > 15 or int(length) > self.server.owner.most_bytes:
            raise Refusal(
                413, f"the body has {length[:20]} bytes, at most {self.server.owner.most_bytes} are taken"
            )
        try:
            body = self.rfile.read(int(length))
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Refusal(400, f"the body is not JSON: {error}") from None

    def _send(self, status: int, body: bytes, kind: str) -> None:
        try:
            self.connection.settimeout(_PATIENCE)
            self.send_response(status)
            for name, value in (
                ("Content-Type", kind),
                ("Content-Length", str(len(body))),
                ("Cache-Control", "no-store"),
                ("Referrer-Policy", "no-referrer"),
                ("X-Content-Type-Options", "nosniff"),
                ("X-Frame-Options", "DENY"),
                ("Cross-Origin-Resource-Policy", "same-origin"),
                ("Connection", "close" if self.close_connection else "keep-alive"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except (TimeoutError, ConnectionError):
            self.close_connection = True
