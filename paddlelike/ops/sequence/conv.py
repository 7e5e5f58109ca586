"""sequence_conv: a convolution along sequences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from paddlelike.core.rows import sum_rows
from paddlelike.errors import ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import (
    OWN,
    Array,
    Attrs,
    Bool,
    Context,
    Gradient,
    GradOp,
    Int,
    OpDef,
    OpView,
    Spec,
    register,
)
from paddlelike.ops.kernels.linalg import multiply
from paddlelike.ops.kernels.lod import read_last_level


class SequenceConvAttrs(Attrs):
    """Attributes of sequence_conv."""

    paddingTrainable: bool = Bool(False)  # noqa: N815  (Paddle's names)
    contextLength: int = Int()  # noqa: N815
    contextStart: int = Int(0)  # noqa: N815
    contextStride: int = Int(1)  # noqa: N815


@register
class SequenceConv(OpDef):
    """``Out[t]``: ``contextLength`` rows of X from ``t + contextStart`` on, side by side, times Filter.

    X is (T, D), Filter (contextLength D, M). Rows outside of the sequence are zeros or, with
    ``paddingTrainable``, rows of PaddingData (those before, then those after).
    """

    type = "sequence_conv"
    inputs = ("X", "PaddingData?", "Filter")
    attrs = SequenceConvAttrs.table()
    lod = "X"
    gradient = Gradient(
        "Out@GRAD",
        "X",
        "PaddingData",
        "Filter",
        outputs=("X@GRAD", "PaddingData@GRAD", "Filter@GRAD"),
        lod=OWN,
    )

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        (grad,) = super().make_grad(op)
        if not op.attrs.get("paddingTrainable"):
            del grad.inputs["PaddingData"], grad.outputs["PaddingData@GRAD"]
        return [grad]

    @staticmethod
    def infer_grad(slot: str, spec: Spec, attrs: dict[str, Any]) -> Spec:
        return spec._replace(lod_level=None) if slot == "Filter@GRAD" else spec

    @staticmethod
    def infer(x: Spec, padding: Spec | None, filter: Spec, *, attrs: SequenceConvAttrs) -> Spec:
        if attrs.contextStride != 1:
            raise ShapeError(f"sequence_conv: contextStride is {attrs.contextStride}, only 1 is possible")
        if not (
            len(x.shape) == len(filter.shape) == 2 and x.shape[1] * attrs.contextLength == filter.shape[0]
        ):
            raise ShapeError(
                f"sequence_conv: X is {list(x.shape)}, Filter {list(filter.shape)}; expected (T, D) and "
                f"({attrs.contextLength} D, M)"
            )
        rows = max(0, -attrs.contextStart) + max(0, attrs.contextStart + attrs.contextLength - 1)
        if attrs.paddingTrainable and (padding is None or tuple(padding.shape) != (rows, x.shape[1])):
            shown = None if padding is None else list(padding.shape)
            raise ShapeError(f"sequence_conv: PaddingData is {shown}, expected ({rows}, {x.shape[1]})")
        return Spec((x.shape[0], filter.shape[1]), x.dtype)

    @staticmethod
    def forward(
        ctx: Context, x: Array, padding: Array | None, filter: Array, *, attrs: SequenceConvAttrs
    ) -> Array:
        window = _Window(read_last_level(ctx, "X", len(x)), attrs.contextLength, attrs.contextStart)
        return multiply(window.columns(x, padding if attrs.paddingTrainable else None), filter)

    @staticmethod
    def backward(
        ctx: Context,
        d_out: Array,
        x: Array,
        padding: Array | None,
        filter: Array,
        *,
        attrs: SequenceConvAttrs,
        wanted: tuple[bool, ...],
    ) -> tuple[Array, Array | None, Array]:
        window = _Window(read_last_level(ctx, "X", len(x)), attrs.contextLength, attrs.contextStart)
        trained = padding if attrs.paddingTrainable else None
        columns, d_rows = window.columns(x, trained), multiply(d_out, filter.T)
        if (
            wanted[0]
            and trained is None
            and attrs.contextStart > 0
            and follows_fluid("sequence_conv_gradient")
        ):
            short = (window.end - window.first)[:, 0] <= attrs.contextStart
            columns[short] = d_rows[short]
        d_filter = multiply(columns.T, d_out)
        d_columns = d_rows.reshape(len(x), attrs.contextLength, x.shape[1])
        d_x = np.zeros_like(x)
        for j in range(attrs.contextLength):
            ours = window.inside[:, j]
            d_x[window.rows[ours, j]] += d_columns[ours, j]  # a row comes once at most
        d_padding = None
        if trained is not None:
            outside = ~window.inside
            d_padding = sum_rows(window.padding_rows()[outside], d_columns[outside], len(trained))
        return d_x, d_padding, d_filter


class _Window:
    """The rows around each row of the sequences, (T, length), and a mask of the rows outside the sequence."""

    def __init__(self, offsets: Array, length: int, start: int) -> None:
        lengths = np.diff(offsets)
        self.before = max(0, -start)
        self.rows = np.arange(offsets[-1])[:, None] + np.arange(start, start + length)
        self.first, self.end = (np.repeat(edge, lengths)[:, None] for edge in (offsets[:-1], offsets[1:]))
        self.inside = (self.rows >= self.first) & (self.rows < self.end)

    def padding_rows(self) -> Array:
        """Return the row of PaddingData for each row outside of its sequence, those before it first."""
        return self.before + np.where(self.rows < self.first, self.rows - self.first, self.rows - self.end)

    def columns(self, x: Array, padding: Array | None) -> Array:
        """The rows of each window side by side, (T, length D)."""
        columns = x.take(self.rows, axis=0, mode="clip")
        outside = ~self.inside
        columns[outside] = 0 if padding is None else padding[self.padding_rows()[outside]]
        return columns.reshape(len(x), math.prod(columns.shape[1:]))
