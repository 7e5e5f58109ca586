"""``fluid.contrib.layers``: layers that Fluid keeps apart from ``fluid.layers``."""

from paddlelike import lazy as _lazy

__all__, __getattr__, __dir__ = _lazy.attach_stub(__name__, f"{__file__}i")
