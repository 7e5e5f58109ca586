"""Single calls to the servers: send a request with arrays, receive the reply with arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paddlelike.distributed.placement import values_at
from paddlelike.distributed.protocol.messages import (
    Commit,
    Prefetch,
    Pull,
    Push,
    Reply,
    Request,
    Share,
    reply_from_header,
)
from paddlelike.distributed.protocol.trainer.retries import Call
from paddlelike.distributed.wire import Channel, Header, Into, Item
from paddlelike.distributed.wire.direct.connection import Connection

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call: its request, the arrays to send, and the receiver of the arrays in the answer."""

    request: Request
    parts: Iterable[Item] = ()
    receiver: Any = None


#: Completes the request to a server (an index) with the data that the current goal sends and receives. The
#: last argument says whether the call uses a direct connection, which sends parts as they come.
Payload = Callable[[int, Any, bool], Exchange]


class Calls:
    """Makes the calls of a trainer's state machine.

    Parameters
    ----------
    channels
        The channels by server.
    values
        For each server, the arrays that receive its parameters, by index of the entry.

    Attributes
    ----------
    payload
        The payload of the current goal.
    """

    def __init__(self, channels: Sequence[Channel], values: Sequence[dict[int, Array]]) -> None:
        self._channels = channels
        self._values = [{values_at(index): array for index, array in one.items()} for one in values]
        self._views = [Into(one).views for one in self._values]
        self.payload: Payload | None = None

    def make_call(self, call: Call) -> Reply:
        """Make a call; return the reply.

        Raises RemoteError without a reply, FormatError for a malformed reply, and the errors of the payload.
        """
        channel = self._channels[call.server]
        direct = channel.open_direct(call.timeout)
        if direct is not None:
            return self.start_call(call, direct)()
        exchange = self._exchange(call, is_direct=False)
        request, receiver = exchange.request, exchange.receiver
        size = getattr(receiver, "size", None)
        head = channel.call(
            request.verb,
            request.to_header(),
            exchange.parts,
            _begin_with(receiver),
            timeout=call.timeout,
            answer_size=size,
        )
        return _read_reply(request, receiver, head)

    def start_call(self, call: Call, direct: Connection) -> Callable[[], Reply]:
        """Send a request; return a function that waits for the reply. Both raise the errors of
        :meth:`make_call`.
        """
        exchange = self._exchange(call, is_direct=True)
        request, receiver = exchange.request, exchange.receiver
        finish = self._channels[call.server].start_direct(
            direct, request.verb, request.to_header(), exchange.parts, _begin_with(receiver), call.timeout
        )
        return lambda: _read_reply(request, receiver, finish())

    def _exchange(self, call: Call, *, is_direct: bool) -> Exchange:
        server, request = call.server, call.request
        if isinstance(request, Commit) or (isinstance(request, Pull) and request.slices is None):
            return Exchange(request, receiver=Into(self._values[server], self._views[server]))
        if isinstance(request, Push | Pull | Prefetch | Share):
            assert self.payload is not None
            return self.payload(server, request, is_direct)
        return Exchange(request)


def _begin_with(receiver: Any) -> Callable[[Header], Any] | None:
    if receiver is None:
        return None
    return lambda head: receiver if head.get("kind") == "ok" else None


def _read_reply(request: Request, receiver: Any, head: Header) -> Reply:
    reply = reply_from_header(request.verb, head)
    if receiver is not None and reply.kind == "ok":
        receiver.check()
    return reply
