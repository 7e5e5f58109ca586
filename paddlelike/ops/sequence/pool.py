"""sequence_pool: one row per sequence, its sum, mean, maximum, first or last row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    NO_LOD,
    OWN,
    Array,
    Bool,
    Context,
    Float,
    Gradient,
    GradOp,
    OpDef,
    OpView,
    Spec,
    String,
    register,
)
from paddlelike.ops.kernels.lod import (
    check_level,
    find_maxima,
    maximize_segments,
    read_last_level,
    read_levels,
    sum_segments,
)

#: The weight of each row of a sequence of length n, in pools that are sums.
_WEIGHT: Final[dict[str, Callable[[Array], Array]]] = {
    "SUM": np.ones_like,
    "AVERAGE": lambda n: 1 / n,
    "SQRT": lambda n: 1 / np.sqrt(n),
}
#: The row that a pool takes of sequences with these starts and ends.
_PICK: Final[dict[str, Callable[[Array, Array], Array]]] = {
    "FIRST": lambda starts, ends: starts,
    "LAST": lambda starts, ends: ends - 1,
}
_POOLS: Final = (*_WEIGHT, *_PICK, "MAX")


@register
class SequencePool(OpDef):
    """``Out[i]``: the rows of sequence i reduced to one by ``pooltype``; ``pad_value`` for empty sequences.

    ``pooltype`` is SUM, AVERAGE, SQRT (the sum divided by the root of the length), MAX, FIRST or LAST.
    Sequences are those of the last level; Out keeps the levels above. MaxIndex is the row of X that holds
    each maximum, or -1.
    """

    type = "sequence_pool"
    outputs = ("Out", "MaxIndex")
    attrs = {"is_test": Bool(False), "pooltype": String("AVERAGE"), "pad_value": Float(0.0)}
    gradient = Gradient("Out@GRAD", "X", "MaxIndex", lod=OWN)

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        (grad,) = super().make_grad(op)
        if op.attrs["pooltype"] != "MAX":
            del grad.inputs["MaxIndex"]
        return [grad]

    @staticmethod
    def infer(x: Spec, *, pooltype: str) -> tuple[Spec, Spec | None]:
        check_level("sequence_pool", x)
        if pooltype not in _POOLS:
            raise ShapeError(f"sequence_pool: pooltype is {pooltype!r}, expected one of {', '.join(_POOLS)}")
        level = (x.lod_level or 1) - 1
        # MaxIndex is int32, but Paddle's layer declares it as X
        return Spec(x.shape, x.dtype, level), Spec(x.shape, x.dtype, NO_LOD) if pooltype == "MAX" else None

    @staticmethod
    def forward(
        ctx: Context, x: Array, *, pooltype: str, pad_value: float, is_test: bool
    ) -> tuple[Array, Array | None]:
        offsets = read_last_level(ctx, "X", len(x))
        ctx.set_lod("Out", read_levels(ctx, "X")[:-1])
        full = _Full(offsets)
        if full.single and pooltype != "MAX":
            return x.copy(), None
        if full.count == 0:
            return np.full((len(full.which), *x.shape[1:]), pad_value, x.dtype), None
        index = None
        if pooltype in _PICK:
            pooled = x.take(_PICK[pooltype](full.starts, full.ends), axis=0)
        elif pooltype == "MAX":
            if is_test:
                pooled = maximize_segments(x, full.starts, full.lengths)
            else:
                pooled, index = find_maxima(x, full.starts, full.lengths)
                index = full.place(index, -1)
        else:
            pooled = sum_segments(x, full.starts, full.lengths)
            if pooltype != "SUM":
                pooled *= _make_column(_WEIGHT[pooltype](full.lengths), x)
        return full.place(pooled, pad_value), index

    @staticmethod
    def backward(ctx: Context, d_out: Array, x: Array, max_index: Array | None, *, pooltype: str) -> Array:
        full = _Full(read_last_level(ctx, "X", len(x)))
        if full.single and pooltype != "MAX":
            return d_out.copy()
        d_rows = d_out if full.all else d_out[full.which]
        if pooltype in _WEIGHT:
            if pooltype != "SUM":
                d_rows = d_rows * _make_column(_WEIGHT[pooltype](full.lengths), x)
            return np.repeat(d_rows, full.lengths, axis=0)
        d_x = np.zeros_like(x, d_out.dtype)
        if pooltype in _PICK:
            d_x[_PICK[pooltype](full.starts, full.ends)] = d_rows
        else:
            if max_index is None:
                raise EnforceNotMet(
                    "sequence_pool_grad: the maxima have no MaxIndex",
                    hint="take the gradient of the training program, not of its clone(for_test=True)",
                )
            index = max_index if full.all else max_index[full.which]
            np.put_along_axis(d_x, index, d_rows, axis=0)
        return d_x


class _Full:
    """The nonempty sequences, since numpy's reduceat does not support empty ranges."""

    def __init__(self, offsets: Array) -> None:
        self.starts, self.ends = offsets[:-1], offsets[1:]
        self.lengths = self.ends - self.starts
        self.count = int(np.count_nonzero(self.lengths))
        self.all = self.count == len(self.lengths)
        self.single = self.all and self.count == offsets[-1]  # one row each, as fields of one value have
        self.which = self.lengths > 0
        if not self.all:
            self.starts, self.ends, self.lengths = (
                each[self.which] for each in (self.starts, self.ends, self.lengths)
            )

    def place(self, values: Array, empty: float) -> Array:
        """Return ``values`` for the nonempty sequences, and ``empty`` for the others."""
        if self.all:
            return values
        out = np.full((len(self.which), *values.shape[1:]), empty, values.dtype)
        out[self.which] = values
        return out


def _make_column(weights: Array, like: Array) -> Array:
    """Return one number per row as a column that rows of ``like`` can be multiplied by."""
    return weights.astype(like.dtype).reshape(-1, *(1,) * (like.ndim - 1))
