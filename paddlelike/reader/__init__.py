"""Data for programs: readers, feeders, loaders, datasets, tensors of sequences."""

from paddlelike import lazy as _lazy
from paddlelike.left_out import make_getattr as _make_getattr

__all__, __getattr__, __dir__ = _lazy.attach_stub(__name__, f"{__file__}i", _make_getattr(__name__, "reader"))
