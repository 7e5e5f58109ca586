"""Operators on class ids: one_hot, shard_index."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from paddlelike.core import VarType, numpy_dtype
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import REQUIRED, Array, Attr, Attrs, Bool, Int, OpDef, Spec, register
from paddlelike.ops.operands import read_numbers


class _OneHot(OpDef):
    inputs = ("X", "depth_tensor?")
    attrs: ClassVar[dict[str, Attr]] = {
        "depth": Int(-1),
        "dtype": Int(int(VarType.FP32)),
        "allow_out_of_range": Bool(False),
    }
    lod = "X"

    @staticmethod
    def infer(x: Spec, depth_tensor: Spec | None, *, depth: int, dtype: int) -> Spec:
        if depth_tensor is not None:
            depth = -1
        elif depth < 1:
            raise ShapeError(f"one_hot: depth is {depth}, expected 1 or more")
        return Spec((*x.shape, depth), VarType(dtype))

    @staticmethod
    def forward(
        x: Array, depth_tensor: Array | None, *, depth: int, dtype: int, allow_out_of_range: bool
    ) -> Array:
        depth = read_numbers([depth], depth_tensor, None)[0]
        ids = x.reshape(-1)
        out = np.zeros((len(ids), depth), numpy_dtype(dtype))
        rows = np.arange(len(ids))
        outside = (ids < 0) | (ids >= depth)
        if outside.any():
            if not allow_out_of_range:
                raise EnforceNotMet(
                    f"one_hot: X holds {int(ids[outside][0])}, expected 0 .. {depth - 1}",
                    hint="with allow_out_of_range=True such rows are zeros",
                )
            rows, ids = rows[~outside], ids[~outside]
        out[rows, ids] = 1
        return out.reshape(*x.shape, depth)


@register
class OneHot(_OneHot):
    """``Out[i, X[i, 0]] = 1``, zero elsewhere; the last dim of X is 1, the last dim of Out ``depth``."""

    type = "one_hot"
    until = "1"
    by_row = True

    @staticmethod
    def infer(x: Spec, depth_tensor: Spec | None, *, depth: int, dtype: int) -> Spec:
        if len(x.shape) < 2 or x.shape[-1] not in (1, -1):
            raise ShapeError(
                f"one_hot: X has shape {x.shape}, expected two dims or more, the last of them 1",
                hint="one_hot_v2 (fluid.one_hot) takes ids of any shape",
            )
        return _OneHot.infer(Spec(x.shape[:-1], x.dtype), depth_tensor, depth=depth, dtype=dtype)

    @staticmethod
    def forward(
        x: Array, depth_tensor: Array | None, *, depth: int, dtype: int, allow_out_of_range: bool
    ) -> Array:
        return _OneHot.forward(
            x.reshape(x.shape[:-1]),
            depth_tensor,
            depth=depth,
            dtype=dtype,
            allow_out_of_range=allow_out_of_range,
        )


@register
class OneHotV2(_OneHot):
    """``Out[i..., X[i...]] = 1``, zero elsewhere: one dim more than X."""

    type = "one_hot_v2"
    by_row = True


class ShardIndexAttrs(Attrs):
    """Attributes of shard_index."""

    index_num: int = Int(REQUIRED)
    nshards: int = Int(REQUIRED)
    shard_id: int = Int(REQUIRED)
    ignore_value: int = Int(-1)


@register
class ShardIndex(OpDef):
    """``Out``: the ids of shard ``shard_id``, counted from its first; others are ``ignore_value``.

    Each of the ``nshards`` holds ``ceil(index_num / nshards)`` ids.
    """

    type = "shard_index"
    attrs = ShardIndexAttrs.table()
    lod = "X"

    @staticmethod
    def infer(x: Spec, *, attrs: ShardIndexAttrs) -> Spec:
        if attrs.index_num < 1 or attrs.nshards < 1 or not 0 <= attrs.shard_id < attrs.nshards:
            raise ShapeError(
                f"shard_index: index_num {attrs.index_num}, nshards {attrs.nshards}, "
                f"shard_id {attrs.shard_id}; "
                "expected 1 or more of the first two, and a shard_id below nshards"
            )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, *, attrs: ShardIndexAttrs) -> Array:
        if x.size and not 0 <= x.min() <= x.max() < attrs.index_num:
            raise EnforceNotMet(
                f"shard_index: X goes from {x.min()} to {x.max()}, but index_num is {attrs.index_num}"
            )
        size = -(-attrs.index_num // attrs.nshards)
        return np.where(x // size == attrs.shard_id, x % size, x.dtype.type(attrs.ignore_value))
