"""Servers and channels that end with their test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from paddlelike.distributed.wire import Channel, Into, Security, Server, make_parts

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


def assert_arrays_come_back(call: Callable[..., Any], size: int) -> None:
    """Send a large and a small array to the verb Store, which sends them back."""
    sent = {0: np.random.default_rng(0).integers(0, 256, size, np.uint8), 1: np.arange(5.0)}
    back = {100: np.zeros_like(sent[0]), 101: np.zeros_like(sent[1])}
    head = {"sizes": {str(index): array.nbytes for index, array in sent.items()}}
    into = Into(back)
    assert call("Store", head, make_parts(sent), into) == {"kept": [0, 1]}
    into.check()
    np.testing.assert_array_equal(back[100], sent[0])
    np.testing.assert_array_equal(back[101], sent[1])
