"""Models and checkpoints of CNTK 2 as programs, and programs as models of CNTK."""

from paddlelike.interop.cntk.checkpoints import CntkCheckpoint, export_cntk_checkpoint, import_cntk_checkpoint
from paddlelike.interop.cntk.load import import_cntk
from paddlelike.interop.cntk.save import CntkReport, export_cntk

__all__ = [
    "CntkCheckpoint",
    "CntkReport",
    "export_cntk",
    "export_cntk_checkpoint",
    "import_cntk",
    "import_cntk_checkpoint",
]
