"""Servers and channels that end with their test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from paddlelike.distributed.wire import Channel, Security, Server

Serve = Callable[..., tuple[Server, Channel]]
CLEAR = Security()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server with these verbs at a free port; it, and a channel to it."""
    pytest.importorskip("grpc", reason="grpcio is in the extra 'dist'")
    with contextlib.ExitStack() as stack:

        def start(
            verbs: dict[str, Any],
            *,
            endpoint: str = "127.0.0.1:0",
            security: Security = CLEAR,
            **options: Any,
        ) -> tuple[Server, Channel]:
            server = stack.enter_context(Server(endpoint, verbs, security=security, **options))
            channel = Channel(f"{server.host}:{server.port}", security=security)
            return server, stack.enter_context(channel)

        yield start
