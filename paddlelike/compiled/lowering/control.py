"""Blocks: conditions as ``lax.cond``, loops as ``lax.while_loop``, recurrent blocks as ``lax.scan``.

The derivative of a condition and of a recurrent block is JAX's. A loop whose gradient the program computes
has no lowering, because the count of its steps, and so of what must be kept, is not known.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from paddlelike.compiled.refusals import LoweringError
from paddlelike.compiled.table import lowers

Results = tuple[Any, ...]


@lowers("conditional_block", "conditional_block_infer")
def conditional_block(
    conditions: list[Any], inputs: list[Any], *, sub_block: Any, is_scalar_condition: bool, ctx: Any
) -> Results:
    outs = ctx.find_positions(ctx.op.output("Out"))
    names = ctx.find_positions(ctx.op.input("Input"))

    def run(given: list[Any]) -> list[Any]:
        values = ctx.run_block(sub_block, dict(zip(names, given, strict=True)))
        return [values[position] for position in outs]

    if not is_scalar_condition:  # whether all are not empty, which their shapes say
        if all(condition.size for condition in conditions):
            return run(inputs), None
        return [ctx.trace.values.get(position) for position in outs], None
    shapes = jax.eval_shape(run, inputs)
    before = [ctx.trace.values.get(position) for position in outs]
    if any(
        value is None and n in ctx.trace.plan.layout.persistables
        for n, value in zip(outs, before, strict=True)
    ):
        raise LoweringError("it may give a persistable its first value")
    kept = [_fit(value, shape) for value, shape in zip(before, shapes, strict=True)]
    return jax.lax.cond(conditions[0].reshape(()), run, lambda _: kept, inputs), None


def _fit(value: Any, shape: Any) -> Any:
    """Return a value from before a block; zeros where there is none."""
    if value is None:
        return jnp.zeros(shape.shape, shape.dtype)
    if jnp.shape(value) != shape.shape or value.dtype != shape.dtype:
        raise LoweringError(f"a block changes a value of {value.dtype}{list(jnp.shape(value))} "
                                  f"into {shape.dtype}{list(shape.shape)}")  # fmt: skip
    return value


@lowers("while")
def loop(xs: list[Any], conditions: list[Any], *, sub_block: Any, ctx: Any) -> Results:
    if "while" in ctx.trace.plan.differentiated:
        raise LoweringError("the program computes the gradient of a loop")
    outs = ctx.find_positions(ctx.op.output("Out"))
    (condition,) = ctx.find_positions(ctx.op.input("Condition"))
    carried = sorted({*outs, condition})

    def step(given: list[Any]) -> list[Any]:
        values = ctx.run_block(sub_block, dict(zip(carried, given, strict=True)))
        return [values[position] for position in carried]

    start = [ctx.trace.values.get(position) for position in carried]
    if any(value is None for value in start):
        missing = {n: v for n, v in zip(carried, start, strict=True) if v is not None}
        shapes = jax.eval_shape(lambda: [ctx.run_block(sub_block, missing)[n] for n in carried])
        start = [_fit(value, shape) for value, shape in zip(start, shapes, strict=True)]
    start = [jnp.asarray(value) for value in start]
    at = carried.index(condition)
    results = jax.lax.while_loop(lambda given: given[at].reshape(()), step, start)
    found = dict(zip(carried, results, strict=True))
    ctx.trace.values[condition] = found[condition]
    return [found[position] for position in outs], None


@lowers("recurrent")
def recurrent(
    inputs: list[Any], initial_states: list[Any], parameters: list[Any],
    *, ex_states: Any, states: Any, sub_block: Any, reverse: bool, ctx: Any,
) -> Results:  # fmt: skip
    inside = ctx.find_positions(ctx.op.input("inputs"), sub_block)
    before, after = ctx.find_positions(ex_states, sub_block), ctx.find_positions(states, sub_block)
    outs = ctx.find_positions(ctx.op.output("outputs"), sub_block)
    around = dict(zip(ctx.find_positions(ctx.op.input("parameters")), parameters, strict=True))

    def step(given: list[Any], rows: list[Any]) -> Any:
        values = dict(zip(inside, rows, strict=True)) | dict(zip(before, given, strict=True))
        values = ctx.run_block(sub_block, around | values)
        return [values[position] for position in after], [values[position] for position in outs]

    _, results = jax.lax.scan(step, list(initial_states), list(inputs), reverse=reverse)
    return results, None


@lowers("select_output")
def select_output(x: Any, mask: Any, *, ctx: Any) -> list[Any]:
    chosen = mask.reshape(()).astype(jnp.int32)
    # Numpy's kernel leaves the others without a value; as gradients, which these are, that is zero.
    return [jnp.where(chosen == i, x, jnp.zeros_like(x)) for i in range(len(ctx.op.output("Out")))]


@lowers("select_input")
def select_input(xs: list[Any], mask: Any) -> Any:
    return jnp.stack(xs)[mask.reshape(()).astype(jnp.int32)]
