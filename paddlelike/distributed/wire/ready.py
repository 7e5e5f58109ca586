"""Waits until servers listen."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable

from paddlelike.distributed.wire.security import parse_endpoint
from paddlelike.errors import DeadlineError

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between two attempts


def wait_for_servers(
    endpoints: Iterable[str], timeout: float, *, report: Callable[[list[str]], object] | None = None
) -> None:
    """Wait until every endpoint accepts TCP connections, like Fluid's wait_server_ready.

    Parameters
    ----------
    endpoints
        ``host:port`` each.
    timeout
        Seconds for all of them.
    report
        Called with the endpoints that are still missing, before each pause.

    Raises
    ------
    DeadlineError
        Some endpoints accept no connection in time; the error names them.
    EndpointError
        One of ``endpoints`` is not host:port.
    """
    missing = {endpoint: parse_endpoint(endpoint) for endpoint in endpoints}
    end = time.monotonic() + timeout
    pause = _FIRST_PAUSE
    while True:
        missing = {
            endpoint: address
            for endpoint, address in missing.items()
            if not _is_listening(address, end - time.monotonic())
        }
        if not missing:
            return
        if time.monotonic() + pause > end:
            raise DeadlineError(
                ", ".join(missing),
                "connecting",
                f"no process listens after {timeout:g} s",
                hint="start the servers first, and give all processes the same list of endpoints",
            )
        if report is not None:
            report(list(missing))
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _is_listening(address: tuple[str, int], timeout: float) -> bool:
    try:
        with socket.create_connection(address, timeout=min(max(timeout, 0.1), 3.0)):
            return True
    except OSError:
        return False
