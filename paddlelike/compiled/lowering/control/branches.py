"""Branches as ``lax.cond``, and their gradients; the choice of one of several values."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.arrays import SavedSteps, fit
from paddlelike.compiled.lowering.control.steps import find_form, find_saved, list_targets, pick_zeros, select
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.tracing.trace import Trace
from paddlelike.compiled.values import Packed, Value
from paddlelike.framework import Block
from paddlelike.framework.opdef import EMPTY


@lowers("conditional_block", "conditional_block_infer", sequences=True, constants=True)
def conditional_block(
    conditions: list[Array],
    inputs: list[Value],
    *,
    sub_block: int,
    is_scalar_condition: bool,
    ctx: OpContext,
) -> Results:
    outs = ctx.find_positions(ctx.op.output("Out"))
    saved = find_saved(ctx, sub_block, "Scope")
    before, after = saved or ([], [])
    entry = select(ctx.trace.values, ctx.plan.layout.get_overwritten_positions(ctx.op))
    start = [ctx.trace.values.get(position) for position in outs]
    if any(value is None and n in ctx.plan.layout.persistables for n, value in zip(outs, start, strict=True)):
        raise LoweringError("it may initialize a persistable")

    def run(
        values: list[Array], draws: list[Array] | None = None
    ) -> tuple[Trace, list[Array], dict[int, Any]]:
        given = {n: value for n, value in zip(outs, values, strict=True) if value is not None}
        inner = ctx.run_block(sub_block, given, draws=draws)
        return inner, [inner.values.get(n) for n in outs], select(inner.values, after)

    known = _know(conditions, scalar=is_scalar_condition)
    if known is False:
        return start, _save(saved, SavedSteps({}, {}, entry, np.zeros((), np.int32)))
    form = find_form(run, start)
    if form.draws and not known:
        raise LoweringError("its block draws random values, and whether it runs depends on values")
    drawn = [ctx.trace.draw(draw) for draw in form.draws]
    choice = jnp.asarray(True) if known else conditions[0].reshape(())

    def take(values: list[Array]) -> tuple[list[Any], Array | dict[int, Any], list[Any]]:
        inner, results, own = run(values, drawn)
        held = [holds for _, _, holds in inner.checks]
        return [fit(value, shape) for value, shape in zip(results, form.start, strict=True)], own, held

    def leave(values: list[Array]) -> tuple[list[Array], Array, list[Array]]:
        return values, pick_zeros(form.results), [jnp.ones((), bool) for _ in form.checks]

    first = jax.tree_util.tree_map(jnp.asarray, form.start)
    results, own, held = take(first) if known else jax.lax.cond(choice, take, leave, first)
    ctx.add_checks(form.checks, held)
    return results, _save(saved, SavedSteps(select(entry, before), own, entry, choice.astype(jnp.int32)))


def _save(saved: Array | tuple[list[int], list[int]] | None, steps: SavedSteps) -> SavedSteps | None:
    return None if saved is None else steps


def _know(conditions: list[Array], *, scalar: bool) -> bool | None:
    """Return whether a block will run, or None if that is only known at run time."""
    if not scalar:  # whether no variable is empty, by their shapes
        return all(condition.size for condition in conditions)
    return bool(conditions[0].item()) if isinstance(conditions[0], np.ndarray) else None


@lowers("conditional_block_grad", sequences=True, constants=True)
def conditional_block_grad(
    conditions: list[Value], inputs: list[Value], outs: list[Value], d_outs: list[Value], scope: Packed,
    *, sub_block: Block, ctx: OpContext,
) -> list[Any]:  # fmt: skip
    if not isinstance(scope, SavedSteps):
        raise LoweringError("its block is not in this piece")
    names = list_targets(ctx, "Input")
    wanted = [(i, name) for i, name in enumerate(names) if name != EMPTY]
    places = ctx.find_positions([name for _, name in wanted], sub_block)
    for position, value in scope.entry.items():  # read by gradients of earlier operators
        ctx.trace.values[ctx.plan.layout.earlier[position]] = value

    def run(saved: Array) -> list[Any]:
        before, after = saved
        inner = ctx.run_block(sub_block, before | after)
        found = [inner.values.get(n) for n in places]
        return [
            _zeros(inputs[i]) if value is None else value for (i, _), value in zip(wanted, found, strict=True)
        ]

    if isinstance(scope.count, np.ndarray):  # it never runs
        return [None if name == EMPTY else _zeros(x) for name, x in zip(names, inputs, strict=True)]
    saved = (scope.before, scope.after)
    shapes = jax.eval_shape(run, saved)
    results = jax.lax.cond(scope.count > 0, run, lambda _: pick_zeros(shapes), saved)
    found: list[Any] = [None] * len(names)
    for (i, _), value in zip(wanted, results, strict=True):
        found[i] = value
    return found


def _zeros(x: Array) -> Array:
    return jax.tree_util.tree_map(jnp.zeros_like, x)


@lowers("select_output")
def select_output(x: Array, mask: Array, *, ctx: OpContext) -> list[Any]:
    chosen = mask.reshape(()).astype(jnp.int32)
    # Numpy's kernel leaves the others without a value; as gradients, which these are, that is zero.
    return [jnp.where(chosen == i, x, jnp.zeros_like(x)) for i in range(len(ctx.op.output("Out")))]


@lowers("select_input", sequences=True, constants=True)
def select_input(xs: list[Value], mask: Array) -> Value:
    if isinstance(mask, np.ndarray):  # as for a branch that never runs
        return xs[int(mask.reshape(()))]
    chosen = mask.reshape(()).astype(jnp.int32)
    first, *others = [jax.tree_util.tree_map(jnp.asarray, x) for x in xs]
    stacked = [jax.tree_util.tree_map(lambda *leaves: jnp.stack(leaves), first, *others)]
    return jax.tree_util.tree_map(lambda leaf: leaf[chosen], stacked[0])
