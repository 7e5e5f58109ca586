"""``fluid.contrib.slim``: its quantization. The rest is left out, see ``paddlelike/left_out/reasons.py``."""

from typing import TYPE_CHECKING

from paddlelike.left_out import make_getattr

if not TYPE_CHECKING:
    __getattr__ = make_getattr(__name__, "contrib.slim", {"quantization": f"{__name__}.quantization"})
