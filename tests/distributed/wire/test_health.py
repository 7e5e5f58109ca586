"""gRPC's health check, as grpc_health_probe and Kubernetes ask it."""

from __future__ import annotations

import pytest

from paddlelike.distributed.wire import Security
from tests.distributed.wire.conftest import Serve

grpc = pytest.importorskip("grpc", reason="grpcio is in the extra 'dist'")


def check(port: int, request: bytes, method: str = "Check") -> bytes:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        answer: bytes = channel.unary_unary(f"/grpc.health.v1.Health/{method}")(request, timeout=30)
        return answer


@pytest.mark.parametrize("service", ["", "paddlelike.PS.v1"])
def test_a_health_check_needs_no_token(serve: Serve, service: str) -> None:
    server, _ = serve({}, security=Security(token="secret"))
    name = service.encode()
    request = b"\x0a" + bytes([len(name)]) + name if name else b""
    assert check(server.port, request) == bytes([1 << 3, 1])  # field 1, a varint: SERVING = 1


@pytest.mark.parametrize(
    ("request_", "method", "code"), [(b"\x0a\x01x", "Check", "NOT_FOUND"), (b"", "Watch", "UNIMPLEMENTED")]
)
def test_other_health_requests_get_the_status_that_grpc_specifies(
    serve: Serve, request_: bytes, method: str, code: str
) -> None:
    server, _ = serve({})
    with pytest.raises(grpc.RpcError) as caught:
        check(server.port, request_, method)
    assert caught.value.code().name == code
