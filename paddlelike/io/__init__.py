"""``fluid.io``: variables and storage. Saving and loading values, programs and models for prediction.

Several functions share these arguments: ``executor`` runs the program of ``save`` or ``load`` operators;
``dirname`` is the directory, or a URL; ``main_program`` has the variables (None means the default main
program); ``filename`` is one file for all variables, or None for one file per variable. The ``choices`` of a
load are the keywords of :func:`load_vars`.
"""

from paddlelike import lazy as _lazy
from paddlelike.io.export.program import (
    append_fetch_ops as append_fetch_ops,
    prepend_feed_ops as prepend_feed_ops,
)

__all__, __getattr__, __dir__ = _lazy.attach_stub(__name__, f"{__file__}i")

_lazy.keep_functions(__name__, "load save verify")
