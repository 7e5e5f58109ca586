"""Run a parameter server: the service in the caller's thread, its verbs in the threads of the wire."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

from paddlelike.distributed.server.service import Service
from paddlelike.distributed.server.verbs import make_verbs
from paddlelike.distributed.wire import Server, workers_for


def serve(service: Service) -> None:
    """Serve until every trainer has left, a signal comes, or ``service.stop()`` is called.

    Raises
    ------
    EndpointError
        The endpoint cannot be bound.
    OperatorError
        A round could not be applied; names the endpoint.
    """
    wire = Server(service.served.endpoint, make_verbs(service), workers=workers_for(service.served.trainers))
    with _stop_on_signals(service.stop):
        try:
            with wire:
                service.run()
        except BaseException:
            wire.stop()  # an interrupt may have left it
            raise


@contextlib.contextmanager
def _stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` on SIGTERM and Ctrl-C. In any thread but the main one, do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = (signal.SIGINT, signal.SIGTERM)  # once the first handler is ours, no signal interrupts this
    before = [signal.signal(one, lambda *_: stop()) for one in signals]
    try:
        yield
    finally:
        for one, handler in reversed(list(zip(signals, before, strict=True))):
            signal.signal(one, handler)
