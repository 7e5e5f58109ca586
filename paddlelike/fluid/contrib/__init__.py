"""``fluid.contrib``: the parts that are useful for static programs on the CPU."""

from paddlelike import lazy as _lazy

__all__, __getattr__, __dir__ = _lazy.attach_stub(__name__, f"{__file__}i")
