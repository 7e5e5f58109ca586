"""Values without dims, which programs have from Paddle 2.5 on; earlier ones have the shape (1,) instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.variable import HOLDERS, Variable
from paddlelike.framework.opdef import OpDef

_FIRST: Final = 2_005_000  # Paddle 2.5.0, as programs say it


def drop_dims(kernel: Callable[..., Any], cls: type[OpDef], op: Operator, block: Block) -> Callable[..., Any]:
    """Return a kernel whose results have no dims where the program says so."""
    if block.program.paddle_version < _FIRST:
        return kernel
    places = [
        [_has_no_dims(block._find_var_recursive(name)) for name in op.outputs.get(slot.name, [])]
        for slot in cls.output_slots
    ]
    if not any(any(place) for place in places):
        return kernel
    single = len(places) == 1

    def run(*args: object) -> object:
        result = kernel(*args)
        results = (result,) if single else result
        shaped = tuple(
            None
            if value is None
            else [_drop(v) if no_dims else v for v, no_dims in zip(value, place, strict=False)]
            if slot.several
            else _drop(value)
            if any(place)
            else value
            for slot, value, place in zip(cls.output_slots, results, places, strict=True)
        )
        return shaped[0] if single else shaped

    return run


def _has_no_dims(variable: Variable | None) -> bool:
    return variable is not None and variable.type not in HOLDERS and variable.shape == ()


def _drop(value: object) -> object:
    """Return a result of one element without dims; others as they are."""
    if isinstance(value, np.ndarray | np.generic) and value.size == 1:
        return np.asarray(value).reshape(())
    return value
