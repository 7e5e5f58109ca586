"""Fake quantization: floats are rounded to the values that small integers can represent.

Jacob et al., Quantization and training of neural networks for integer-arithmetic-only inference, 2018.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, Attrs, Bool, Context, Float, Int, OpDef, Spec, register
from paddlelike.framework.opdef.registry import LATER
from paddlelike.ops.kernels.detection.regions import round_half_away
from paddlelike.ops.kernels.rounding import round_packets


def quantize(x: Array, scale: Array, attrs: Any) -> Array:
    """Return x, limited to [-scale, scale], as a whole number of steps; ``scale`` is ``2^(bit_length - 1) -
    1``.

    Without ``round_type`` halves are rounded as in Fluid. ``round_type`` 0 rounds halves to even and allows
    one more step below 0; 1 rounds halves away from 0.
    """
    real = x.dtype.type
    steps = real(2 ** (attrs.bit_length - 1) - 1)
    factor = steps * (real(1) / np.where(scale <= 1e-30, scale + real(1e-6), scale))
    kind = getattr(attrs, "round_type", None)
    if kind == 0:
        return np.clip(np.rint(factor * x), -steps - 1, steps)
    held = np.where(x < -scale, -scale, np.where(x > scale, scale, x))
    return round_packets(factor * held) if kind is None else round_half_away(factor * held)


def _largest(x: Array) -> Array:
    return _find_largest(np.abs(x).reshape(1, -1))


def _find_largest(sizes: Array) -> Array:
    """Return the largest element of each row; NaN if the first element is NaN, otherwise NaN is ignored."""
    numbers = np.where(np.isnan(sizes), np.zeros_like(sizes), sizes)
    return np.where(np.isnan(sizes[:, :1]).any(1), sizes.dtype.type(np.nan), numbers.max(1, initial=0))


def _average(x: Array, accum: Array, state: Array, rate: float) -> tuple[Array, Array, Array]:
    """Return the scale, and the two running sums whose quotient it is: of maxima and of ones."""
    kept = x.dtype.type(rate)
    state = kept * state.reshape(-1)[:1] + x.dtype.type(1)
    accum = kept * accum.reshape(-1)[:1] + _largest(x)
    return accum / state, accum, state


class _BitAttrs(Attrs):
    bit_length: int = Int(8)


@register
class FakeQuantizeAbsMax(OpDef):
    """``Out``: X in steps of its largest absolute value; OutScale ``(1,)``: that value."""

    type = "fake_quantize_abs_max"
    outputs = ("Out", "OutScale")
    attrs = _BitAttrs.table()
    lod = {"Out": "X"}

    @staticmethod
    def infer(x: Spec) -> tuple[Spec, Spec]:
        return Spec(x.shape, x.dtype), Spec((1,), x.dtype)

    @staticmethod
    def forward(x: Array, *, attrs: _BitAttrs) -> tuple[Array, Array]:
        scale = _largest(x)
        return quantize(x, scale, attrs), scale


@register
class FakeChannelWiseQuantizeAbsMax(FakeQuantizeAbsMax):
    """``fake_quantize_abs_max`` with one scale for each filter ``X[c]``; OutScale ``(C,)``."""

    type = "fake_channel_wise_quantize_abs_max"

    @staticmethod
    def infer(x: Spec) -> tuple[Spec, Spec]:
        return Spec(x.shape, x.dtype), Spec((x.shape[0],), x.dtype)

    @staticmethod
    def forward(x: Array, *, attrs: _BitAttrs) -> tuple[Array, Array]:
        rows = np.moveaxis(x, getattr(attrs, "quant_axis", 0), 0)
        scale = _find_largest(np.abs(rows).reshape(len(rows), -1))
        out = quantize(rows, scale.reshape(-1, *(1,) * (x.ndim - 1)), attrs)
        return np.moveaxis(out, 0, getattr(attrs, "quant_axis", 0)), scale


class _RangeAttrs(Attrs):
    window_size: int = Int(10000)
    bit_length: int = Int(8)
    is_test: bool = Bool(False)


@register
class FakeQuantizeRangeAbsMax(OpDef):
    """``fake_quantize_abs_max`` by the maximum over ``window_size`` steps, or InScale if ``is_test``.

    OutScales holds the greatest value of each of these steps; Iter ``(1,)`` int64 counts the steps.
    """

    type = "fake_quantize_range_abs_max"
    inputs = ("X", "InScale", "Iter?")
    outputs = ("Out", "OutScale", "OutScales?")
    attrs = _RangeAttrs.table()
    lod = {"Out": "X"}

    @staticmethod
    def infer(x: Spec, scale: Spec, step: Spec | None, *, attrs: _RangeAttrs) -> tuple[Spec, Spec, Spec]:
        return Spec(x.shape, x.dtype), Spec((1,), x.dtype), Spec((attrs.window_size,), x.dtype)

    @staticmethod
    def forward(
        ctx: Context, x: Array, scale: Array, step: Array | None, *, attrs: _RangeAttrs
    ) -> tuple[Array, Array | None, Array | None]:
        if attrs.is_test:
            return quantize(x, scale.reshape(-1)[:1], attrs), None, None
        index = 0 if step is None else int(step.reshape(-1)[0])
        names = ctx.op.output("OutScales")
        before = ctx.read(names[0]) if names else None
        window = np.zeros(attrs.window_size, x.dtype) if before is None else before.copy()
        removed, current, largest = window[index % attrs.window_size], _largest(x)[0], scale.reshape(-1)[0]
        window[index % attrs.window_size] = current
        if largest < current:
            largest = current
        elif abs(removed - largest) < 1e-6:
            largest = np.abs(window[: min(max(index, 1), attrs.window_size)]).max()
        found = np.array([largest], x.dtype)
        return quantize(x, found, attrs), found, window


class _MovingAttrs(Attrs):
    moving_rate: float = Float(0.9)
    bit_length: int = Int(8)
    is_test: bool = Bool(False)


class _Moving(OpDef):
    """Quantization by a moving average of the largest absolute values: OutScale = OutAccum / OutState.

    ``OutAccum = moving_rate InAccum + greatest value``, ``OutState = moving_rate InState + 1``. With
    ``is_test`` the scale is InScale, and the sums stay as they are.
    """

    inputs = ("X", "InScale", "InAccum?", "InState?")
    outputs = ("Out", "OutScale", "OutState?", "OutAccum?")
    attrs = _MovingAttrs.table()
    lod = {"Out": "X"}

    @staticmethod
    def infer(x: Spec, scale: Spec, accum: Spec | None, state: Spec | None) -> tuple[Spec, Spec, Spec, Spec]:
        one = Spec((1,), x.dtype)
        return Spec(x.shape, x.dtype), one, one, one


def _find_scale(
    type: str, x: Array, scale: Array, accum: Array | None, state: Array | None, attrs: _MovingAttrs
) -> tuple[Array, Array | None, Array | None]:
    """Return the scale and, when training, OutState and OutAccum."""
    if attrs.is_test:
        return scale.reshape(-1)[:1], None, None
    if accum is None or state is None:
        raise EnforceNotMet(
            f"{type}: InAccum and InState are absent", hint="give them, or set is_test to quantize by InScale"
        )
    found, accum, state = _average(x, accum, state, attrs.moving_rate)
    return found, state, accum


@register
class FakeQuantizeMovingAverageAbsMax(_Moving):
    __doc__ = _Moving.__doc__

    type = "fake_quantize_moving_average_abs_max"

    @classmethod
    def forward(
        cls, x: Array, scale: Array, accum: Array | None, state: Array | None, *, attrs: _MovingAttrs
    ) -> tuple[Any, ...]:
        found, *sums = _find_scale(cls.type, x, scale, accum, state, attrs)
        return quantize(x, found, attrs), None if attrs.is_test else found, *sums


@register
class FakeQuantizeDequantizeMovingAverageAbsMax(_Moving):
    """``fake_quantize_moving_average_abs_max``, with the steps converted back to floats."""

    type = "fake_quantize_dequantize_moving_average_abs_max"

    @classmethod
    def forward(
        cls, x: Array, scale: Array, accum: Array | None, state: Array | None, *, attrs: _MovingAttrs
    ) -> tuple[Any, ...]:
        found, *sums = _find_scale(cls.type, x, scale, accum, state, attrs)
        steps = x.dtype.type(2 ** (attrs.bit_length - 1) - 1)
        out = quantize(x, found, attrs) * found / steps
        return out, None if attrs.is_test else found, *sums


@register
class MovingAverageAbsMaxScale(OpDef):
    """``Out``: X unchanged; OutScale: the moving average of its largest values, for a later quantization."""

    type = "moving_average_abs_max_scale"
    inputs = ("X", "InAccum?", "InState?")
    outputs = ("Out", "OutScale", "OutState?", "OutAccum?")
    attrs = {"moving_rate": Float(0.9), "is_test": Bool(False)}
    lod = {"Out": "X"}

    @staticmethod
    def infer(x: Spec, accum: Spec | None, state: Spec | None) -> tuple[Spec | None, Spec, Spec, Spec]:
        if not x.shape:
            raise ShapeError("moving_average_abs_max_scale: X has no dims")
        one = Spec((1,), x.dtype)
        return Spec(x.shape, x.dtype), one, one, one

    @staticmethod
    def forward(
        x: Array, accum: Array | None, state: Array | None, *, moving_rate: float, is_test: bool
    ) -> tuple[Any, ...]:
        if is_test or accum is None or state is None:
            return x.copy(), None, None, None
        scale, accum, state = _average(x, accum, state, moving_rate)
        return x.copy(), scale, state, accum


class _LaterBitAttrs(_BitAttrs):
    round_type: int = Int(1)


class _LaterChannelAttrs(_LaterBitAttrs):
    quant_axis: int = Int(0)


class _LaterRangeAttrs(_RangeAttrs):
    round_type: int = Int(1)


class _LaterMovingAttrs(_MovingAttrs):
    round_type: int = Int(1)


for _form, _table in (
    (FakeQuantizeAbsMax, _LaterBitAttrs.table()),
    (FakeChannelWiseQuantizeAbsMax, _LaterChannelAttrs.table()),
    (FakeQuantizeRangeAbsMax, _LaterRangeAttrs.table()),
    (FakeQuantizeMovingAverageAbsMax, _LaterMovingAttrs.table()),
    (FakeQuantizeDequantizeMovingAverageAbsMax, _LaterMovingAttrs.table()),
):
    _body = {"__doc__": _form.__doc__, "type": _form.type + LATER, "since": "2", "attrs": _table}
    register(type(f"{_form.__name__}Later", (_form,), _body))
