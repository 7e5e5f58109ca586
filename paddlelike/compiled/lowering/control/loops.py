"""Loops as ``lax.while_loop``, and their gradients: the gradient of the block for every step, backwards.

A step saves the values for its gradient in stacked arrays, with room for the largest possible number of
steps. So a loop needs a bound of that number to have a gradient.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.arrays import (
    SavedSteps,
    TensorArray,
    add_arrays,
    fit,
    index_tree,
    stack_zeros,
    write_tree,
)
from paddlelike.compiled.lowering.control.steps import (
    find_form,
    find_saved,
    flatten_rows,
    list_targets,
    select,
)
from paddlelike.compiled.lowering.control.trips import Trips, find_trips
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.tracing.draws import DrawLoop
from paddlelike.compiled.tracing.trace import Trace
from paddlelike.compiled.values import Packed, SparseRows, Value, get_rows
from paddlelike.core import VarType
from paddlelike.framework import Block, follows_fluid
from paddlelike.framework.opdef import EMPTY, GRAD
from paddlelike.ops.control.blocks import find_shared


@lowers("while", sequences=True, constants=True)
def loop(
    xs: list[Value], conditions: list[Value], *, sub_block: int, is_test: bool, ctx: OpContext
) -> Results:
    outs = ctx.find_positions(ctx.op.output("Out"))
    (condition,) = ctx.find_positions(ctx.op.input("Condition"))
    carried = sorted({*outs, condition})
    at = carried.index(condition)
    saved = None if is_test else find_saved(ctx, sub_block, "StepScopes")
    trips = find_trips(ctx, sub_block, condition)
    if saved is not None and trips is None:
        raise LoweringError(
            "the number of its steps depends on values, and the program computes its gradient"
        )
    before, after = saved or ([], [])
    capacities = {} if trips is None else trips.lengths
    most = 1 if trips is None else max(trips.most, 1)

    def run(
        values: list[Array], step: Array, draws: Array | None
    ) -> tuple[Trace, list[Array], tuple[dict[int, Any], dict[int, Any]]]:
        given = {n: value for n, value in zip(carried, values, strict=True) if value is not None}
        inner = ctx.run_block(sub_block, given, draws=draws, step=step, capacities=capacities)
        kept = select(ctx.trace.values | given, before), select(inner.values, after)
        return inner, [inner.values.get(n) for n in carried], kept

    start = [_make_room(ctx.trace.values.get(n), capacities.get(n, 0)) for n in carried]
    form = find_form(lambda values: run(values, jnp.zeros((), jnp.int32), None), start)
    if form.draws and trips is None:
        raise LoweringError("its block draws random values, and the number of its steps depends on values")
    drawn = ctx.trace.draw(DrawLoop(most, trips.count, form.draws)) if form.draws and trips else None

    def go_on(state: Array) -> Array:
        step, values, _, _ = state
        going = values[at].reshape(())
        return going if trips is None else going & (step < most)

    def advance(state: Array) -> tuple[Any, list[Any], list[Any], Any]:
        step, values, held, kept = state
        draws = None if drawn is None else index_tree(drawn, step)
        inner, values, new = run(values, step, draws)
        held = [old & new for old, (_, _, new) in zip(held, inner.checks, strict=True)]
        values = [fit(value, shape) for value, shape in zip(values, form.start, strict=True)]
        return step + 1, values, held, write_tree(kept, new, step)

    room = stack_zeros(form.results, most)
    first = jax.tree_util.tree_map(jnp.asarray, form.start)
    held = [jnp.ones((), bool) for _ in form.checks]
    count, values, held, kept = jax.lax.while_loop(
        go_on, advance, (jnp.zeros((), jnp.int32), first, held, room)
    )
    ctx.add_checks(form.checks, held)
    if trips is not None and not trips.exact:
        ctx.check(~values[at].reshape(()), f"the loop has more than {most} steps")
    entry = select(ctx.trace.values, ctx.plan.layout.get_overwritten_positions(ctx.op))
    found = _keep_constants(dict(zip(carried, values, strict=True)), trips, ctx)
    ctx.trace.values[condition] = found[condition]
    steps = None if saved is None else SavedSteps(kept[0], kept[1], entry, count)
    return [found[position] for position in outs], steps


def _make_room(value: Array | TensorArray | None, capacity: int) -> Array | TensorArray | None:
    return value.grow(capacity) if isinstance(value, TensorArray) else value


def _keep_constants(found: dict[int, Any], trips: Trips | None, ctx: OpContext) -> dict[int, Any]:
    """Return the results of a loop, keeping constants as constants."""
    if trips is None or not trips.exact:
        return found
    for position, length in trips.lengths.items():
        array = found.get(position)
        if isinstance(array, TensorArray):
            old = ctx.trace.values.get(position)
            start = old.length if isinstance(old, TensorArray) else np.zeros((), np.int64)
            if isinstance(start, np.ndarray | np.generic):
                found[position] = TensorArray(array.stacked, np.maximum(start, np.int64(length)))
    return found | {n: value for n, value in trips.last.items() if n in found}


@lowers("while_grad", sequences=True, constants=True)
def loop_grad(
    xs: list[Value], outs: list[Value], d_outs: list[Value], scopes: Packed,
    *, sub_block: Block, original_output_grad: list[str], ctx: OpContext,
) -> list[Any]:  # fmt: skip
    if not isinstance(scopes, SavedSteps):
        raise LoweringError("its loop is not in this piece")
    names = list_targets(ctx, "X")
    passed = list(original_output_grad)
    follows = follows_fluid("loop_gradient")
    shared = find_shared(ctx.op, passed) if follows else set()
    arrays = {name for name in passed if _is_array(ctx, name)}
    place = dict(zip(passed, ctx.find_positions(passed, sub_block), strict=True))
    wanted = [name for name in names if name != EMPTY]
    place |= dict(zip(wanted, ctx.find_positions(wanted, sub_block), strict=True))
    totals = [name for name in wanted if name not in (passed if not follows else {*shared, *arrays})]
    counters = _find_counters(ctx, sub_block, set(place.values()))

    def step_back(step: Array, given: list[Array], outer: list[Array]) -> tuple[Array, list[Array], Array]:
        values = index_tree(scopes.after, step)
        values |= {} if follows else index_tree(scopes.before, step)
        values |= dict(zip(counters, outer, strict=True))
        renewed = {name: _renew(value) for name, value in zip(passed, given, strict=True)}
        values |= {place[name]: value for name, value in renewed.items() if value is not None}
        inner = ctx.run_block(sub_block, values, step=step)
        if inner.drawn:
            raise LoweringError("the gradient of its block draws random values")
        found = {name: inner.values.get(place[name]) for name in place}
        following = []
        for name, old in zip(passed, given, strict=True):
            if follows and name not in arrays and found[name] is not None:
                factor = jnp.where(step == scopes.count - 1, 0, 2) if name in shared else None
                following.append(_scale(found[name], factor))
            else:
                following.append(_pass_on(old, found[name]) if name in wanted else old)
        state = [*following, *(inner.values[n] for n in counters)]
        return inner, state, [found[name] for name in totals]

    given = [_start_gradient(ctx, name, d_out) for name, d_out in zip(passed, d_outs, strict=True)]
    outer = [ctx.trace.values[n] for n in counters]
    split = len(passed)
    form = find_form(
        lambda state: step_back(jnp.zeros((), jnp.int32), state[:split], state[split:]), [*given, *outer]
    )
    most = _count_room(scopes)
    sums = [_start_total(shape, most) for shape in form.results]

    def go_back(state: Array) -> Array:
        left, state_values, sums = state
        step = left - 1
        _, after, found = step_back(step, state_values[:split], state_values[split:])
        after = [fit(value, shape) for value, shape in zip(after, form.start, strict=True)]
        sums = [_add(total, one, step) for total, one in zip(sums, found, strict=True)]
        return step, after, sums

    first = jax.tree_util.tree_map(jnp.asarray, form.start)
    _, last, sums = jax.lax.while_loop(lambda state: state[0] > 0, go_back, (scopes.count, first, sums))
    ctx.trace.values.update(zip(counters, last[split:], strict=True))
    outside = ctx.find_positions(ctx.op.input("Out@GRAD"))
    for name, position, d_out, value in zip(passed, outside, d_outs, last[:split], strict=True):
        if follows and name not in arrays and d_out is not None:  # in Fluid the steps write into it
            ctx.trace.values[position] = value
    for position, value in scopes.entry.items():  # read by gradients of earlier operators
        if position in ctx.plan.layout.earlier:
            ctx.trace.values[ctx.plan.layout.earlier[position]] = value
    results = dict(zip(passed, last[:split], strict=True)) | {
        name: flatten_rows(total, scopes.count) for name, total in zip(totals, sums, strict=True)
    }
    return [
        _zeros(x) if results.get(name) is None else results[name] for x, name in zip(xs, names, strict=True)
    ]


def _is_array(ctx: OpContext, name: str) -> bool:
    variable = ctx.op.block._find_var_recursive(name.partition(GRAD)[0])
    return variable is not None and variable.type == VarType.LOD_TENSOR_ARRAY


def _scale(value: Value, factor: Array | None) -> Value:
    """Return a value, with its floats set to 0 if ``factor`` is 0, else doubled; without a factor, the value
    itself.
    """
    if factor is None:
        return value

    def scale(leaf: Array) -> Array:
        return jnp.where(factor == 0, 0, leaf + leaf) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    return jax.tree_util.tree_map(scale, value)


def _find_counters(ctx: OpContext, block: int, gradients: set[int]) -> list[int]:
    """Return the counters that the gradient of a block writes: outer variables other than gradients."""
    own = set(ctx.plan.layout.get_own_positions(block))
    written = ctx.plan.find_writes(block) - own - gradients
    return sorted(n for n in written if ctx.trace.values.get(n) is not None)


def _start_gradient(ctx: OpContext, name: str, d_out: Array | None) -> Array | TensorArray | Packed | None:
    """Return the gradient of a variable after the last step, or zeros."""
    (position,) = ctx.find_positions([name.partition(GRAD)[0]])
    value = ctx.trace.values.get(position)
    if isinstance(value, TensorArray):
        return value.empty() if d_out is None else fit(d_out, value)
    return _zeros(value) if d_out is None else d_out


def _zeros(x: Value | None) -> Value | None:
    rows = get_rows(x)
    if not isinstance(rows, Array | np.ndarray) or not jnp.issubdtype(rows.dtype, jnp.floating):
        return None
    return x.replace(jnp.zeros_like(rows)) if isinstance(x, Packed) else jnp.zeros_like(rows)


def _renew(value: Array | TensorArray) -> Array | TensorArray:
    """Return the array at the beginning of a step, without the writes of that step."""
    return TensorArray(value.stacked, value.length) if isinstance(value, TensorArray) else value


def _pass_on(old: Array | TensorArray | None, new: Array | TensorArray | None) -> Array | TensorArray | None:
    """Return the gradient that a step passes to the step before it.

    In an array, the elements that the step replaced are summed.
    """
    if new is None:
        return old if old is None else jax.tree_util.tree_map(jnp.zeros_like, old)
    if not isinstance(new, TensorArray) or not isinstance(old, TensorArray):
        return new
    merged = new
    for place in new.touched:
        both = jax.tree_util.tree_map(
            lambda one, other: one + other if jnp.issubdtype(one.dtype, jnp.floating) else one,
            new.read(place),
            fit(old, new).read(place),
        )
        merged = merged.write(place, both)
    return merged


def _count_room(scopes: SavedSteps) -> int:
    leaves = jax.tree_util.tree_leaves((scopes.before, scopes.after))
    return int(leaves[0].shape[0]) if leaves else 1


def _start_total(shape: Array | SparseRows | None, most: int) -> Array:
    """Return zeros to which the gradients of all steps are added; sparse rows are kept step by step."""
    if isinstance(shape, SparseRows):
        return stack_zeros(shape, most)
    return stack_zeros(shape, 1) if shape is None else jax.tree_util.tree_map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shape
    )  # fmt: skip


def _add(total: Array | SparseRows, one: Array, step: Array) -> Array:
    if isinstance(total, SparseRows):
        return write_tree(total, one, step)
    return add_arrays(total, one)
