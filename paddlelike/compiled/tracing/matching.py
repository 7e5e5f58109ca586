"""Match arrays without a LoD to sequences with as many rows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed
from paddlelike.framework.opdef import GRAD, OpDef


def match_rows(ctx: OpContext, cls: type[OpDef], args: list[Any], like: Packed) -> list[Any]:
    """Return the arguments of an operator with two operands; an array without a LoD gets unused rows added.

    If the numbers of rows do not match, numpy runs the operator or refuses it. XShape gets unused rows too,
    since an earlier piece returns it without them.
    """
    if any(slot.name == "XShape" for slot in cls.input_slots) and cls.type.endswith("2_grad"):
        return [
            _match_shape(ctx, arg, like) if slot.name == "XShape" else arg
            for slot, arg in zip(cls.input_slots, args, strict=True)
        ]
    is_elementwise = cls.type.startswith("elementwise_")
    if not (is_elementwise or (cls.forward_of or cls).pairs_rows):
        return args
    axis = ctx.op.attrs.get("axis", -1) if is_elementwise else -1
    dims = like.rows.ndim
    packed = [isinstance(one, Packed) for one in ctx.read_inputs()]
    found = []
    for slot, arg, is_packed in zip(cls.input_slots, args, packed, strict=True):
        has_rows = isinstance(arg, jax.Array) and (arg.ndim == dims or (0 < arg.ndim < dims and axis == 0))
        if is_packed or not has_rows or arg.shape[0] == 1:
            found.append(arg)
        else:
            found.append(add_unused(ctx, arg, like, is_gradient=slot.name.endswith(GRAD)))
    return found


def cut_gradients(ctx: OpContext, cls: type[OpDef], args: list[Any]) -> list[Any]:
    """Return the arguments of a gradient operator; the gradient of an array has no unused rows.

    Unused rows come from a loss that pairs the array with sequences, as `cross_entropy` does with labels.
    """
    given = {slot.name: arg for slot, arg in zip(cls.input_slots, args, strict=True)}
    packed = {name: arg for name, arg in given.items() if isinstance(arg, Packed)}
    if not packed or not all(name.endswith(GRAD) for name in packed) or cls.type == "dropout_grad":
        return args  # a Mask has the rows of X, which is not given
    size, *dims = next(iter(packed.values())).rows.shape
    counts = {
        arg.shape[0]
        for name, arg in given.items()
        if isinstance(arg, jax.Array) and not name.endswith(GRAD) and list(arg.shape[1:]) == dims
    }
    if len(counts) != 1 or counts == {size}:
        return args
    (count,) = counts
    for one in packed.values():
        ctx.require(one.total == count, "a gradient has another number of rows than its array")
    return [arg.rows[:count] if isinstance(arg, Packed) else arg for arg in args]


def add_unused(ctx: OpContext, arg: Any, like: Packed, *, is_gradient: bool) -> Any:
    """Return an array with a row for each row of sequences, with their unused rows."""
    size = like.rows.shape[0]
    if like.full and arg.shape[0] == size:
        return arg
    ctx.require(like.total == arg.shape[0], "an input without a LoD has another number of rows")
    missing = max(size - arg.shape[0], 0)
    unused = jnp.broadcast_to(arg[:1], (missing, *arg.shape[1:]))
    return jnp.concatenate([arg, jnp.zeros_like(unused) if is_gradient else unused])[:size]


def _match_shape(ctx: OpContext, xshape: Any, like: Packed) -> object:
    """Return XShape, (0, *shape of X), where X has the unused rows of ``like``."""
    size = like.rows.shape[0]
    if xshape is None or xshape.ndim < 2 or xshape.shape[1] == size:
        return xshape
    ctx.require(like.total == xshape.shape[1], "Out@GRAD has another number of rows than X")
    return jnp.zeros((0, size, *xshape.shape[2:]), xshape.dtype)
