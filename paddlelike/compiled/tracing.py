"""Trace the operators of a piece of a program: what ``jax.jit`` is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.plan import CompiledPlan
from paddlelike.compiled.refusals import LoweringError, RefusedError
from paddlelike.compiled.table import Lowering, find_forward, find_lowering, is_row_by_row
from paddlelike.compiled.values import Packed, SparseRows
from paddlelike.core.dtypes import AttrType
from paddlelike.core.random import Generator
from paddlelike.core.tensor import LoD
from paddlelike.executor.plans.frame import Step
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.opdef import GRAD, OpDef, registry

__all__ = ["Draw", "OpContext", "Trace"]


class Draw(NamedTuple):
    """Random values that the host draws before a piece runs."""

    seed: int  # 0: from the scope's generator
    shape: tuple[int, ...]
    dtype: Any
    sample: Callable[[Generator, int], np.ndarray[Any, Any]]  # of a count of values
    rows_of: int | None = None  # the position of sequences whose rows are counted; None: all of the shape


class _Record(NamedTuple):
    """A forward operator whose derivative is kept for its gradient operator."""

    op: Operator
    args: list[Any]
    results: tuple[Any, ...]
    pull: Callable[[Any], Any]  # from the gradients of the floating-point results to those of the inputs


class OpContext:
    """What a lowering sees besides its arguments: of the operator, the block and the run."""

    def __init__(self, trace: Trace, op: Operator, rows_of: int | None = None) -> None:
        self.trace = trace
        self.op = op
        self._rows_of = rows_of

    def lod(self, slot: str, index: int = 0) -> LoD:
        """Return no LoD: sequences reach lowerings as Packed values."""
        return []

    read_lod = lod

    def set_lod(self, slot: str, lod: LoD, index: int = 0) -> None:
        """Do nothing."""

    def check(self, holds: Any, message: str) -> None:
        """Have the run refused where ``holds`` is not true everywhere; then no persistable changes."""
        self.trace.checks.append((self.op, message, jnp.all(holds)))

    def draw(
        self,
        seed: int,
        shape: Sequence[int],
        dtype: Any,
        sample: Callable[[Generator, int], np.ndarray[Any, Any]],
    ) -> Any:
        """Return random values that the host draws with Paddle's generator before the piece runs."""
        return self.trace.draw(Draw(seed, tuple(shape), np.dtype(dtype), sample, self._rows_of))

    def with_rows_of(self, x: Packed) -> OpContext:
        """Return a context that draws values for the rows of sequences, not for the unused ones."""
        for position, value in self.trace.given.items():
            if isinstance(value, Packed) and value.offsets[-1] is x.offsets[-1]:
                return OpContext(self.trace, self.op, position)
        raise LoweringError("it draws values for sequences that are computed")

    def find_positions(self, names: Sequence[str], block: int | None = None) -> list[int]:
        """Return the positions of variables, as the operator's block or a sub-block sees them."""
        plan = self.trace.plan
        where = self.op.block if block is None else plan.program.blocks[block]
        return [plan.layout.get_position(where, name) for name in names]

    def run_block(self, index: int, values: Mapping[int, Any]) -> dict[int, Any]:
        """Return the values after the operators of a sub-block ran, by position.

        ``values`` take the place of those around the block.
        """
        inner = Trace(self.trace.plan, self.trace.values | dict(values), None)
        for step in self.trace.plan.blocks[index]:
            inner.run(step, self.trace.index)
        if inner.drawn:
            raise LoweringError("an operator of its block draws random values")
        return inner.values


