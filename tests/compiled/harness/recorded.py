"""The points at which operators were recorded from real Fluid, as cases for their lowerings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paddlelike.core import LoDTensor
from tests.ops.harness.contract import Case
from tests.ops.harness.points import WITHOUT_FORMULA

__all__ = ["RECORDED"]


def _convert(item: Any) -> Any:
    if isinstance(item, list):
        return [_convert(one) for one in item]
    return LoDTensor(*item) if isinstance(item, tuple) else item


def _return(outputs: Any) -> Callable[[], Any]:
    """Return a formula that only says how many outputs there are."""
    return lambda: outputs


RECORDED: dict[str, Case] = {
    name: Case(
        case.type,
        {slot: _convert(item) for slot, item in case.inputs.items()},
        _return(case.outputs),
        case.attrs,
        note=name,
    )
    for name, case in WITHOUT_FORMULA.items()
}
