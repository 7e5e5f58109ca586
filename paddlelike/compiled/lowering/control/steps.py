"""Helpers for lowerings of blocks: the values that gradients read, the form of values that a loop carries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.arrays import fit
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import SparseRows
from paddlelike.framework.opdef import EMPTY, GRAD, grad_name

T = TypeVar("T")  # the function's results besides the carried values
_ROUNDS = 5  # rounds in which the carried values must reach their final form


class Form(NamedTuple, Generic[T]):
    """The shapes and types of a block's results, found by tracing it once.

    Attributes
    ----------
    start
        The values before the first step, with the shapes and types that they keep in all steps.
    results
        Shapes of the function's other results.
    draws, checks
        The random values and checks of the block's operators.
    """

    start: list[Any]
    results: T
    draws: list[Any]
    checks: list[Any]


def find_form(run: Callable[[list[Any]], tuple[Any, list[Any], T]], start: Sequence[Any]) -> Form[T]:
    """Return the shapes and types of the values that a loop carries from step to step.

    ``run`` takes these values (None for a variable without an initial value) and returns the trace of the
    block, the values after a step, and anything else. Missing initial values are zeros. Raises LoweringError
    when values change their form from step to step.
    """
    values = list(start)
    for _ in range(_ROUNDS):
        given = [i for i, value in enumerate(values) if value is not None]
        noted: list[Any] = []

        def probe(
            some: list[Array], given: list[int] = given, noted: list[Array] = noted
        ) -> tuple[list[Any], T]:
            whole: list[Any] = [None] * len(start)
            for place, value in zip(given, some, strict=True):
                whole[place] = value
            inner, after, others = run(whole)
            noted[:] = [inner.drawn, [(op, message) for op, message, _ in inner.checks]]
            return after, others

        after, others = jax.eval_shape(probe, [values[i] for i in given])
        fitted = [_start(value, shape) for value, shape in zip(values, after, strict=True)]
        if _describe(fitted) == _describe(values):
            return Form(fitted, others, *noted)
        values = fitted
    raise LoweringError("the results of its block change shape or type from step to step")


def _start(value: Array | None, shape: Array | None) -> Array | None:
    if shape is None:
        return value
    return pick_zeros(shape) if value is None else fit(value, shape)


def pick_zeros(shape: list[Any | None] | Array) -> Array:
    """Return zeros of the given shapes."""
    return jax.tree_util.tree_map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shape)


def _describe(
    values: list[Array] | list[Array | None],
) -> tuple[jax.tree_util.PyTreeDef, list[tuple[tuple[int, ...], np.dtype[Any]]]]:
    leaves, form = jax.tree_util.tree_flatten(values)
    return form, [(jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves]


def find_saved(ctx: OpContext, block: int, scopes: str) -> tuple[list[int], list[int]] | None:
    """Return the positions that a block's gradient reads: overwritten outer variables, and the block's own.

    Return None if the gradient is not computed, which the slot ``scopes`` shows.
    """
    layout = ctx.plan.layout
    if not any(position in layout.reads for position in ctx.find_positions(ctx.op.output(scopes))):
        return None
    read = ctx.plan.find_gradient_reads(block)
    before = [n for n in layout.get_overwritten_positions(ctx.op) if n in read]
    return before, [n for n in layout.get_own_positions(block) if n in read]


def select(values: dict[int, Any], positions: Sequence[int]) -> dict[int, Any]:
    """Return the existing values at the given positions, by position."""
    return {n: values[n] for n in positions if values.get(n) is not None}


def flatten_rows(total: Array | SparseRows, count: Array | None = None) -> Array | SparseRows:
    """Return the sparse rows of all steps, given as one stack, as the rows of one gradient.

    Entries after step ``count`` hold zeros for the rows of the first step, so no other rows change.
    """
    if not isinstance(total, SparseRows):
        return total
    rows = total.rows
    if count is not None:
        rows = jnp.where(jnp.arange(rows.shape[0])[:, None] < count, rows, rows[0])
    return SparseRows(rows.reshape(-1), total.values.reshape(-1, *total.values.shape[2:]), total.height)


def list_targets(ctx: OpContext, slot: str) -> list[str]:
    """Return the gradients of a slot by their names inside a gradient's block; EMPTY for unwanted ones."""
    return [
        EMPTY if target == EMPTY else grad_name(name)
        for name, target in zip(ctx.op.input(slot), ctx.op.output(slot + GRAD), strict=True)
    ]
