"""One step of an update on small arrays of float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.core import SelectedRows
from paddlelike.framework.opdef import registry
from tests.ops.harness.contract import FakeContext, View, full_attrs

__all__ = ["SPARSE", "P", "one", "step"]

P = np.array([[1, -1], [2, 0.5], [-0.25, 3]], np.float32)
SPARSE = SelectedRows([2, 0, 2], 3, np.array([[0.5, -1], [2, 0.25], [1, 0.5]], np.float32))


def one(value: float) -> np.ndarray[Any, Any]:
    """Return a learning rate, or a power of beta."""
    return np.array([value], np.float32)


def step(type: str, inputs: dict[str, Any], **given: Any) -> dict[str, Any]:
    """The outputs of an update on copies of its inputs, float32 and attributes as a program holds them."""
    op = registry.find(type)
    attrs = full_attrs(op, given)
    attrs = {k: float(np.float32(v)) if isinstance(v, float) else v for k, v in attrs.items()}
    copies = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in inputs.items()}
    args = [copies.get(slot.name) for slot in op.input_slots]
    if op.context:
        args.insert(0, FakeContext(View(type, {}, {}, {}), {}, {}))
    results = op.forward(*args, **op.make_forward_keywords(attrs))
    many = results if len(op.output_slots) > 1 else (results,)
    return {slot.name: value for slot, value in zip(op.output_slots, many, strict=True)}
