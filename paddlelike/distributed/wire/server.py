"""The server's end: answers calls at one endpoint with a pool of threads."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from paddlelike.distributed.wire import health
from paddlelike.distributed.wire.direct import VERB, DirectServer
from paddlelike.distributed.wire.handlers import Handlers
from paddlelike.distributed.wire.idle import IdleWatch
from paddlelike.distributed.wire.options import SERVICE, load_grpc, server_options
from paddlelike.distributed.wire.security import Security, parse_endpoint
from paddlelike.distributed.wire.verbs import Verb
from paddlelike.errors import EndpointError

if TYPE_CHECKING:
    import grpc

_FEWEST_WAITS: Final = 32  # calls that may wait for their peer on the smallest server


def workers_for(trainers: int) -> int:
    """Return how many calls a server must handle at once: each trainer waits in one call and sends
    another.
    """
    return 2 * trainers + 8


class Server:
    """Answers calls at one endpoint until it is stopped.

    Parameters
    ----------
    endpoint
        ``host:port``; the server is bound to this host only. Port 0 takes a free one (see ``port``).
    verbs
        The verbs by name.
    security
        Who may call; by default the settings of the environment.
    workers
        The number of calls that the verbs work on at once. A waiting verb counts too, so this must exceed the
        calls that can wait (:func:`workers_for`). As many calls again, at least 32, may wait for their
        peer; when there are more, those that have waited longest are cancelled.
    idle
        Seconds after which a call is cancelled whose peer neither sends nor reads what is due.
    direct
        Whether to listen for direct connections too (:mod:`.direct`); by default True unless
        PADDLELIKE_DIRECT is 0.

    Attributes
    ----------
    port
        The port; if the endpoint has port 0, it is chosen when the server starts.
    threads
        The most threads that it uses.

    Examples
    --------
    >>> class Echo:
    ...     def begin(self, head):
    ...         return None
    ...     def end(self, head, receiver):
    ...         return {"echo": head["text"]}, ()
    >>> from paddlelike.distributed.wire import Channel, Security
    >>> with Server("127.0.0.1:0", {"Echo": Echo()}, workers=2, security=Security()) as server:
    ...     with Channel(f"127.0.0.1:{server.port}", security=Security()) as channel:
    ...         channel.call("Echo", {"text": "hello"})
    {'echo': 'hello'}
    """

    def __init__(
        self,
        endpoint: str,
        verbs: Mapping[str, Verb],
        *,
        security: Security | None = None,
        workers: int = 16,
        idle: float = 60.0,
        direct: bool | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.host, self.port = parse_endpoint(endpoint)
        self._security = Security.from_environment() if security is None else security
        self._verbs = dict(verbs)
        self._workers = workers
        waits = max(workers, _FEWEST_WAITS)
        self.threads = workers + waits + 1  # one more thread, to cancel waits when there are too many
        self._watch = IdleWatch(idle, waits)
        self._idle = idle
        self._direct = os.environ.get("PADDLELIKE_DIRECT", "1") != "0" if direct is None else direct
        self._direct_server: DirectServer | None = None
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None
        self._server: grpc.Server | None = None

    def start(self) -> None:
        """Listen and answer.

        Raises
        ------
        EndpointError
            The endpoint cannot be bound, may not be served in clear text, or the token file cannot be read.
        ExtraMissingError
            grpcio is not installed.
        """
        security = self._security.for_endpoint(self.endpoint)
        grpc = load_grpc()
        direct = DirectServer(self.host, self._verbs, idle=self._idle, most=self.threads, tls=security.tls)
        verbs = {**self._verbs, VERB: direct}
        handlers = Handlers(security, self._watch)
        self._direct_server = direct
        self._pool = concurrent.futures.ThreadPoolExecutor(
            self.threads, thread_name_prefix="paddlelike-serve"
        )
        self._server = grpc.server(  # an interrupt may keep a frame alive: no frame may refer to it
            self._pool,
            handlers=(
                grpc.method_handlers_generic_handler(SERVICE, handlers.verb_methods(verbs)),
                grpc.method_handlers_generic_handler(health.SERVICE, handlers.health_methods()),
            ),
            options=server_options(),
            maximum_concurrent_rpcs=8 * self.threads,
        )
        try:
            self.port = security.bind(self._server, self.endpoint)
            self._watch.start()
            if self._direct:
                direct.start()
            self._server.start()
        except RuntimeError as error:
            self.stop()
            raise EndpointError(
                f"{self.endpoint} cannot be bound",
                hint="another process listens on the port, or the host is not an address of this machine"
                + (", or the TLS certificate and key are not PEM texts" if security.tls else ""),
            ) from error
        except BaseException:  # Ctrl-C
            with contextlib.suppress(ValueError):  # it was started
                self._server.start()  # else gRPC keeps the port
            self.stop()
            raise

    def stop(self, grace: float = 1.0) -> None:
        """Refuse new calls, let those in flight end for ``grace`` seconds, then cancel them.

        Does nothing on a server that does not run. After an interrupt it may be called again.
        """
        if self._server is not None:
            stopped = self._server.stop(grace)
            if self._direct_server is not None:
                self._direct_server.stop(grace)
            while not stopped.is_set():  # an interrupt of its ``wait`` would keep its lock
                time.sleep(0.001)
            self._server = None
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._watch.stop()
            self._pool = None

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
