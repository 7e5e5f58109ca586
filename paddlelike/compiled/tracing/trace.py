"""Trace the operators of a piece of a program for ``jax.jit``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.lowerings import (
    Lowering,
    find_across_rows,
    find_forward,
    find_lowering,
    knows_no_lod,
)
from paddlelike.compiled.packing import LoweringError, RefusedError
from paddlelike.compiled.pieces.piece_plan import CompiledPlan
from paddlelike.compiled.tracing.constants import evaluate, runs_block
from paddlelike.compiled.tracing.context import Bound, OpContext
from paddlelike.compiled.tracing.derivatives import differentiate, fit_gradient
from paddlelike.compiled.tracing.draws import Draw, DrawLoop, find_shapes
from paddlelike.compiled.tracing.matching import cut_gradients, match_rows
from paddlelike.compiled.tracing.rows import call_with_rows, find_packed, to_rows, wrap_rows
from paddlelike.compiled.tracing.sizes import KnownSizes
from paddlelike.compiled.values import Packed
from paddlelike.executor.plans.frame import Step
from paddlelike.framework import Operator
from paddlelike.framework.opdef import GRAD, RECOMPUTED, OpDef, registry


class _Record(NamedTuple):
    """A forward operator whose derivative is kept for its gradient operator."""

    op: Operator
    args: list[Any]
    results: tuple[Any, ...]
    pull: Callable[[Any], Any]  # from the gradients of the floating-point results to those of the inputs


class Trace:
    """The values of one piece while it is traced.

    Parameters
    ----------
    values
        The values by position in the plan's layout; :meth:`run` changes them.
    draws
        The random values, in the order of the operators that draw them. None collects the draws.
    """

    def __init__(self, plan: CompiledPlan, values: dict[int, Any], draws: Sequence[Any] | None) -> None:
        self.plan = plan
        self.values = values
        self.given = dict(values)
        self.index = 0
        self.root = self
        self.step: Any = None  # the index of the step of the loop around
        self.drawn: list[Draw | DrawLoop] = []
        self.checks: list[tuple[Operator, str, Any]] = []
        self.bounds: dict[int, Bound] = {}  # of numbers, by position
        self.noted_bounds: dict[int, Bound] = {}  # by output slot of the operator that is being traced
        self.capacities: dict[int, int] = {}  # of arrays that a loop writes, by position
        self.sizes: KnownSizes = {}  # values that the host knows already
        self.seeds: dict[int, int] = {}  # by position of a number that the host draws, the index of its draw
        self._draws = draws
        self._records: dict[Any, list[_Record]] = {}  # see _find_key
        self.counts: list[tuple[Any, Any]] = []  # offsets, and the host's count of the used rows

    def enter(
        self,
        values: Mapping[int, Any],
        *,
        draws: Sequence[Any] | None = None,
        step: Any = None,
        capacities: Mapping[int, int] | None = None,
    ) -> Trace:
        """Return the trace of an inner block; ``values`` replace some values of this trace.

        ``step`` is the index of the step if the block belongs to a loop.
        """
        inner = Trace(self.plan, self.values | dict(values), draws)
        inner.index, inner.root = self.index, self.root
        inner.step = self.step if step is None else step
        inner.bounds = dict(self.bounds)
        inner.capacities = self.capacities | dict(capacities or {})
        return inner

    def draw(self, draw: Draw | DrawLoop) -> Any:
        """Return the random values of an operator, or of the block of a loop."""
        self.drawn.append(draw)
        if self._draws is None:
            return jax.tree_util.tree_map(lambda one: jnp.zeros(one.shape, one.dtype), find_shapes(draw))
        return self._draws[len(self.drawn) - 1]

    def run(self, step: Step, index: int) -> None:
        """Compute the results of an operator. Raises RefusedError when it cannot be compiled."""
        self.index = index
        op = step.op
        self.values.update(self.sizes.get(index, {}))
        try:
            cls = registry.find_for_version(op.type, self.plan.program.paddle_version)
            results: Any
            row = None if cls is None else find_lowering(cls)
            if cls is None or row is None:
                raise LoweringError(f"operator {op.type!r} has no lowering")
            args = [self._read(position) for position in self.plan.inputs_of[id(op)]]
            constants = evaluate(op, cls, args)
            if constants is not None:
                results = constants
            elif row.by_vjp:
                results = self._run_gradient(op, cls, row, args)
            elif self._has_gradient(op, cls):
                results = self._run_recorded(op, cls, row, args)
            else:
                results = self._call(op, cls, row, args)
            self._store(op, cls, self._show_gradients(op, cls, results, args))
        except RefusedError:
            raise
        except LoweringError as error:
            raise RefusedError(index, self._locate(op, str(error))) from error
        except Exception as error:  # any error of a lowering or JAX: numpy's kernel runs it, or refuses
            reason = "it needs numbers before the run that only the run computes"
            if not isinstance(error, jax.errors.ConcretizationTypeError):
                first = str(error).strip().split("\n")[0]
                reason = f"its lowering does not take these inputs ({type(error).__name__}: {first})"
            raise RefusedError(index, self._locate(op, reason)) from error

    def _locate(self, op: Operator, reason: str) -> str:
        """Return the reason of a refusal; inside a block it names the operator that cannot be compiled."""
        return reason if self.root is self else f"{op.type!r} in its block: {reason}"

    def _read(self, position: int | list[int]) -> Any:
        if isinstance(position, list):
            return [self.values.get(one) for one in position]
        return self.values.get(position)

    def _store(self, op: Operator, cls: type[OpDef], results: Any) -> None:
        targets = self.plan.outputs_of[id(op)]
        several = (results,) if len(cls.output_slots) == 1 else results
        noted, self.noted_bounds = self.noted_bounds, {}
        for slot, (target, result) in enumerate(zip(targets, several, strict=True)):
            if result is None:
                continue
            pairs: Any = (
                zip(target, result, strict=False) if isinstance(target, list) else ((target, result),)
            )
            for position, value in pairs:
                if position < 0 or value is None:
                    continue
                if position in self.plan.without_dims and isinstance(value, Array | np.ndarray):
                    value = value.reshape(())
                self.values[position] = value
                self.bounds.pop(position, None)
                if slot in noted:
                    self.bounds[position] = noted[slot]

    # One operator

    def _call(self, op: Operator, cls: type[OpDef], row: Lowering, args: list[Any]) -> object:
        """Return the results of a lowering, one per output slot."""
        ctx = OpContext(self, op)
        if not row.takes_constants:
            args = [_to_device(arg) for arg in args]
        if not row.handles_sequences and cls.type.endswith("_grad"):
            args = cut_gradients(ctx, cls, args)
        packed = find_packed(args)
        if not packed or row.handles_sequences:
            return row.function(ctx, args, cls, op.attrs)
        if not cls.is_row_by_row(op.attrs):
            if all(one.full for one in packed) and knows_no_lod(cls):
                return call_with_rows(ctx, cls, row, args)
            across = find_across_rows(cls)
            if across is None:
                raise LoweringError("its lowering takes no sequences")
            return across.function(ctx, args, cls, op.attrs)
        plain = to_rows(args)
        size = packed[0].rows.shape[0]
        plain = match_rows(ctx, cls, plain, packed[0])
        if any(one.rows.shape[0] != size or bool(one.offsets) != bool(packed[0].offsets) for one in packed):
            raise LoweringError("its inputs have sequences of different numbers of rows")
        results = row.function(ctx, plain, cls, op.attrs)
        several = (results,) if len(cls.output_slots) == 1 else results
        if cls.type == "reshape2" and several[0].shape[0] != size:
            if packed[0].full:
                return results
            raise LoweringError("it changes the number of rows of sequences")
        wrapped = tuple(
            wrap_rows(result, size, packed[0], self._shows(op, cls, slot.name, args))
            if self._is_by_row(cls, slot.name, args)
            else self._cut(result, cls, slot.name, args)
            for slot, result in zip(cls.output_slots, several, strict=True)
        )
        return wrapped[0] if len(cls.output_slots) == 1 else wrapped

    def _is_by_row(self, cls: type[OpDef], slot: str, args: list[Any]) -> bool:
        """Return whether an output has one row per row of the sequences, unlike a parameter's gradient."""
        names = [one.name for one in cls.input_slots]
        base = slot.removesuffix(GRAD)
        if slot.endswith(GRAD) and base in names:
            return bool(find_packed(args[names.index(base)]))
        return True

    def _cut(self, result: Any, cls: type[OpDef], slot: str, args: list[Any]) -> Any:
        """Return the gradient for an array that was matched to sequences, without the added rows."""
        names = [one.name for one in cls.input_slots]
        base = slot.removesuffix(GRAD)
        like = args[names.index(base)] if slot.endswith(GRAD) and base in names else None
        if isinstance(result, Array) and isinstance(like, Array) and result.shape != like.shape:
            return result[: like.shape[0]]
        return result

    def _shows(self, op: Operator, cls: type[OpDef], slot: str, args: list[Any]) -> bool:
        source = cls.find_lod_source(slot)
        if source is None and cls.lods_only and cls.forward_of is None:
            source = "X"  # the kernel passes its LoD on
        names = [one.name for one in cls.input_slots]
        if source not in names:
            return False
        leaves = find_packed(args[names.index(source)])
        return bool(leaves) and leaves[0].shown

    # Gradients

    def _show_gradients(self, op: Operator, cls: type[OpDef], results: Any, args: list[Any]) -> object:
        """Return the results of a gradient operator with the same LoDs as numpy's kernel."""
        if cls.forward_of is None or not find_packed(args):
            return results
        several = (results,) if len(cls.output_slots) == 1 else tuple(results)
        shown = tuple(
            result.replace(result.rows, shown=True)
            if isinstance(result, Packed) and result.offsets and self._shows(op, cls, slot.name, args)
            else result
            for slot, result in zip(cls.output_slots, several, strict=True)
        )
        return shown[0] if len(cls.output_slots) == 1 else shown

    def _has_gradient(self, op: Operator, cls: type[OpDef]) -> bool:
        return self.root is self and op.type in self.plan.differentiated and not runs_block(cls)

    def _run_recorded(self, op: Operator, cls: type[OpDef], row: Lowering, args: list[Any]) -> object:
        """Return the results, and keep the derivative for the gradient operator."""
        results, pull = self._differentiate(op, cls, row, args)
        several = (results,) if len(cls.output_slots) == 1 else tuple(results)
        record = _Record(op, args, several, pull)
        for key in (None, *enumerate(map(_get_original, op.output(cls.output_slots[0].name)))):
            self._records.setdefault((op.type, key), []).append(record)
        return results

    def _differentiate(
        self, op: Operator, cls: type[OpDef], row: Lowering, args: list[Any]
    ) -> tuple[Any, Callable[[Any], Any]]:
        """Return the results of an operator and the derivative; record its checks in this trace."""
        before = self.checks
        asked: list[tuple[Operator, str]] = []

        def call(given: list[Any]) -> Any:
            self.checks = []
            results = self._call(op, cls, row, given)
            asked[:] = [(op, message) for op, message, _ in self.checks]
            return results, [holds for _, _, holds in self.checks]

        (results, held), pull = differentiate(call, args)
        self.checks = [*before, *((op, text, holds) for (op, text), holds in zip(asked, held, strict=True))]
        return results, lambda gradients: pull((gradients, held))

    def _run_gradient(self, op: Operator, cls: type[OpDef], row: Lowering, args: list[Any]) -> object:
        """Return the results of ``<type>_grad``: the derivative of the forward operator."""
        base = find_forward(cls)
        assert base is not None
        given = dict(zip((slot.name for slot in cls.input_slots), args, strict=True))
        record = self._find_record(op, base, given)
        if record is None:
            record = self._record_again(op, base, row, given)
        gradients = []
        for slot, value in zip(base.output_slots, record.results, strict=True):
            gradients.append(fit_gradient(value, given.get(slot.name + GRAD)))
        pulled = dict(
            zip((slot.name + GRAD for slot in base.input_slots), record.pull(gradients), strict=True)
        )
        results = tuple(pulled[slot.name] for slot in cls.output_slots)
        return results[0] if len(results) == 1 else results

    def _find_record(self, op: Operator, base: type[OpDef], given: Mapping[str, Any]) -> _Record | None:
        for record in reversed(self._records.get(_find_key(op, base), ())):
            if record.op.type == base.type and _belongs(op, record, base, given):
                return record
        return None

    def _record_again(
        self, op: Operator, base: type[OpDef], row: Lowering, given: Mapping[str, Any]
    ) -> _Record:
        """Compute the forward operator once more: it is in another piece."""
        if row.without and not op.attrs.get("is_test"):
            given = dict(given)
            for slot, like in row.without.items():
                if given.get(slot) is None and given.get(like) is not None:
                    given[slot] = jnp.zeros_like(given[like])
        missing = [
            slot.name for slot in base.input_slots if given.get(slot.name) is None and not slot.optional
        ]
        if missing or row.draws:
            raise LoweringError("its forward operator is not in this piece")
        args = [given.get(slot.name) for slot in base.input_slots]
        before = list(self.checks)
        results, pull = self._differentiate(op, base, row._replace(by_vjp=False), args)
        self.checks = before  # the forward operator has them
        several = (results,) if len(base.output_slots) == 1 else tuple(results)
        return _Record(op, args, several, pull)


