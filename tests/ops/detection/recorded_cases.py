"""All points of regions, proposals and their targets that are compared with real Fluid 1.8.5."""

from tests.ops.detection import deformed_cases, proposal_cases, region_cases

__all__ = ["CASES"]

CASES = {}
for _module in (region_cases, deformed_cases, proposal_cases):
    CASES.update(_module.CASES)
