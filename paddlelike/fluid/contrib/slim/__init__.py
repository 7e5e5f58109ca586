"""``fluid.contrib.slim``: quantization. ``paddlelike/left_out/reasons.py`` says why the rest is left out."""

from typing import TYPE_CHECKING

from paddlelike.left_out import make_getattr

if not TYPE_CHECKING:
    __getattr__ = make_getattr(__name__, "contrib.slim", {"quantization": f"{__name__}.quantization"})
