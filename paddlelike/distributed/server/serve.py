"""Run a parameter server: the service in the caller's thread, its verbs in the threads of the wire."""

from __future__ import annotations

from paddlelike.distributed.server.service import Service, stop_on_signals
from paddlelike.distributed.server.verbs import make_verbs
from paddlelike.distributed.wire import Server, workers_for

__all__ = ["serve"]


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
    with stop_on_signals(service.stop), wire:
        service.run()
