"""The first call to a server: what it keeps, before a trainer can say anything of rounds."""

from __future__ import annotations

import time
from dataclasses import dataclass

from paddlelike.distributed.client.receivers import Pieces
from paddlelike.distributed.protocol.messages import Mode
from paddlelike.distributed.server.table import Table
from paddlelike.distributed.wire import Channel
from paddlelike.errors import DeadlineError, FaultError, RejectedError, UnreachableError

__all__ = ["Description", "describe"]

_LARGEST = 64 << 20  # bytes of a table; 100,000 variables take 6 MB
_PAUSE = 0.1  # seconds between attempts


@dataclass(frozen=True, slots=True)
class Description:
    """What a server says of itself."""

    table: Table
    mode: Mode
    trainers: int


def describe(channel: Channel, window: float) -> Description:
    """Ask a server what it keeps, for ``window`` seconds; it may start later than its trainers.

    Raises
    ------
    FaultError
        Nobody answered; names the endpoint.
    RejectedError
        Whoever answers is no parameter server, or wants another token.
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
                    hint="is it started? FLAGS_rpc_deadline (ms) is how long a trainer waits",
                ) from error
            time.sleep(_PAUSE)
            continue
        mode, trainers = head.get("mode"), head.get("trainers")
        if mode not in ("sync", "async") or type(trainers) is not int:
            raise RejectedError(
                channel.endpoint, "Describe", f"it calls itself {mode!r} for {trainers!r} trainers"
            )
        return Description(Table.from_bytes(text.joined()), mode, trainers)
