"""Compile the operators of a piece for one choice of shapes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun

from paddlelike.compiled.arrays import SavedSteps
from paddlelike.compiled.backend import find_options
from paddlelike.compiled.packing import RefusedError, Uncovered
from paddlelike.compiled.pieces.gradients import find_left_out
from paddlelike.compiled.pieces.piece_plan import CompiledPlan
from paddlelike.compiled.tracing.checks import find_check
from paddlelike.compiled.tracing.draws import Draw, DrawLoop, find_shapes
from paddlelike.compiled.tracing.guards import keep_unless_checked
from paddlelike.compiled.tracing.orders import delay_transposes
from paddlelike.compiled.tracing.sizes import KnownSizes
from paddlelike.compiled.tracing.trace import Trace
from paddlelike.compiled.values import Packed
from paddlelike.core.memory import keep_freed_block
from paddlelike.errors import OperatorError
from paddlelike.executor.explanations import format_line
from paddlelike.framework import Operator


class Executable(NamedTuple):
    """A compiled piece for one choice of shapes.

    ``run`` takes three lists: the values at the positions ``donated`` and ``kept``, and the random values. It
    returns the values at the positions ``results``, whether each check holds, and old values of other shapes.
    """

    run: Any
    donated: Sequence[int]
    kept: Sequence[int]
    results: Sequence[int]
    draws: list[Draw | DrawLoop]
    checks: list[tuple[Operator, str]]  # by index in the second result, whether they hold
    check_first: Any  # computes the second result beforehand, where that is quick

    def require(self, checked: Any) -> None:
        """Raise OperatorError for the first failed check, or RefusedError if numpy must run the operator."""
        if not self.checks or (held := np.asarray(checked)).all():
            return
        op, message = self.checks[int(np.argmin(held))]
        if isinstance(message, Uncovered):
            raise RefusedError(message.step, message)
        raise OperatorError(
            f"operator {op.type!r} -> {op.output_arg_names} failed: {message}{format_line(op)}",
            hint="the executor of numpy names the element: fluid.set_flags({'FLAGS_backend': 'numpy'})",
        )


class Outline(NamedTuple):
    """The parts of a piece that do not depend on values.

    ``shapes_of`` gives, for results that stand for the shape of another value, the position of that value.
    """

    plan: CompiledPlan
    steps: range
    outputs: Sequence[int]
    shapes_of: Mapping[int, int]
    may_draw: bool


def compile_piece(
    outline: Outline,
    donated: Mapping[int, Any],
    kept: Mapping[int, Any],
    sizes: KnownSizes,
    *,
    same: Mapping[int, int],
    on_cpu: bool,
) -> Executable:
    """Return a piece, compiled for values of these shapes and for these sizes.

    It may write into the memory of ``donated``. ``same`` are pairs of positions with equal values before and
    after the run.

    Raises RefusedError for an operator that cannot be traced.
    """
    plan = outline.plan
    drawn: list[Draw | DrawLoop] = []
    checks: list[tuple[Operator, str]] = []

    places = sorted(donated), sorted(kept.keys() - same.keys())
    results: list[int] = []

    def compute(donated: list[Any], kept: list[Any], draws: Sequence[Any] | None) -> object:
        given = dict(zip((*places[0], *places[1]), (*donated, *kept), strict=True))
        trace = Trace(plan, given | {n: given[first] for n, first in same.items()}, draws)
        trace.sizes = sizes
        for index in outline.steps:
            trace.run(plan.steps[index], index)
        missing = [n for n in outline.outputs if trace.values.get(n) is None]
        left_out = find_left_out(plan, outline.steps, missing)
        if left_out is not None:
            raise RefusedError(
                left_out, "its gradient, in another piece, reads a result that its lowering leaves out"
            )
        drawn[:] = trace.drawn
        checks[:] = [(op, message) for op, message, _ in trace.checks]
        found = {n: trace.values[n] for n in outline.outputs if trace.values.get(n) is not None}
        found = {
            n: value for n, value in found.items() if n not in same and not isinstance(value, SavedSteps)
        }
        for n, source in outline.shapes_of.items():
            x = trace.values.get(source)
            if n in found and isinstance(x, Packed) and found[n].shape[1:] == x.rows.shape:
                found[n] = x.replace(x.rows[:, None][:, :0])
        results[:] = found
        return list(found.values()), jnp.stack([holds for _, _, holds in trace.checks]) if checks else None

    shapes = [
        jax.tree_util.tree_map(_shape_of, [given[n] for n in part])
        for given, part in zip((donated, kept), places, strict=True)
    ]
    if outline.may_draw:
        jax.eval_shape(lambda a, b: compute(a, b, None), *shapes)
    asked = list(drawn)
    draws = [find_shapes(draw) for draw in asked]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Some donated buffers were not usable")
        traced = jax.jit(delay_transposes(compute), donate_argnums=0).trace(*shapes, draws)
        check_first = find_check(traced.jaxpr, on_cpu=on_cpu) if checks else None
        if checks and check_first is None:
            guarded = keep_unless_checked(traced, places[0], results)
            traced = jax.jit(guarded, donate_argnums=0).trace(*shapes, draws)
        elif checks:
            traced = jax.jit(_without_last(traced), donate_argnums=0).trace(*shapes, draws)
        compiled = traced.lower().compile(find_options(on_cpu=on_cpu))
    if on_cpu and (needs := compiled.memory_analysis()) is not None:
        keep_freed_block(needs.temp_size_in_bytes)
    return Executable(compiled, *places, results, asked, checks, check_first)


def _without_last(traced: Any) -> Callable[..., Any]:
    """Return a traced function without its last result, which is already computed."""
    function, form = jaxpr_as_fun(traced.jaxpr), jax.tree_util.tree_structure(traced.out_info)

    def compute(*args: Any) -> object:
        *found, last = function(*jax.tree_util.tree_leaves(args))
        return jax.tree_util.tree_unflatten(form, [*found, last])[0], None

    return compute


def _shape_of(value: Any) -> object:
    return jax.ShapeDtypeStruct(value.shape, value.dtype)


def separate(updated: dict[int, Any], kept: dict[int, Any]) -> dict[int, Any]:
    """Return the arrays that will be overwritten, each only once."""
    seen = {id(value) for value in kept.values()}
    separate = {}
    for position, value in updated.items():
        if id(value) in seen:
            value = jax.numpy.array(value, copy=True)
        seen.add(id(value))
        separate[position] = value
    return separate
