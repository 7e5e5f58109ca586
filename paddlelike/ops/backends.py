"""Attributes by which Paddle chooses a library for an operator: programs carry them, nothing reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from paddlelike.framework.opdef import Attr, Bool

MKLDNN: Final[Mapping[str, Attr]] = {"use_mkldnn": Bool(False)}
BACKENDS: Final[Mapping[str, Attr]] = {"use_cudnn": Bool(False), **MKLDNN}
