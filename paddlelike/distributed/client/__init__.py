"""The client of the parameter servers, by which a trainer pushes, pulls and saves."""

from __future__ import annotations

from paddlelike.distributed.client.client import Client

__all__ = ["Client"]
