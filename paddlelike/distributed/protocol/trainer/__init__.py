"""A trainer's side of the protocol: :mod:`.state` chooses calls, :mod:`.agreements` finds a common round."""

from __future__ import annotations

from paddlelike.distributed.protocol.trainer.state import TrainerState

__all__ = ["TrainerState"]
