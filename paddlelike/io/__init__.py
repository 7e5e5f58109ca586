"""``fluid.io``: variables and storage. Saving and loading values, programs and models for prediction.

Arguments that several functions share: ``executor`` runs the program of ``save`` or ``load`` operators;
``dirname`` is the directory, or a URL; ``main_program`` is the program whose variables are meant, or None for
the default main program; ``filename`` is one file for all variables, or None for a file each. The ``choices``
of a load are the keywords of :func:`load_vars`.
"""

from pathlib import Path as _Path

from paddlelike import lazy as _lazy
from paddlelike.foundation.docstrings import show_related as _show_related

# Functions with the names of modules come after the modules, which the import system binds to these names
# once.
from paddlelike.io import load as _load  # noqa: F401
from paddlelike.io import save as _save  # noqa: F401
from paddlelike.io.export.program import append_fetch_ops as append_fetch_ops
from paddlelike.io.export.program import prepend_feed_ops as prepend_feed_ops
from paddlelike.io.state import load as load
from paddlelike.io.state import save as save
from paddlelike.io.verify import verify as verify

__all__, __getattr__, __dir__ = _lazy.attach_stub(__name__, _Path(__file__).with_suffix(".pyi"))

_show_related(__name__)
