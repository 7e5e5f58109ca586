"""Arrays of tensors: see :class:`~paddlelike.compiled.arrays.TensorArray`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.arrays import TensorArray, stack_zeros
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value, get_rows
from paddlelike.framework.opdef import GRAD


def _read_place(i: Array) -> Array | np.ndarray[Any, Any]:
    """Return an index as a scalar; a known index as numpy's."""
    return np.asarray(i).reshape(()) if isinstance(i, np.ndarray) else i.reshape(())


@lowers("write_to_array", sequences=True, constants=True)
def write_to_array(x: Value, i: Value, *, ctx: OpContext) -> TensorArray:
    place = _read_place(i)
    (position,) = ctx.find_positions(ctx.op.output("Out"))
    array = ctx.trace.values.get(position)
    if not isinstance(array, TensorArray):
        room = _find_room(ctx, position, place)
        array = TensorArray(stack_zeros(x, room), np.zeros((), np.int64))
    if isinstance(place, np.ndarray):
        touched = array.touched
        array = array.grow(int(place) + 1)
        array.touched = touched
    else:
        # In a loop with an unknown number of steps, keep the present room.
        ctx.require((place >= 0) & (place < array.capacity), "the length of the array depends on values")
    x = jnp.asarray(x) if isinstance(x, np.ndarray) else x
    return array.write(place, x)


def _find_room(ctx: OpContext, position: int, place: Array | np.ndarray[Any, Any]) -> int:
    """Return how many elements to allocate for an array at its first write."""
    (name,) = ctx.op.output("Out")
    if GRAD in name:  # as many as the array whose gradient it is
        (base,) = ctx.find_positions([name.partition(GRAD)[0]])
        forward = ctx.trace.values.get(base)
        if isinstance(forward, TensorArray):
            return forward.capacity
    known = int(place) + 1 if isinstance(place, np.ndarray) else 0
    room = max(known, ctx.trace.capacities.get(position, 0))
    if not room:
        raise LoweringError("the length of the array depends on values")
    return room


@lowers("read_from_array", sequences=True, constants=True)
def read_from_array(
    x: Array | TensorArray | None, i: Value, like: Array | Packed | None, *, ctx: OpContext
) -> Value:
    place = _read_place(i)
    if not isinstance(x, TensorArray):
        if x is None and like is not None:
            return _zeros(like)
        raise LoweringError("the array has no elements")
    there = (place >= 0) & (place < x.length)
    if like is None:
        ctx.check(there, "the array has no such element")
        return x.read(place)
    if isinstance(place, np.ndarray) and place >= x.capacity:
        return _zeros(like)
    found = x.read(place)  # of the gradient; zeros if it was not written
    if isinstance(like, Packed):
        rows = get_rows(found)
        return like.replace(jnp.where(there, rows, jnp.zeros_like(rows)))
    return jax.tree_util.tree_map(lambda leaf: jnp.where(there, leaf, jnp.zeros_like(leaf)), _plain(found))


def _zeros(like: Array | Packed) -> Value:
    return like.replace(jnp.zeros_like(like.rows)) if isinstance(like, Packed) else jnp.zeros_like(like)


def _plain(value: Array | Packed) -> Value:
    return value.rows if isinstance(value, Packed) and not value.offsets else value


@lowers("lod_array_length", sequences=True, constants=True)
def lod_array_length(x: Array | None) -> Value:
    length = np.zeros((), np.int64) if x is None else x.length
    known = isinstance(length, np.ndarray | np.generic)
    return (np if known else jnp).asarray(length).reshape(1).astype(np.int64)


@lowers("tensor_array_to_tensor", sequences=True, constants=True)
def tensor_array_to_tensor(
    x: Array | TensorArray, *, axis: int, use_stack: bool
) -> tuple[Value, Value | np.ndarray[Any, Any]]:
    if not isinstance(x, TensorArray) or not isinstance(x.length, np.ndarray | np.generic):
        raise LoweringError("the number of elements depends on values")
    if not isinstance(x.stacked, Array):
        raise LoweringError("the elements are sequences")
    count = int(x.length)
    parts = [x.stacked[place] for place in range(count)]
    sizes = [1 if use_stack else part.shape[axis] for part in parts]
    out = jnp.stack(parts, axis) if use_stack else jnp.concatenate(parts, axis)
    return out, np.array(sizes, np.int32)
