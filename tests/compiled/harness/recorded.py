"""The points at which operators were recorded from real Fluid, as cases for their lowerings."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from paddlelike.core.tensor import LoDTensor
from tests import ops
from tests.ops.harness.contract import Case

__all__ = ["RECORDED"]


def _convert(item: Any) -> Any:
    if isinstance(item, list):
        return [_convert(one) for one in item]
    return LoDTensor(*item) if isinstance(item, tuple) else item


def _return(outputs: Any) -> Callable[[], Any]:
    """Return a formula that only says how many outputs there are."""
    return lambda: outputs


def _collect() -> dict[str, Case]:
    found = {}
    for module in pkgutil.walk_packages(ops.__path__, f"{ops.__name__}."):
        name = module.name.rpartition(".")[2]
        if not name.endswith("_cases") and not name.startswith("recorded_"):
            continue
        for key, case in getattr(importlib.import_module(module.name), "CASES", {}).items():
            if hasattr(case, "through") and hasattr(case, "wrt"):
                inputs = {slot: _convert(item) for slot, item in case.inputs.items()}
                found[key] = Case(case.type, inputs, _return(case.outputs), case.attrs, note=key)
    return found


RECORDED = _collect()
