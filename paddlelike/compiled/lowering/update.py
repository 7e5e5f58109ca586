"""Updates of optimizers for JAX, made from the same rules as for numpy, also for sparse gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from paddlelike.compiled.formulas import stands_for, translate
from paddlelike.compiled.lowerings import Lowering, add_rows, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import SparseRows
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import registry
from paddlelike.ops.update import base, rules, sgd
from paddlelike.ops.update.base import Update
from paddlelike.ops.update.rules import Rows, Step

Gradient: TypeAlias = Array | SparseRows
Results = tuple[Array, ...]
Number: TypeAlias = Array | float


@stands_for(base.require_dense)
def require_dense(type: str, grad: Gradient) -> Array:
    if isinstance(grad, SparseRows):
        raise LoweringError(f"{type}: Grad is sparse")
    return grad


@stands_for(base.read_scalar)
def read_scalar(x: Array) -> Array:
    """Return a number in float64, as the kernels of numpy compute with Python's numbers."""
    return x.reshape(()).astype(jnp.float64)


@stands_for(base.norm)
def norm(x: Array) -> Array:
    return read_scalar(jnp.sqrt(jnp.vdot(x, x)))


@stands_for(base.choose)
def choose(condition: Array, value: Number, other: Number) -> Array:
    return jnp.where(condition, value, other)


@stands_for(rules.is_empty_sparse)
def is_empty_sparse(grad: Gradient) -> bool:
    return isinstance(grad, SparseRows) and not grad.rows.shape[0]


class _Held:
    """A sparse gradient in an update rule, plus an optional dense array: ``g + x``.

    Sums and products are computed only for these rows, and added to the array at the end; no second array
    is allocated.
    """

    def __init__(self, rows: Array, values: Array, behind: Array | None = None) -> None:
        self.rows, self.values, self._behind = rows, values, behind

    def __mul__(self, other: _Held | Number) -> _Held:
        behind = None if self._behind is None else self._behind * other
        return _Held(self.rows, self.values * self.take(other), behind)

    def __truediv__(self, other: Number) -> _Held:
        return _Held(self.rows, self.values / self.take(other))

    def __add__(self, other: Array) -> _Held:
        return _Held(self.rows, self.values, other)

    def __radd__(self, other: Array) -> Array:
        return other.at[self.rows].add(self.values, mode="drop")

    def __rsub__(self, other: Array) -> Array:
        other = other if self._behind is None else other - self._behind
        return other.at[self.rows].add(-self.values, mode="drop")

    __rmul__ = __mul__

    def take(self, other: _Held | Number) -> Number:
        """Return an operand for these rows: rows of an array, values of a sparse gradient, or a number."""
        if isinstance(other, _Held):
            return other.values
        if not isinstance(other, Array) or other.ndim == 0:
            return other
        return other.at[self.rows].get(mode="clip")


@stands_for(rules.apply)
def apply(
    step: Step, param: Array, grad: Gradient, *state: Array, rows: Rows = Rows.ZEROS, awake: None = None
) -> Results:
    """Return a parameter and its state after a step.

    With a sparse gradient that leaves other rows unchanged, the cost of a step does not depend on the height
    of the table. If other rows count as zeros instead, a gradient with many rows is made dense, which takes
    one pass over a tall table to fill it and two to read it.
    """
    function = translate(step.rule.function)
    numbers = [number.astype(param.dtype) if isinstance(number, Array) else number for number in step.numbers]

    def compute(grad: Array | _Held, param: Array, *state: Number) -> Results:
        found = function(param, grad, *state, *numbers, **step.flags)
        return found if isinstance(found, tuple) else (found,)

    arrays = (param, *state)
    if not isinstance(grad, SparseRows):
        return compute(grad, *arrays)
    if rows is not Rows.KEPT and not grad.has_few_rows:
        return compute(grad.to_dense(), *arrays)
    if not step.rule.is_linear:
        grad = grad.merge()
    held = _Held(grad.rows, grad.values)
    if rows is not Rows.KEPT or step.rule.is_linear:
        return compute(held, *arrays)
    new = compute(held.values, *(held.take(one) for one in arrays))
    return tuple(one.at[held.rows].set(each, mode="drop") for one, each in zip(arrays, new, strict=True))


