"""``paddle.dataset``: the data sets of Paddle's examples; ``fluid.dataset``: samples in files of one's own.

The files are the originals, in ``~/.cache/paddle/dataset/<name>/``; nothing is downloaded. Where they are
missing, ``PADDLELIKE_SYNTHETIC_DATA=1`` in the environment gives made-up samples with the same shapes and
dtypes.
"""

from paddlelike import lazy as _lazy

__all__, __getattr__, __dir__ = _lazy.attach_stub(__name__, f"{__file__}i")
