"""A trainer's side of the protocol: :mod:`.state` says what to call next, :mod:`.agreements` how to agree."""

from __future__ import annotations

from paddlelike.distributed.protocol.trainer.state import TrainerState

__all__ = ["TrainerState"]
