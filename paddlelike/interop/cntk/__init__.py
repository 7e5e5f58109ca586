"""Models and checkpoints of CNTK 2 as programs, and programs as models of CNTK."""

from paddlelike.interop.cntk.load import import_cntk
from paddlelike.interop.cntk.save import CntkReport, export_cntk

__all__ = ["CntkReport", "export_cntk", "import_cntk"]
