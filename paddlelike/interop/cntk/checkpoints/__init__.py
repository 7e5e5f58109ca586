"""Checkpoints of CNTK's trainers: a model with its loss, and the state of the learners."""

from paddlelike.interop.cntk.checkpoints.checkpoint import CntkCheckpoint, import_cntk_checkpoint
from paddlelike.interop.cntk.checkpoints.export import export_cntk_checkpoint

__all__ = ["CntkCheckpoint", "export_cntk_checkpoint", "import_cntk_checkpoint"]