class Trace:
    """The values of one piece while it is traced.

    Parameters
    ----------
    values
        By position in the plan's layout; changed by :meth:`run`.
    draws
        The random values, in the order of the operators that ask for them; None: collect what they ask for.
    """

    def __init__(self, plan: CompiledPlan, values: dict[int, Any], draws: Sequence[Any] | None) -> None:
        self.plan = plan
        self.values = values
        self.given = dict(values)
        self.index = 0
        self.drawn: list[Draw] = []
        self.checks: list[tuple[Operator, str, Any]] = []
        self._draws = draws
        self._records: list[_Record] = []
        self._packed: dict[int, Packed] = {n: v for n, v in values.items() if isinstance(v, Packed)}

    def draw(self, draw: Draw) -> Any:
        """Return the random values that an operator asks for."""
        self.drawn.append(draw)
        if self._draws is None:
            return jnp.zeros(draw.shape, draw.dtype)
        return self._draws[len(self.drawn) - 1]

    def run(self, step: Step, index: int) -> None:
        """Compute the results of an operator. Raises RefusedError when it cannot be compiled."""
        self.index = index
        op = step.op
        try:
            cls = registry.find_for_version(op.type, self.plan.program.paddle_version)
            row = None if cls is None else find_lowering(cls)
            if cls is None or row is None:
                raise LoweringError(f"operator {op.type!r} has no lowering")
            args = [self._read(position) for position in self.plan.inputs_of[id(op)]]
            if row.by_vjp:
                results = self._run_gradient(op, cls, row, args)
            elif self._has_gradient(op):
                results = self._run_recorded(op, cls, row, args)
            else:
                results = self._call(op, cls, row, args)
            self._store(op, cls, results)
        except RefusedError:
            raise
        except LoweringError as error:
            raise RefusedError(index, str(error)) from error
        except Exception as error:  # of whatever a lowering and JAX raise: numpy's kernel runs it, or refuses
            first = str(error).strip().split("\n")[0]
            raise RefusedError(index, f"{type(error).__name__}: {first}") from error

    def _read(self, position: int | list[int]) -> Any:
        if isinstance(position, list):
            return [self.values.get(one) for one in position]
        return self.values.get(position)

    def _store(self, op: Operator, cls: type[OpDef], results: Any) -> None:
        targets = self.plan.outputs_of[id(op)]
        several = (results,) if len(cls.output_slots) == 1 else results
        for slot, target, result in zip(cls.output_slots, targets, several, strict=True):
            if result is None:
                continue
            pairs: Any = (
                zip(target, result, strict=False) if isinstance(target, list) else ((target, result),)
            )
            for position, value in pairs:
                if position < 0 or value is None:
                    continue
                if position in self.plan.without_dims and not isinstance(value, Packed | SparseRows):
                    value = jnp.reshape(value, ())
                self.values[position] = value
                if isinstance(value, Packed):
                    self._packed[position] = value
                else:
                    self._packed.pop(position, None)
            assert slot is not None

    # One operator

    def _call(self, op: Operator, cls: type[OpDef], row: Lowering, args: list[Any]) -> Any:
        """Return the results of a lowering, one per output slot."""
        ctx = OpContext(self, op)
        packed = [leaf for leaf in _flatten(args) if isinstance(leaf, Packed)]
        if not packed or row.handles_sequences:
            return row.function(ctx, args, cls, op.attrs)
        if not is_row_by_row(cls.type, op.attrs):
            raise LoweringError("its lowering takes no sequences")
        plain = jax.tree_util.tree_map(
            lambda leaf: leaf.rows if isinstance(leaf, Packed) else leaf, args, is_leaf=_is_packed
        )
        size = packed[0].rows.shape[0]
        if any(one.rows.shape[0] != size for one in packed):
            raise LoweringError("its inputs have sequences of different counts of rows")
        results = row.function(ctx, plain, cls, op.attrs)
        several = (results,) if len(cls.output_slots) == 1 else results
        wrapped = tuple(
            _wrap(result, size, packed[0], self._shows(op, cls, slot.name, args))
            if self._is_by_row(cls, slot.name, args)
            else result
            for slot, result in zip(cls.output_slots, several, strict=True)
        )
        return wrapped[0] if len(cls.output_slots) == 1 else wrapped

    def _is_by_row(self, cls: type[OpDef], slot: str, args: list[Any]) -> bool:
        """Return whether an output has the rows of the sequences; a parameter's gradient has not."""
        names = [one.name for one in cls.input_slots]
        base = slot.removesuffix(GRAD)
        if slot.endswith(GRAD) and base in names:
            return any(isinstance(leaf, Packed) for leaf in _flatten(args[names.index(base)]))
        return True

    def _shows(self, op: Operator, cls: type[OpDef], slot: str, args: list[Any]) -> bool:
        source = cls.find_lod_source(slot)
        names = [one.name for one in cls.input_slots]
        if source not in names:
            return False
        leaves = [leaf for leaf in _flatten(args[names.index(source)]) if isinstance(leaf, Packed)]
        return bool(leaves) and leaves[0].shown

    # Gradients

    def _has_gradient(self, op: Operator) -> bool:
        return op.type in self.plan.differentiated

    def _run_recorded(self, op: Operator, cls: type[OpDef], row: Lowering, args: list[Any]) -> Any:
        """Return the results, and keep the derivative for the gradient operator."""
        results, pull = _differentiate(lambda given: self._call(op, cls, row, given), args)
        several = (results,) if len(cls.output_slots) == 1 else tuple(results)
        self._records.append(_Record(op, args, several, pull))
        return results

    def _run_gradient(self, op: Operator, cls: type[OpDef], row: Lowering, args: list[Any]) -> Any:
        """Return the results of ``<type>_grad``: the derivative of the forward operator."""
        base = find_forward(cls)
        assert base is not None
        given = dict(zip((slot.name for slot in cls.input_slots), args, strict=True))
        record = self._find_record(op, base, given)
        if record is None:
            record = self._record_again(op, base, row, given)
        gradients = []
        for slot, value in zip(base.output_slots, record.results, strict=True):
            gradients.append(_fit_gradient(value, given.get(slot.name + GRAD)))
        pulled = dict(
            zip((slot.name + GRAD for slot in base.input_slots), record.pull(gradients), strict=True)
        )
        results = tuple(pulled[slot.name] for slot in cls.output_slots)
        return results[0] if len(results) == 1 else results

    def _find_record(self, op: Operator, base: type[OpDef], given: Mapping[str, Any]) -> _Record | None:
        for record in reversed(self._records):
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
        if missing or row.draws or any(attr.type == AttrType.BLOCK for attr in base.attrs.values()):
            raise LoweringError("its forward operator is not in this piece")
        args = [given.get(slot.name) for slot in base.input_slots]
        results, pull = _differentiate(lambda values: self._call(op, base, row, values), args)
        several = (results,) if len(base.output_slots) == 1 else tuple(results)
        return _Record(op, args, several, pull)


