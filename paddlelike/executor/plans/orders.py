"""Memory layouts: values whose channels may be last in memory, and operators that need C order.

The results of convolutions, pools and normalisations may have their channels last in memory, although their
shape is ``(N, C, H, W)``. Operators that declare ``any_order`` accept such values; all others get a copy in C
order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Any

import numpy as np

from paddlelike.framework import Operator
from paddlelike.framework.opdef import OpDef, registry


def find_reordered(ops: Iterable[Operator]) -> set[str]:
    """Return the variables whose values may have their channels last in memory."""
    found: set[str] = set()
    passing = []  # operators that pass an order on
    for op in ops:
        cls = registry.find_for_version(op.type, op.block.program.paddle_version)
        if cls is not None and cls.reorders:
            found.update(op.output_arg_names)
        elif cls is not None and cls.any_order:
            passing.append(op)
    known = -1
    while found and len(found) > known:  # twice, because loops read values that later operators write
        known = len(found)
        for op in passing:
            if not found.isdisjoint(op.input_arg_names):
                found.update(op.output_arg_names)
    return found


def take_in_order(
    kernel: Callable[..., Any], cls: type[OpDef], op: Operator, reordered: Set[str]
) -> Callable[..., Any]:
    """Return a kernel whose inputs are copied to a memory layout that it accepts."""
    if cls.any_order or cls.reorders or reordered.isdisjoint(op.input_arg_names):
        return kernel
    return lambda *values: kernel(*map(_order, values))


def _order(value: object) -> object:
    if type(value) is list:  # a slot with several variables; an array of tensors is left unchanged
        return [_order(one) for one in value]
    if isinstance(value, np.ndarray) and value.ndim > 2 and not value.flags.c_contiguous:
        return np.ascontiguousarray(value)
    return value
