"""A server: verbs, answered at one endpoint by a pool of threads."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Mapping
from typing import Any

from paddlelike.distributed.wire import health
from paddlelike.distributed.wire.handlers import Handlers
from paddlelike.distributed.wire.idle import Watch
from paddlelike.distributed.wire.options import SERVICE, load_grpc, server_options
from paddlelike.distributed.wire.security import Security, parse_endpoint
from paddlelike.distributed.wire.verbs import Verb
from paddlelike.errors import EndpointError

__all__ = ["Server", "workers_for"]


def workers_for(trainers: int) -> int:
    """The threads that a server of so many trainers needs: each may wait in one call and send another."""
    return 2 * trainers + 8


class Server:
    """Answers calls at one endpoint, until it is stopped.

    Parameters
    ----------
    endpoint
        ``host:port``; the server is bound to this host only. Port 0 takes a free one (see ``port``).
    verbs
        What is answered, by name.
    security
        Default: as the environment says.
    workers
        Threads. A verb that waits holds one, so there must be more than calls can wait: :func:`workers_for`.
    idle
        Seconds after which a call is cancelled whose peer neither sends nor reads what is due.

    Examples
    --------
    >>> class Echo:
    ...     def begin(self, head):
    ...         return None
    ...     def end(self, head, receiver):
    ...         return {"echo": head["text"]}, ()
    >>> from paddlelike.distributed.wire import Channel
    >>> with Server("127.0.0.1:0", {"Echo": Echo()}, workers=2) as server:
    ...     with Channel(f"127.0.0.1:{server.port}") as channel:
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
    ) -> None:
        self.endpoint = endpoint
        self.host, self.port = parse_endpoint(endpoint)
        self._security = Security.from_environment() if security is None else security
        self._verbs = dict(verbs)
        self._workers = workers
        self._watch = Watch(idle)
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None
        self._server: Any = None

    def start(self) -> None:
        """Listen and answer. Raises EndpointError where that is not possible or not safe."""
        self._security.check(self.endpoint)
        grpc = load_grpc()
        handlers = Handlers(self._security, self._watch)
        pool = concurrent.futures.ThreadPoolExecutor(self._workers, thread_name_prefix="paddlelike-serve")
        server = grpc.server(
            pool,
            handlers=(
                grpc.method_handlers_generic_handler(SERVICE, handlers.of(self._verbs)),
                grpc.method_handlers_generic_handler(health.SERVICE, health.handlers()),
            ),
            options=server_options(self._workers),
            maximum_concurrent_rpcs=8 * self._workers,
        )
        try:
            self.port = self._security.bind(server, self.endpoint)
        except RuntimeError as error:
            pool.shutdown()
            raise EndpointError(
                f"{self.endpoint} cannot be bound",
                hint="another process listens on the port, or the host is not an address of this machine"
                + (", or the TLS certificate and key are none" if self._security.tls else ""),
            ) from error
        self._pool, self._server = pool, server
        self._watch.start()
        server.start()

    def stop(self, grace: float = 1.0) -> None:
        """Take no new calls, give those in flight ``grace`` seconds, cancel them. May be called again."""
        if self._server is None or self._pool is None:
            return
        self._server.stop(grace).wait()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._watch.stop()
        self._server = self._pool = None

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
