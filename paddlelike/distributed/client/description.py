"""The first call to a server, which describes its variables before any round begins."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from paddlelike.distributed.client.receivers import Pieces
from paddlelike.distributed.placement import ServerTable
from paddlelike.distributed.protocol.messages import Mode
from paddlelike.distributed.wire import Channel
from paddlelike.errors import DeadlineError, FaultError, RejectedError, UnreachableError

_LARGEST = 64 << 20  # bytes of a table; 100,000 variables take 6 MB
_PAUSE = 0.1  # seconds between attempts


@dataclass(frozen=True, slots=True)
class Description:
    """A server's variables, its mode, and the number of trainers that it serves."""

    table: ServerTable
    mode: Mode
    trainers: int


def describe(channel: Channel, window: float) -> Description:
    """Ask a server to describe itself, for ``window`` seconds; it may start later than its trainers.

    Raises
    ------
    FaultError
        No server answered; names the endpoint.
    RejectedError
        The process at the endpoint is not a parameter server, or requires another token.
    FormatError
        The server's table is malformed.
    """
    end = time.monotonic() + window
    while True:
        text = Pieces(_LARGEST)
        try:
            head = channel.call("Describe", {}, (), text, timeout=max(min(window, 10.0), 0.1))
        except (UnreachableError, DeadlineError) as error:
            if time.monotonic() > end:
                raise FaultError(
                    f"no parameter server at {channel.endpoint} within {window:g} s: {error.message}",
                    hint="start the server, or give it more time by FLAGS_rpc_deadline (ms)",
                ) from error
            time.sleep(_PAUSE)
            continue
        mode, trainers = head.get("mode"), head.get("trainers")
        if mode not in ("sync", "async") or type(trainers) is not int:
            raise RejectedError(
                channel.endpoint,
                "Describe",
                f"expected a mode and a number of trainers, got {mode!r} and {trainers!r}",
                hint="run the same version of paddlelike on every trainer and server",
            )
        return Description(ServerTable.from_bytes(text.join_pieces()), mode, trainers)


def common_mode(endpoints: Sequence[str], found: Sequence[Description]) -> Mode:
    """Return the mode that all servers share. Raises FaultError when the servers belong to different jobs."""
    if len({(one.mode, one.trainers) for one in found}) != 1:
        each = ", ".join(
            f"{endpoint}: {one.mode}, {one.trainers} trainers"
            for endpoint, one in zip(endpoints, found, strict=True)
        )
        raise FaultError(
            f"the servers do not run the same job: {each}",
            hint="give all processes the same list of servers and the same number of trainers",
        )
    return found[0].mode
