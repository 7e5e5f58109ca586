"""Ranges: range, linspace, logspace."""

from __future__ import annotations

import math

import numpy as np

from paddlelike.core import VarType, numpy_dtype
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Int, OpDef, Spec, register
from paddlelike.ops.later import register_kernel


@register
class Range(OpDef):
    """``Out``: Start, Start + Step, ... before End, added up step by step as in Paddle."""

    type = "range"
    size_slots = ("Start", "End", "Step")
    inputs = ("Start", "End", "Step")

    @staticmethod
    def infer(start: Spec, end: Spec, step: Spec) -> Spec:
        return Spec((-1,), start.dtype)

    @staticmethod
    def forward(start: Array, end: Array, step: Array) -> Array:
        first, last, by = (one.reshape(-1)[0] for one in (start, end, step))
        if start.dtype.kind == "i":  # in Python's numbers, which take less time
            first, last, by = int(first), int(last), int(by)
        if by == 0 or (last - first) * by < 0:
            raise ShapeError(
                f"range: steps of {by} from {first} never reach {last}",
                hint="the step leads from start to end: positive if end is larger",
            )
        if start.dtype.kind == "i":
            whole: Array = np.arange(first, last, by, start.dtype)  # type: ignore[call-overload]
            return whole
        return _count_steps(first, by, math.ceil(abs((last - first) / by)))


@register
class Linspace(OpDef):
    """``Out``: Num evenly spaced numbers from Start to Stop, added up step by step as in Paddle."""

    type = "linspace"
    size_slots = ("Start", "Stop", "Num")
    inputs = ("Start", "Stop", "Num")

    @staticmethod
    def infer(start: Spec, stop: Spec, num: Spec) -> Spec:
        for name, one in (("Start", start), ("Stop", stop), ("Num", num)):
            if len(one.shape) != 1 or one.shape[0] not in (1, -1):
                raise ShapeError(f"linspace: {name} has shape {one.shape}, expected [1]")
        return Spec((-1,), start.dtype)

    @staticmethod
    def forward(start: Array, stop: Array, num: Array) -> Array:
        first, last, count = start.reshape(-1)[0], stop.reshape(-1)[0], int(num.reshape(-1)[0])
        if count < 1:
            raise ShapeError(f"linspace: Num is {count}, expected 1 at least")
        step = (last - first) / first.dtype.type(max(count - 1, 1))
        return _count_steps(first, step, count)


def _count_steps(first: np.generic, step: np.generic, count: int) -> Array:
    """Return ``first`` and the numbers after it, each rounded before the next step is added."""
    out = np.full(count, step, first.dtype)
    out[:1] = first
    return np.add.accumulate(out, dtype=out.dtype)


@register_kernel("linspace", "Start Stop Num -> Out", {"dtype": Int(5)}, changed=True)
def _linspace(start: Array, stop: Array, num: Array, *, dtype: int) -> Array:
    """Evenly spaced numbers, with float64 steps; the second half is counted back from the end."""
    kind = numpy_dtype(VarType(dtype))
    first, last = (one.reshape(-1)[0].astype(kind) for one in (start, stop))
    count = int(num.item())
    if count < 1:
        raise ShapeError(f"linspace: Num is {count}, expected 1 at least")
    most, places = max(count - 1, 1), np.arange(count)
    step = float(last - first) / most
    return np.where(2 * places < most, first + step * places, last - step * (most - places)).astype(kind)


@register_kernel("logspace", "Start Stop Num Base -> Out", {"dtype": Int(5)}, ends_gradients=True)
def _logspace(start: Array, stop: Array, count: Array, base: Array, *, dtype: int) -> Array:
    """Powers of ``base`` with evenly spaced exponents."""
    exponents = np.linspace(start.item(), stop.item(), count.item())
    return np.asarray(base.item() ** exponents).astype(numpy_dtype(VarType(dtype)))
