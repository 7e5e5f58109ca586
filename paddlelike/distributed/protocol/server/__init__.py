"""A server's side of the protocol: :mod:`.state` replies to requests, :mod:`.base` hands out the work."""

from __future__ import annotations

from paddlelike.distributed.protocol.server.state import ServerState

__all__ = ["ServerState"]