def _belongs(op: Operator, record: _Record, base: type[OpDef], given: Mapping[str, Any]) -> bool:
    """Return whether a gradient operator is that of a recorded one: it was given the same values."""
    for scopes in ("Scope", "step_scopes"):
        if op.input(scopes):
            return op.input(scopes) == record.op.output(scopes)
    for slot, value in zip(base.input_slots, record.args, strict=True):
        if given.get(slot.name) is not None and not _are_same(given[slot.name], value):
            return False
    for slot, value in zip(base.output_slots, record.results, strict=True):
        if given.get(slot.name) is not None and not _are_same(given[slot.name], value):
            return False
        for gradient, name in zip(op.input(slot.name + GRAD), record.op.output(slot.name), strict=False):
            if gradient.partition(GRAD)[0] != name and GRAD in gradient:
                return False
    return True


def _are_same(one: Any, other: Any) -> bool:
    ours, theirs = _flatten_arrays(one), _flatten_arrays(other)
    return len(ours) == len(theirs) and all(a is b for a, b in zip(ours, theirs, strict=True))


def _flatten_arrays(value: Any) -> list[Any]:
    return list(jax.tree_util.tree_leaves(value))


def _flatten(value: Any) -> list[Any]:
    return list(jax.tree_util.tree_leaves(value, is_leaf=_is_packed))


