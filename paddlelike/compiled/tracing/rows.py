"""Sequences as arrays with their rows, and back."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import Lowering
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed
from paddlelike.framework.opdef import OpDef


def call_with_rows(ctx: OpContext, cls: type[OpDef], row: Lowering, args: list[Any]) -> object:
    """Call a lowering for plain arrays with sequences that have no unused rows, and return its results.

    Results become sequences again if numpy's kernel gives them a LoD.
    """
    results = row.function(ctx, to_rows(args), cls, ctx.op.attrs)
    several = (results,) if len(cls.output_slots) == 1 else results
    given = dict(zip((slot.name for slot in cls.input_slots), args, strict=True))
    wrapped = []
    for slot, result in zip(cls.output_slots, several, strict=True):
        source = given.get(cls.find_lod_source(slot.name) or "")
        like = source[0] if isinstance(source, list) and source else source
        if isinstance(like, Packed):
            result = wrap_rows(result, like.rows.shape[0], like, like.shown)
        wrapped.append(result)
    return wrapped[0] if len(wrapped) == 1 else tuple(wrapped)


def find_packed(value: Any) -> list[Packed]:
    """Return the sequences among arguments."""
    leaves = jax.tree_util.tree_leaves(value, is_leaf=_is_packed)
    return [leaf for leaf in leaves if _is_packed(leaf)]


def to_rows(args: list[Any]) -> list[Any]:
    """Return arguments with sequences replaced by their rows."""
    found: list[Any] = jax.tree_util.tree_map(
        lambda leaf: leaf.rows if _is_packed(leaf) else leaf, args, is_leaf=_is_packed
    )
    return found


def wrap_rows(result: Any, size: int, like: Packed, shown: bool) -> object:
    """Return a result as sequences, if it has their rows."""
    if isinstance(result, list):
        return [wrap_rows(one, size, like, shown) for one in result]
    if isinstance(result, Packed) or result is None or jnp.shape(result)[:1] != (size,):
        return result
    return like.replace(result, shown=shown)


def _is_packed(value: object) -> bool:
    return isinstance(value, Packed)
