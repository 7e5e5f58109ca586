"""The import of gRPC, and its channel arguments with the reason for each."""

from __future__ import annotations

from typing import Any, Final

from paddlelike.core import memory
from paddlelike.distributed.wire.frames import MAX_MESSAGE
from paddlelike.errors import ExtraMissingError

SERVICE: Final = "paddlelike.PS.v1"

_STREAMS: Final = 32  # calls under way on one connection; further ones wait at the client

_BOTH: Final = [
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_MESSAGE),
    ("grpc.per_message_decompression", 0),  # a small message must not grow in memory
    ("grpc.http2.bdp_probe", 0),  # else a reader that is slower than the network holds any number of bytes
    ("grpc.http2.lookahead_bytes", 4 << 20),  # for each call that receives; 1 ms away, this carries 4 GB/s
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),  # no limit: a trainer may compute for long between two calls
]


def load_grpc() -> Any:
    """Import and return the module ``grpc``. Raises ExtraMissingError where it is not installed."""
    try:
        import grpc
    except ImportError as error:
        raise ExtraMissingError("calls between trainers and servers need grpcio", extra="dist") from error
    memory.keep_freed_memory()  # page faults on fresh buffers are the largest cost of a message
    return grpc


def server_options() -> list[tuple[str, int]]:
    """Return the channel arguments of a server."""
    return [
        *_BOTH,
        ("grpc.so_reuseport", 0),  # else a second server takes the same port without an error
        (
            "grpc.http2.min_ping_interval_without_data_ms",
            5_000,
        ),  # else the clients' keepalive is "too many pings"
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.max_concurrent_streams", _STREAMS),
    ]


def client_options() -> list[tuple[str, int]]:
    """Return the channel arguments of a client."""
    return [
        *_BOTH,
        ("grpc.enable_http_proxy", 0),  # a proxy in the environment would take calls to 127.0.0.1
        (
            "grpc.enable_retries",
            0,
        ),  # gRPC cannot retry a stream, and the caller knows which calls may be repeated
        ("grpc.use_local_subchannel_pool", 1),  # a fork closes the connections that its child inherits
        ("SingleThreadedUnaryStream", 1),  # answers come to the calling thread: half the processor time
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 5_000),  # the time for one attempt, in spite of its name
        ("grpc.max_reconnect_backoff_ms", 1_000),
    ]
