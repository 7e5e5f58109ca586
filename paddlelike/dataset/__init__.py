"""``paddle.dataset``: the data sets of Paddle's examples; ``fluid.dataset``: samples in files of one's own.

The files are the originals, in ``~/.cache/paddle/dataset/<name>/``; nothing is downloaded. Where they are
missing, ``PADDLELIKE_SYNTHETIC_DATA=1`` in the environment gives made-up samples with the same shapes and
dtypes.
"""

from pathlib import Path as _Path

from paddlelike import lazy as _lazy

__all__, __getattr__, __dir__ = _lazy.attach_stub(__name__, _Path(__file__).with_suffix(".pyi"))
