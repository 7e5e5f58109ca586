"""``fluid.dygraph`` in static programs: layers as objects, which build the operators of ``fluid.layers``.

The dynamic graph itself (``guard``, ``to_variable``) is left out.
"""

from paddlelike import lazy as _lazy

__all__, __getattr__, __dir__ = _lazy.attach_stub(__name__, f"{__file__}i")
