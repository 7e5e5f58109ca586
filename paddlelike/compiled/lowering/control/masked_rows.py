"""split_lod_tensor and merge_lod_tensor: divide rows between two branches and merge their results."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value, get_rows
from paddlelike.framework.opdef import GRAD


def _read_mask(mask: Array | Packed, *values: Value | None) -> Array:
    if isinstance(mask, Packed) or any(isinstance(value, Packed) and value.offsets for value in values):
        raise LoweringError("the mask selects whole sequences")
    if mask.dtype != jnp.bool_:
        raise LoweringError("Mask is not bool")
    return mask.reshape(-1)


@lowers("split_lod_tensor", sequences=True)
def split_lod_tensor(x: Array | Packed, mask: Array | Packed, *, ctx: OpContext) -> tuple[Packed, Packed]:
    if isinstance(x, Packed) and x.offsets and _is_gradient(ctx, "OutTrue") and not isinstance(mask, Packed):
        # For rows that a loss pairs with rows of sequences.
        ctx.require(x.total == mask.shape[0], "the gradient has another number of rows than Mask")
        x = x.rows[: mask.shape[0]]
    chosen = _read_mask(mask, x)
    rows = get_rows(x)
    if rows.shape[0] != chosen.shape[0]:
        raise LoweringError("X and Mask have different numbers of rows")
    parts = []
    for slot, here in (("OutTrue", chosen), ("OutFalse", ~chosen)):
        order, count = jnp.argsort(~here, stable=True), here.sum().astype(jnp.int32)
        places = jnp.where(jnp.arange(order.shape[0]) < count, order, order[0])
        part = Packed(rows[places], (), rows.shape[0], shown=False, live=count)
        parts.append(part.replace(part.mask()) if _is_gradient(ctx, slot) else part)
    return parts[0], parts[1]


def _is_gradient(ctx: OpContext, slot: str) -> bool:
    return any(GRAD in name for name in ctx.op.output(slot))


@lowers("merge_lod_tensor", "merge_lod_tensor_infer", sequences=True)
def merge_lod_tensor(x: Value, mask: Value, in_true: Value, in_false: Value) -> Value:
    chosen = _read_mask(mask, in_true, in_false)
    sides = []
    for part, here in ((in_true, chosen), (in_false, ~chosen)):
        place = jnp.maximum(jnp.cumsum(here) - 1, 0)
        if part is not None and not isinstance(part, Packed):
            raise LoweringError("a branch returns another number of rows than it got")
        sides.append(None if part is None else jnp.take(part.rows, place, axis=0, mode="clip"))
    first, second = sides
    if first is None or second is None:  # the gradient of one branch is not computed
        known = second if first is None else first
        first, second = (jnp.zeros_like(known) if side is None else side for side in sides)
    return jnp.where(chosen.reshape(-1, *[1] * (first.ndim - 1)), first, second)
