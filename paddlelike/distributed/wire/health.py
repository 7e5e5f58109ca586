"""gRPC's health check, answered by hand: its messages are a few bytes (grpc/health/v1/health.proto)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from paddlelike.distributed.wire.options import SERVICE as OURS, load_grpc

SERVICE: Final = "grpc.health.v1.Health"
_SERVING: Final = b"\x08\x01"  # HealthCheckResponse, field 1 = SERVING
_KNOWN: Final = {b"", b"\x0a" + bytes([len(OURS)]) + OURS.encode()}  # HealthCheckRequest, field 1 = service


def health_methods(read_message: Callable[[Iterator[bytes], Any], bytes]) -> dict[str, Any]:
    """Return the method handlers of the health service, which needs no job token.

    ``read_message`` takes the messages of a call and its context, and returns the next message. The request
    is read as a stream, so that the wait for it is bounded like every other wait.
    """
    grpc = load_grpc()

    def check(incoming: Iterator[bytes], context: Any) -> bytes:
        if read_message(incoming, context) not in _KNOWN:
            context.abort(grpc.StatusCode.NOT_FOUND, "this server has no such service")
        return _SERVING

    return {"Check": grpc.stream_unary_rpc_method_handler(check)}
