"""The programs that real Fluid 1.8.5 makes of the cases in `cases.py`."""

from __future__ import annotations

import json
import lzma
from functools import cache
from typing import Any

from tests.helpers.golden_data import GOLDEN

PATH = GOLDEN / "transpiled.json.xz"


@cache
def records() -> dict[str, Any]:
    """Return {case: {"programs": {role: [main, startup]}, "overview": rows}}, programs masked."""
    return json.loads(lzma.decompress(PATH.read_bytes()))