@stands_for(sgd.draw_noise)
def draw_noise(ctx: OpContext, param: Array, attrs: sgd.DpsgdAttrs) -> Array:
    share = attrs.sigma / attrs.batch_size
    if follows_fluid("dpsgd_noise"):  # all elements share one noise
        noise = ctx.draw(attrs.seed, (1,), np.float64, lambda random, _: np.array([sgd.draw_normal(random)]))
        return jnp.full_like(param, share * noise)
    return ctx.draw(
        attrs.seed,
        param.shape,
        param.dtype,
        lambda random, count: random.gaussian((count,), 0.0, share, param.dtype),
    )


def _update(ctx: OpContext, args: list[Any], cls: type[Update], given: Mapping[str, Any]) -> object:
    """Return the results of an update: run its kernel with this module's functions in place of numpy's."""
    keywords = cls.make_forward_keywords(given)
    if cls.list_copied(ctx.op.inputs, ctx.op.outputs):
        keywords |= cls.keywords_of_copies
    inputs = {slot.name: value for slot, value in zip(cls.input_slots, args, strict=True)}
    if not cls.elements:
        found = translate(cls.forward)(*([ctx] if cls.context else []), *args, **keywords)
    else:
        as_dense = id(ctx.op) in ctx.plan.row_updates
        found = translate(cls.run)(args, keywords, as_dense=as_dense)
        if as_dense and cls.rows is Rows.KEPT and isinstance(inputs["Grad"], SparseRows):
            found = _spoil_others(found, inputs["Grad"], inputs["LearningRate"])
    results = found if isinstance(found, tuple) else (found,)
    old = (inputs[cls.inplace[slot.name]] for slot in cls.output_slots)
    cast = [None if was is None else new.astype(was.dtype) for new, was in zip(results, old, strict=True)]
    return cast if len(cast) > 1 else cast[0]


def _spoil_others(found: Array | Results, grad: SparseRows, rate: Array) -> Results:
    """Return the updated tables; rows without a gradient become NaN where a dense gradient would make them
    NaN.

    With an infinite or NaN learning rate, ``0 * lr`` is NaN. A loop of at most one step is used because a
    conditional would copy the table.
    """
    param, *state = found if isinstance(found, tuple) else (found,)

    def spoil(state: tuple[Array, Array]) -> tuple[Array, Array]:
        others = jnp.ones(grad.height, bool).at[grad.rows].set(False, mode="drop")
        others = others.reshape(-1, *[1] * (param.ndim - 1))
        return jnp.zeros((), bool), jnp.where(others, jnp.nan, state[1]).astype(param.dtype)

    lr = rate.reshape(()).astype(param.dtype)
    return lax.while_loop(lambda state: state[0], spoil, (~jnp.isfinite(lr), param))[1], *state


@lowers("average_accumulates")
def average_accumulates(
    param: Array, sum_1: Array, sum_2: Array, sum_3: Array, accumulated: Array,
    old_accumulated: Array, updates: Array,
    *, average_window: float, max_average_window: int, min_average_window: int,
) -> Results:  # fmt: skip
    accumulated, updates = accumulated + 1, updates + 1
    sum_1 = sum_1 + param
    count, done = updates.reshape(()), accumulated.reshape(())
    full = count % 16384 == 0
    sum_2 = jnp.where(full, sum_2 + sum_1, sum_2)
    sum_1 = jnp.where(full, 0, sum_1)
    longest = jnp.minimum(max_average_window, (count * average_window).astype(jnp.int64))
    ends = done >= jnp.maximum(min_average_window, longest)
    sum_3 = jnp.where(ends, sum_1 + sum_2, sum_3)
    old_accumulated = jnp.where(ends, accumulated, old_accumulated)
    sum_1, sum_2, accumulated = (jnp.where(ends, 0, x) for x in (sum_1, sum_2, accumulated))
    return sum_1, sum_2, sum_3, accumulated, old_accumulated, updates


_BY_RULE = {type for type, cls in registry.all_ops().items() if issubclass(cls, Update)} - {
    "average_accumulates"
}
add_rows(_BY_RULE - {"dpsgd"}, Lowering(_update))
add_rows(["dpsgd"], Lowering(_update, draws=True))