def _find_key(op: Operator, base: type[OpDef]) -> object:
    """Return the key of the forward operator's record for a gradient operator.

    The key is the first result with a gradient, so that look-ups are fast with thousands of operators of one
    type. None replaces the result if no gradient is called ``<name>@GRAD``.
    """
    for i, name in enumerate(op.input(base.output_slots[0].name + GRAD)):
        if GRAD in name:
            return base.type, (i, name.partition(GRAD)[0])
    return base.type, None


def _belongs(op: Operator, record: _Record, base: type[OpDef], given: Mapping[str, Any]) -> bool:
    """Return whether a gradient operator belongs to a recorded operator, as both have the same inputs."""
    for slot, value in zip(base.input_slots, record.args, strict=True):
        if given.get(slot.name) is not None and not _are_same(given[slot.name], value):
            return False
    for slot, value in zip(base.output_slots, record.results, strict=True):
        if given.get(slot.name) is not None and not _are_same(given[slot.name], value):
            return False
        for gradient, name in zip(op.input(slot.name + GRAD), record.op.output(slot.name), strict=False):
            if gradient.partition(GRAD)[0] != _get_original(name) and GRAD in gradient:
                return False
    return True


def _get_original(name: str) -> str:
    """Return the name of the original of a recomputed variable; both share one gradient."""
    return name.partition(RECOMPUTED)[0]


def _are_same(one: Any, other: Any) -> bool:
    ours, theirs = jax.tree_util.tree_leaves(one), jax.tree_util.tree_leaves(other)
    return len(ours) == len(theirs) and all(a is b for a, b in zip(ours, theirs, strict=True))


def _to_device(arg: Any) -> object:
    """Return an argument with its constants converted to arrays of JAX."""
    if isinstance(arg, list):
        return [_to_device(one) for one in arg]
    return jnp.asarray(arg) if isinstance(arg, np.ndarray) else arg
