"""The points at which operators were recorded from real Fluid 1.8.5 (see recorded.py), and what it gave.

A part is a golden table, how far from it (rtol, atol) results may be, and the modules that hold its points.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from tests.helpers.golden_data import table
from tests.ops import math_cases, sequence_cases
from tests.ops.contrib import matching_cases, recorded_cases
from tests.ops.detection import (
    deformed_cases,
    proposal_cases,
    recorded_boxes,
    recorded_suppression,
    recorded_yolo,
    region_cases,
)
from tests.ops.fused import fused_cases
from tests.ops.harness.recorded import Case
from tests.ops.nn.image import pyramid_cases
from tests.ops.quantization import quantization_cases
from tests.ops.ranking import ranking_cases

_EXACT: Final = (0, 0)
#: exp and log of two libraries differ in the last bit of a float32.
_LAST_BIT: Final = (1e-6, 1e-6)
#: Sums of float32 products, added in another order.
_SUMS: Final = (2e-6, 2e-6)
_LONG_SUMS: Final = (1e-5, 1e-6)
#: A CTC loss adds up logarithms over all steps.
_CTC: Final = (1e-5, 5e-6)

PARTS: Final[dict[str, tuple[tuple[float, float], tuple[ModuleType, ...]]]] = {
    "contrib": (_EXACT, (recorded_cases,)),
    "detection_boxes": (_LAST_BIT, (recorded_boxes,)),
    "detection_suppression": (_LAST_BIT, (recorded_suppression,)),
    "detection_yolo": (_LAST_BIT, (recorded_yolo,)),
    "fused": (_LONG_SUMS, (fused_cases,)),
    "matching": (_LONG_SUMS, (matching_cases,)),
    "math": (_SUMS, (math_cases,)),
    "pyramids": (_LONG_SUMS, (pyramid_cases,)),
    "quantization": (_LONG_SUMS, (quantization_cases,)),
    "ranking": (_LONG_SUMS, (ranking_cases,)),
    "regions": (_LONG_SUMS, (region_cases, deformed_cases, proposal_cases)),
    "sequences": (_SUMS, (sequence_cases,)),
}
GOLDEN: Final[dict[str, Any]] = {name: record for part in PARTS for name, record in table(part).items()}
POINTS: Final[dict[str, Case]] = {
    name: case for _, modules in PARTS.values() for module in modules for name, case in module.CASES.items()
}
#: Points of operators that have no case with a second formula.
WITHOUT_FORMULA: Final = {name: case for name, case in POINTS.items() if name not in math_cases.CASES}
_CLOSE: Final = {name: close for part, (close, _) in PARTS.items() for name in table(part)}


def get_tolerance(name: str) -> tuple[float, float]:
    """Return how far from a recorded result the same point here may be: rtol, atol."""
    return _CTC if name.startswith("warpctc") else _CLOSE[name]
