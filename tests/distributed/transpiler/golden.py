"""What real Fluid 1.8.5 makes of the cases in `cases.py`."""

from __future__ import annotations

import json
import lzma
from functools import cache
from typing import Any

from tests.helpers.golden_data import GOLDEN

PATH = GOLDEN / "transpiled.json.xz"


@cache
def records() -> dict[str, Any]:
    """{case: {"programs": {role: [main, startup]}, "overview": rows}}, programs as `masked` has them."""
    return json.loads(lzma.decompress(PATH.read_bytes()))
