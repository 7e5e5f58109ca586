"""``fluid.contrib``: the part with a meaning for static programs on the CPU."""

from pathlib import Path as _Path

from paddlelike import lazy as _lazy

__all__, __getattr__, __dir__ = _lazy.attach_stub(__name__, _Path(__file__).with_suffix(".pyi"))