def _is_packed(value: Any) -> bool:
    return isinstance(value, Packed)


def _wrap(result: Any, size: int, like: Packed, shown: bool) -> Any:
    """Return a result as sequences, if it has their rows."""
    if isinstance(result, list):
        return [_wrap(one, size, like, shown) for one in result]
    if isinstance(result, Packed) or result is None or jnp.shape(result)[:1] != (size,):
        return result
    return like.replace(result, shown=shown)


def _differentiate(function: Callable[[list[Any]], Any], args: list[Any]) -> tuple[Any, Callable[[Any], Any]]:
    """Return the results of ``function``, and a function from their gradients to those of ``args``."""
    leaves, tree = jax.tree_util.tree_flatten(args)
    real = [i for i, leaf in enumerate(leaves) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)]

    def compute(*floats: Any) -> tuple[list[Any], Any]:
        given = list(leaves)
        for index, value in zip(real, floats, strict=True):
            given[index] = value
        found = function(jax.tree_util.tree_unflatten(tree, given))
        flat, shape = jax.tree_util.tree_flatten(found)
        is_real = [jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in flat]
        kept = [leaf for leaf, yes in zip(flat, is_real, strict=True) if yes]
        return kept, (
            _Known((shape, tuple(is_real))),
            [x for x, yes in zip(flat, is_real, strict=True) if not yes],
        )

    outs, pull, (known, others) = jax.vjp(compute, *[leaves[i] for i in real], has_aux=True)
    shape, is_real = known.value
    reals, rest = iter(outs), iter(others)
    flat = [next(reals) if yes else next(rest) for yes in is_real]
    results = jax.tree_util.tree_unflatten(shape, flat)

    def pull_back(gradients: list[Any]) -> list[Any]:
        given = jax.tree_util.tree_leaves(gradients)
        found = iter(pull([g for g, yes in zip(given, is_real, strict=True) if yes]))
        back = [next(found) if i in real else None for i in range(len(leaves))]
        return _put_back(args, iter(back))

    return results, pull_back


@jax.tree_util.register_static
class _Known:
    """What is known while a program is traced, passed through a function of JAX."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self.value == other.value


def _put_back(args: Any, gradients: Any) -> Any:
    """Return gradients in the form of ``args``."""
    if isinstance(args, list):
        return [_put_back(one, gradients) for one in args]
    if args is None:
        return None
    if isinstance(args, Packed):
        rows = next(gradients)
        for _ in args.offsets:
            next(gradients)
        return None if rows is None else args.replace(rows, shown=False)
    if isinstance(args, SparseRows):
        raise LoweringError("sparse rows have no gradient")
    return next(gradients)


def _fit_gradient(value: Any, gradient: Any) -> Any:
    """Return the gradient of a result in the result's own form; zeros where there is none."""
    if value is None:
        return None
    if isinstance(value, list):
        given = gradient if isinstance(gradient, list) else [None] * len(value)
        return [_fit_gradient(one, other) for one, other in zip(value, given, strict=True)]
    if isinstance(value, Packed):
        rows = gradient.rows if isinstance(gradient, Packed) else gradient
        if rows is not None and rows.shape[0] < value.rows.shape[0]:  # without the unused rows
            missing = value.rows.shape[0] - rows.shape[0]
            rows = jnp.concatenate([rows, jnp.zeros((missing, *rows.shape[1:]), rows.dtype)])
        return value.replace(jnp.zeros_like(value.rows) if rows is None else rows.astype(value.rows.dtype))
    if isinstance(gradient, Packed):
        gradient = gradient.rows
    return jnp.zeros_like(value) if gradient is None else gradient.astype(value.dtype).reshape(value.shape)
