"""Floats from quantized numbers: steps times a scale, dictionaries, and tables of bytes."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, Attrs, Bool, Float, Int, Ints, Long, OpDef, Spec, register
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import same_shape
from paddlelike.ops.quantization.fake import quantize


@register
class FakeDequantizeMaxAbs(OpDef):
    """``Out = X Scale / max_range``, Scale ``(1,)``."""

    type = "fake_dequantize_max_abs"
    inputs = ("X", "Scale")
    attrs = {"max_range": Float()}
    lod = "X"

    infer = same_shape("X")

    @staticmethod
    def forward(x: Array, scale: Array, *, max_range: float) -> Array:
        return x * scale.reshape(-1)[0] / x.dtype.type(max_range)


@register
class FakeChannelWiseDequantizeMaxAbs(OpDef):
    """``Out``: X times the scale of its channel, by the steps of ``quant_bits``.

    Scales is one tensor ``(C,)`` for the channels ``X[c]``. Or it is two tensors, ``(C,)`` for the channels
    ``X[:, c]`` and ``(1,)`` for all of X, each with its own number of bits.
    """

    type = "fake_channel_wise_dequantize_max_abs"
    inputs = ("X", "Scales*")
    attrs = {"quant_bits": Ints([8])}
    lod = "X"

    @classmethod
    def infer(cls, x: Spec, scales: list[Spec]) -> Spec:
        if len(scales) not in (1, 2):
            raise ShapeError(f"{cls.type}: there are {len(scales)} Scales, expected 1 or 2")
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, scales: list[Array], *, quant_bits: list[int]) -> Array:
        if len(quant_bits) < len(scales):
            raise EnforceNotMet(
                f"fake_channel_wise_dequantize_max_abs: quant_bits is {quant_bits} for {len(scales)} Scales"
            )
        steps = x.dtype.type(int(math.prod(2.0 ** (bits - 1) - 1 for bits in quant_bits[: len(scales)])))
        if len(scales) == 1:
            return x * scales[0].reshape(-1, *(1,) * (x.ndim - 1)) / steps
        factor = scales[0].reshape(1, -1, *(1,) * (x.ndim - 2)) * scales[1].reshape(-1)[0]
        return x * factor / steps


@register
class DequantizeAbsMax(OpDef):
    """``Out = Scale X / max_range`` of integers, float32; Scale ``(1,)``."""

    type = "dequantize_abs_max"
    inputs = ("X", "Scale")
    attrs = {"max_range": Float()}
    lod = "X"

    @staticmethod
    def infer(x: Spec, scale: Spec) -> Spec:
        return Spec(x.shape, scale.dtype)

    @staticmethod
    def forward(x: Array, scale: Array, *, max_range: float) -> Array:
        return scale.reshape(-1)[0] * x.astype(np.float32) / np.float32(max_range)


@register
class DequantizeLog(OpDef):
    """``Out = Dict[X]``, and ``-Dict[X + 128]`` of negative numbers; X int8, Dict ``(128,)`` float32."""

    type = "dequantize_log"
    inputs = ("X", "Dict")
    lod = "X"

    @staticmethod
    def infer(x: Spec, table: Spec) -> Spec:
        return Spec(x.shape, table.dtype)

    @staticmethod
    def forward(x: Array, table: Array) -> Array:
        index = x.astype(np.int64)
        flat = table.reshape(-1)
        return np.where(index < 0, -flat[index % 128], flat[index % 128])


@register
class LookupTableDequant(OpDef):
    """``Out``: rows of a table of bytes, converted to floats.

    A row of W ``(V, 2 + D / 4)`` float32 holds its least and its greatest number, then D bytes. Ids is int64
    ``(..., 1)``, Out ``(..., D)``. A byte b stands for ``least + b (greatest - least) / 256``; rows of
    ``padding_idx`` are zeros.
    """

    type = "lookup_table_dequant"
    traceable = False
    inputs = ("W", "Ids")
    attrs = {"padding_idx": Long(-1)}
    lod = "Ids"

    @staticmethod
    def infer(w: Spec, ids: Spec) -> Spec:
        if len(w.shape) != 2 or w.shape[1] < 2 or ids.shape[-1] not in (-1, 1):
            raise ShapeError(
                f"lookup_table_dequant: W has shape {w.shape}, Ids {ids.shape}; expected (V, 2 + D / 4) and "
                "a last dim of 1"
            )
        return Spec((*ids.shape[:-1], (w.shape[1] - 2) * 4), VarType.FP32)

    @staticmethod
    def forward(w: Array, ids: Array, *, padding_idx: int) -> Array:
        rows = ids.reshape(-1)
        known = np.where(rows == padding_idx, 0, rows)
        if len(known) and not (known.min() >= 0 and known.max() < len(w)):
            raise EnforceNotMet(
                f"lookup_table_dequant: Ids are in [{known.min()}, {known.max()}], W has {len(w)} rows"
            )
        chosen = np.ascontiguousarray(w[known])
        least, greatest = chosen[:, :1], chosen[:, 1:2]
        numbers = np.ascontiguousarray(chosen[:, 2:]).view(np.uint8).astype(np.float32)
        out = (greatest - least) / np.float32(256) * numbers + least
        out[rows == padding_idx] = 0
        return out.reshape(*ids.shape[:-1], out.shape[1])


class LinearAttrs(Attrs):
    """Attributes of ``quantize_linear`` and ``dequantize_linear`` of Paddle 2."""

    quant_axis: int = Int(-1)
    bit_length: int = Int(8)
    qmin: int = Int(-128)
    qmax: int = Int(127)
    round_type: int = Int(0)
    is_test: bool = Bool(True)
    only_observer: bool = Bool(False)

    def align(self, scale: Array, dims: int) -> Array:
        """Return the scales in a shape that broadcasts to an array with so many dims."""
        if self.quant_axis < 0:
            return scale.reshape(-1)[0]
        return scale.reshape(-1, *(1,) * (dims - 1 - self.quant_axis))

    @property
    def steps(self) -> int:
        """The number of steps of the scale."""
        return int(2 ** (self.bit_length - 1)) - 1


_Given = Array | None
_LINEAR: Final = "X Scale ZeroPoint? InAccum? InState? -> Y OutState? OutAccum? OutScale?"


@register_kernel("quantize_linear", _LINEAR, LinearAttrs.table())
def _quantize_linear(
    x: Array,
    scale: Array,
    zero: Array | None,
    accum: Array | None,
    state: Array | None,
    *,
    attrs: LinearAttrs,
) -> tuple[Array, None, None, None]:
    """X in steps of the scale. Halves are rounded to even (with one more step below 0) or away from 0."""
    if attrs.only_observer:
        return x, None, None, None
    if not attrs.is_test:
        raise EnforceNotMet(
            "quantize_linear: is_test is False, but scales cannot be measured here; set is_test=True"
        )
    out = quantize(x, attrs.align(scale, x.ndim).astype(x.dtype), attrs)
    return out.astype(x.dtype, copy=False), None, None, None


@register_kernel("dequantize_linear", _LINEAR, LinearAttrs.table())
def _dequantize_linear(
    x: Array,
    scale: Array,
    zero: Array | None,
    accum: Array | None,
    state: Array | None,
    *,
    attrs: LinearAttrs,
) -> tuple[Array, None, None, None]:
    """Steps times the scale, ``Y = X Scale / steps``."""
    if attrs.only_observer:
        return x, None, None, None
    numbers = x.astype(scale.dtype, copy=False)
    return numbers * attrs.align(scale, x.ndim) / scale.dtype.type(attrs.steps), None, None, None
