"""Recordings of Fluid 1.8.5 of the operators that use compiled kernels."""

from __future__ import annotations

from types import ModuleType

from tests.ops.detection import test_recorded, test_regions_golden

__all__ = ["RECORDED"]

#: The modules that compare recordings with the operators, which have CASES and GOLDEN by name.
_MODULES = (test_recorded, test_regions_golden)
_TYPES = {
    "bipartite_match",
    "generate_proposals",
    "iou_similarity",
    "locality_aware_nms",
    "multiclass_nms",
    "multiclass_nms2",
    "psroi_pool",
    "roi_pool",
}
RECORDED: dict[str, tuple[ModuleType, str]] = {
    name: (module, name) for module in _MODULES for name, case in module.CASES.items() if case.type in _TYPES
}
