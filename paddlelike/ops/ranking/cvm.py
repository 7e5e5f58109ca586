"""cvm (continuous value model): counts of shows and clicks beside an embedding."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import OWN, Array, Bool, Context, Gradient, OpDef, Spec, register


@register
class Cvm(OpDef):
    """``Y``: X with the logarithms of its first two columns, or without these columns.

    X ``(N, D)`` begins with the counts of shows and of clicks; with ``use_cvm`` these become ``log(show +
    1)`` and ``log(click + 1) - log(show + 1)``. As in Paddle, CVM ``(N, 2)`` takes the place of the gradient
    of the first two columns: the parameter server counts by it. Each sequence has one row of CVM.
    """

    type = "cvm"
    by_row = True
    inputs = ("X", "CVM")
    outputs = ("Y",)
    attrs = {"use_cvm": Bool(True)}
    gradient = Gradient("X", "CVM", "Y@GRAD", outputs=("X@GRAD",), lod=OWN)
    lod = "X"

    @staticmethod
    def infer(x: Spec, cvm: Spec, *, use_cvm: bool) -> Spec:
        if len(x.shape) != 2 or 0 <= x.shape[1] < 2:
            raise ShapeError(f"cvm: X has shape {x.shape}; it needs (N, D) with two columns or more")
        return Spec((x.shape[0], x.shape[1] if use_cvm else x.shape[1] - 2), x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, cvm: Array, *, use_cvm: bool) -> Array:
        if not use_cvm:
            return x[:, 2:].copy()
        out = x.copy()
        out[:, :2] = np.log(x[:, :2] + x.dtype.type(1))
        out[:, 1] -= out[:, 0]
        return out

    @staticmethod
    def backward(ctx: Context, x: Array, cvm: Array, d_out: Array, *, use_cvm: bool) -> Array:
        lod = ctx.lod("X")
        lengths = np.diff(lod[0]) if lod else np.ones(len(x), np.int64)
        if len(cvm) < len(lengths) or lengths.sum() != len(x):
            raise EnforceNotMet(
                f"cvm: X has {len(x)} rows in {len(lengths)} sequences, CVM has {len(cvm)} rows",
                hint="CVM needs one row for each sequence, or for each row of X without LoD",
            )
        dx = np.empty_like(x)
        dx[:, :2] = np.repeat(cvm[: len(lengths)], lengths, axis=0)
        dx[:, 2:] = d_out[:, 2:] if use_cvm else d_out
        return dx
