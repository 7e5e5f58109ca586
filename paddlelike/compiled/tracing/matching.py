"""Arrays without a LoD that have a row for each row of sequences."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed
from paddlelike.framework.opdef import GRAD, OpDef

__all__ = ["match_rows"]


def match_rows(ctx: OpContext, cls: type[OpDef], args: list[Any], like: Packed) -> list[Any]:
    """Return the arguments of an operator of two operands; where one has rows of its own, with unused ones.

    Numpy runs the operator, or refuses it, where these are not as many rows as the sequences have.
    """
    type = cls.type.removesuffix("_grad")
    if not (type.startswith("elementwise_") or type == "cos_sim"):
        return args
    size, dims = like.rows.shape[0], like.rows.ndim
    axis = ctx.op.attrs.get("axis", -1)
    packed = [isinstance(one, Packed) for one in ctx.read_inputs()]
    found = []
    for slot, arg, is_packed in zip(cls.input_slots, args, packed, strict=True):
        has_rows = isinstance(arg, jax.Array) and (arg.ndim == dims or (0 < arg.ndim < dims and axis == 0))
        if is_packed or not has_rows or arg.shape[0] == 1:
            found.append(arg)
            continue
        if like.full and arg.shape[0] == size:
            found.append(arg)
            continue
        ctx.require(like.total == arg.shape[0], "an input without a LoD has another count of rows")
        missing = max(size - arg.shape[0], 0)
        unused = jnp.broadcast_to(arg[:1], (missing, *arg.shape[1:]))
        unused = jnp.zeros_like(unused) if slot.name.endswith(GRAD) else unused
        found.append(jnp.concatenate([arg, unused])[:size])
    return found
