"""gRPC's health check, answered by hand: its messages are a few bytes (grpc/health/v1/health.proto)."""

from __future__ import annotations

from typing import Any, Final

from paddlelike.distributed.wire.options import SERVICE as OURS
from paddlelike.distributed.wire.options import load_grpc

__all__ = ["SERVICE", "handlers"]

SERVICE: Final = "grpc.health.v1.Health"
_SERVING: Final = b"\x08\x01"  # HealthCheckResponse, field 1 = SERVING
_KNOWN: Final = {b"", b"\x0a" + bytes([len(OURS)]) + OURS.encode()}  # HealthCheckRequest, field 1 = service


def handlers() -> dict[str, Any]:
    """The method handlers of the service; probes need no job token."""
    grpc = load_grpc()

    def check(request: bytes, context: Any) -> bytes:
        if request not in _KNOWN:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such service here")
        return _SERVING

    return {"Check": grpc.unary_unary_rpc_method_handler(check)}
