"""Recurrent blocks as ``lax.scan``, and their gradients: the gradient of the block, backwards."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.arrays import SavedSteps, fit
from paddlelike.compiled.lowering.control.steps import (
    find_form,
    find_saved,
    flatten_rows,
    list_targets,
    pick_zeros,
    select,
)
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.tracing.draws import DrawLoop
from paddlelike.compiled.tracing.trace import Trace
from paddlelike.compiled.values import SparseRows, Value
from paddlelike.framework.opdef import EMPTY, grad_names


@lowers("recurrent", sequences=True)
def recurrent(
    inputs: list[Array], initial_states: list[Array], parameters: list[Array],
    *, ex_states: list[str], states: list[str], sub_block: int, reverse: bool, ctx: OpContext,
) -> Results:  # fmt: skip
    inside = ctx.find_positions(ctx.op.input("inputs"), sub_block)
    before, after = ctx.find_positions(ex_states, sub_block), ctx.find_positions(states, sub_block)
    outs = ctx.find_positions(ctx.op.output("outputs"), sub_block)
    saved = find_saved(ctx, sub_block, "step_scopes")
    own = [] if saved is None else saved[1]
    count = int(inputs[0].shape[0])

    def run(
        given: list[Array], rows: list[Array], draws: Array
    ) -> tuple[Trace, list[Array], tuple[list[Any], dict[int, Any]]]:
        values = dict(zip(inside, rows, strict=True)) | dict(zip(before, given, strict=True))
        inner = ctx.run_block(sub_block, values, draws=draws)
        results = [inner.values[position] for position in outs]
        return inner, [inner.values[n] for n in after], (results, select(inner.values, own))

    form = find_form(lambda given: run(given, [x[0] for x in inputs], None), initial_states)
    loop = DrawLoop(count, lambda given: count, form.draws)
    drawn = ctx.trace.draw(loop) if form.draws else None

    def step(
        state: Array, given: Array
    ) -> tuple[tuple[list[Any], list[Any]], Array | tuple[list[Any], dict[int, Any]]]:
        rows, draws = given
        values, held = state
        inner, values, results = run(values, rows, draws)
        held = [old & new for old, (_, _, new) in zip(held, inner.checks, strict=True)]
        return ([fit(v, shape) for v, shape in zip(values, form.start, strict=True)], held), results

    # When numpy runs backwards, it draws for the last step first.
    if reverse and drawn is not None:
        drawn = jax.tree_util.tree_map(lambda x: x[::-1], drawn)
    first = (jax.tree_util.tree_map(jnp.asarray, form.start), [jnp.ones((), bool) for _ in form.checks])
    (_, held), (results, kept) = jax.lax.scan(step, first, (list(inputs), drawn), reverse=reverse)
    ctx.add_checks(form.checks, held)
    steps = None if saved is None else SavedSteps({}, kept, {}, jnp.asarray(count))
    return results, steps


@lowers("recurrent_grad", sequences=True)
def recurrent_grad(
    inputs: list[Value], initial_states: list[Value], parameters: list[Value], outs: list[Value],
    d_outs: list[Value], scopes: Value, d_scopes: Value,
    *, ex_states: list[str], states: list[str], sub_block: int, reverse: bool, ctx: OpContext,
) -> Results:  # fmt: skip
    if not isinstance(scopes, SavedSteps):
        raise LoweringError("its loop is not in this piece")
    before = ctx.find_positions(grad_names(ex_states), sub_block)
    after = ctx.find_positions(grad_names(states), sub_block)
    given_out = ctx.find_positions(grad_names(ctx.op.input("outputs")), sub_block)
    by_step, by_sum = list_targets(ctx, "inputs"), list_targets(ctx, "parameters")
    step_places, sum_places = (
        ctx.find_positions([name for name in names if name != EMPTY], sub_block)
        for names in (by_step, by_sum)
    )
    shown = {n: d_out for n, d_out in zip(given_out, d_outs, strict=True) if d_out is not None}

    def run(
        passed: list[Array], kept: Array, rows: Array
    ) -> tuple[Trace, list[Array | None], list[list[Any | None]]]:
        inner = ctx.run_block(sub_block, kept | dict(zip(after, passed, strict=True)) | rows)
        if inner.drawn:
            raise LoweringError("the gradient of its block draws random values")
        following = [inner.values.get(n) for n in before]
        following = [
            jnp.zeros_like(old) if new is None else new for old, new in zip(passed, following, strict=True)
        ]
        found = [[inner.values.get(n) for n in places] for places in (step_places, sum_places)]
        return inner, following, found

    first = jax.tree_util.tree_map(lambda leaf: leaf[0], (scopes.after, shown))
    form = find_form(lambda passed: run(passed, *first), [jnp.zeros_like(x) for x in initial_states])

    def step(state: Array, given: Array) -> tuple[tuple[list[Any], Any], tuple[Any, list[SparseRows | None]]]:
        passed, totals = state
        _, passed, (rows, sums) = run(passed, *given)
        passed = [fit(value, shape) for value, shape in zip(passed, form.start, strict=True)]
        sparse = [one if isinstance(one, SparseRows) else None for one in sums]
        dense = [None if isinstance(one, SparseRows) else one for one in sums]
        return (passed, jax.tree_util.tree_map(jnp.add, totals, dense)), (rows, sparse)

    dense = [None if isinstance(one, SparseRows) else one for one in form.results[1]]
    start = (form.start, pick_zeros(dense))
    (last, totals), (rows, sparse) = jax.lax.scan(step, start, (scopes.after, shown), reverse=not reverse)
    totals = [
        one if steps is None else flatten_rows(steps) for one, steps in zip(totals, sparse, strict=True)
    ]
    d_inputs, d_parameters = _spread(by_step, rows), _spread(by_sum, totals)
    d_inputs = [
        jnp.zeros_like(x) if name != EMPTY and d_x is None else d_x
        for name, x, d_x in zip(by_step, inputs, d_inputs, strict=True)
    ]
    return d_inputs, last, d_parameters


def _spread(names: list[str], values: list[Array] | Array) -> list[Any]:
    """Return the values in the order of the names, with None for each EMPTY name."""
    found = iter(values)
    return [None if name == EMPTY else next(found) for name in names]
