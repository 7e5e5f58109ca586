"""An HTTP server for the user of this machine: loopback alone, and a token for every request.

Other users of the machine, and pages of the web in the user's browser, can reach a loopback port as well. So
every request needs the token, which only the printed URL has; the Host header must be the server's own (a
page whose name was rebound to 127.0.0.1 has another); a POST must be JSON, which no form can send, and its
Origin, if a browser states one, must be this server. Sizes, times and the number of connections are bounded.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit

from paddlelike.errors import PaddlelikeError, StorageError
from paddlelike.view.page.document import encode_json

__all__ = ["MOST_BYTES", "LoopbackServer", "Refusal", "Reply", "Request"]

MOST_BYTES: Final = 64 << 20  # of the body of a request
_MOST_CONNECTIONS: Final = 32
_PATIENCE: Final = 30.0  # seconds that a connection may be silent
_SHORTEST: Final = 16  # characters of a token


class Request(NamedTuple):
    """A request that was let in: its query without the token, and its JSON (None: a GET)."""

    query: Mapping[str, str]
    json: Any = None


class Reply(NamedTuple):
    """What is answered: HTML, or a value as JSON."""

    value: Any
    is_html: bool = False


class Refusal(Exception):  # noqa: N818  (an answer more than an error)
    """A request is answered by a status and a text that says what was wrong."""

    def __init__(self, status: int, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        self.status, self.text, self.hint = status, text, hint


Routes = Mapping[tuple[str, str], Callable[[Request], Reply]]


class LoopbackServer:
    """A server on 127.0.0.1; a context manager, which closes it.

    Parameters
    ----------
    routes
        What answers each method and path, such as ``("GET", "/")``. They are called from several threads.
    port
        0: any free one.
    token
        None: a random one.
    most_bytes
        Of the body of a request.

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
        self, routes: Routes, *, port: int = 0, token: str | None = None, most_bytes: int = MOST_BYTES
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
        try:
            self._server = _Server(port, self)
        except (OSError, OverflowError) as error:
            raise StorageError(
                f"cannot listen on 127.0.0.1:{port}: {error}", hint="name another --port"
            ) from None
        self._thread: threading.Thread | None = None

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
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def serve_forever(self) -> None:
        """Answer requests until this thread is interrupted."""
        self._server.serve_forever()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Bounds the connections; the threads end with the process."""

    daemon_threads = True
    request_queue_size = 2 * _MOST_CONNECTIONS
    block_on_close = False

    def __init__(self, port: int, owner: LoopbackServer) -> None:
        self.owner = owner
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__(("127.0.0.1", port), _Handler)

    def process_request(self, request: Any, client_address: object) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: object) -> None:
        """Say nothing: the client has gone."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "paddlelike", ""
    timeout = _PATIENCE
    server: _Server

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing: the address holds the token."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what the base class refuses as the others."""
        self.close_connection = True
        self._send(
            code, encode_json({"error": message or HTTPStatus(code).phrase}).encode(), "application/json"
        )

    def _answer(self, method: str) -> None:
        try:
            if method == "GET" and ("Content-Length" in self.headers or "Transfer-Encoding" in self.headers):
                raise Refusal(400, "a GET has no body")
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
            raise Refusal(404, f"there is no {where.path}")
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

    def _read_json(self) -> object:
        kind = (self.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal(415, f"the body is {kind or 'of no type'}, expected application/json")
        length = self.headers.get("Content-Length") or ""
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
            raise Refusal(400, f"the body is no JSON: {error}") from None

    def _send(self, status: int, body: bytes, kind: str) -> None:
        try:
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
