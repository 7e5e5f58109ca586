"""Distributed programs at work: operators, the protocol and the wire joined."""

from __future__ import annotations

from paddlelike.distributed.client.connection import Connection, resumable_steps, trainer_of
from paddlelike.distributed.client.trainer import Trainer

__all__ = ["Connection", "Trainer", "resumable_steps", "trainer_of"]
