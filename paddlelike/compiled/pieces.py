"""A piece: consecutive operators of a program that run as one XLA computation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.arrays import Ranks, SavedSteps, TensorArray
from paddlelike.compiled.backend import settings
from paddlelike.compiled.demands import draws_values, find_shapes_kept, pads_to_longest
from paddlelike.compiled.plan import CompiledPlan
from paddlelike.compiled.refusals import RefusedError, Uncovered
from paddlelike.compiled.tracing.checks import compile_check
from paddlelike.compiled.tracing.draws import Draw, DrawLoop, draw_all, find_shapes
from paddlelike.compiled.tracing.trace import Trace
from paddlelike.compiled.values import Packed, SparseRows, find_array_type, pack
from paddlelike.core.tensor import LoD, LoDTensor, SelectedRows
from paddlelike.errors import OperatorError
from paddlelike.executor.explanations import format_line
from paddlelike.executor.plans.frame import Frame
from paddlelike.framework.graph.operator import Operator

__all__ = ["Piece"]

_MOST: Final = 10  # compilations of one piece before the warning
Signature = tuple[Any, ...]


class _Executable(NamedTuple):
    """A compiled piece for one choice of shapes."""

    run: Any
    draws: list[Draw | DrawLoop]
    checks: list[tuple[Operator, str]]  # by index in the second result, whether they hold
    check_first: Any  # computes the second result beforehand, where that is quick

    def require(self, checked: Any) -> None:
        """Raise OperatorError for the first check that does not hold, RefusedError if numpy has to run it."""
        if not self.checks or (held := np.asarray(checked)).all():
            return
        op, message = self.checks[int(np.argmin(held))]
        if isinstance(message, Uncovered):
            raise RefusedError(message.step, message)
        raise OperatorError(
            f"operator {op.type!r} -> {op.output_arg_names} failed: {message}{format_line(op)}",
            hint="the executor of numpy names the element: fluid.set_flags({'FLAGS_backend': 'numpy'})",
        )


class Piece:
    """The steps ``start`` to ``stop`` of a plan.

    Attributes
    ----------
    compilations : int
        How often it was compiled: once for each choice of shapes.
    seconds : float
        The time that took.
    """

    def __init__(self, plan: CompiledPlan, start: int, stop: int, device: Any) -> None:
        self.plan = plan
        self.start, self.stop = start, stop
        self.compilations = 0
        self.seconds = 0.0
        self._device = device
        self._executables: dict[Signature, _Executable] = {}
        self._shapes: dict[int, set[Any]] = {}
        written: set[int] = set()
        self._first_reader: dict[int, int] = {}
        for index in range(start, stop):
            for position in plan.reads[index] - written:
                self._first_reader.setdefault(position, index)
            written |= plan.writes[index]
        kept = plan.layout.persistables.keys()
        needed = plan.needed_after[stop - 1]
        self._outputs = sorted(written & (needed | kept))
        self._updated = written & kept & self._first_reader.keys()
        self._dying = [n for n in self._first_reader if n not in needed and n not in kept]
        self._array_type = find_array_type()
        self._shapes_of = dict(find_shapes_kept(plan, start, stop))
        # On a CPU the arrays of a run need no copies.
        self._reads_memory = device.platform == "cpu"
        self._pads = any(pads_to_longest(plan.steps[index].op) for index in range(start, stop))
        self._may_draw = any(draws_values(plan, plan.steps[index].op) for index in range(start, stop))

    def __len__(self) -> int:
        return self.stop - self.start

    def run(self, frame: Frame) -> None:
        """Run the piece on the values of a frame. Raises RefusedError; then nothing has changed."""
        updated, kept = self._collect(frame)
        executable = self._find_executable(updated, kept)
        generator = frame.scope.generator
        before = generator.state
        draws = draw_all(executable.draws, generator, kept)
        updated = _separate(updated, kept)
        try:
            if executable.check_first is not None:
                flat = jax.tree_util.tree_leaves((updated, kept, draws))
                executable.require(executable.check_first(flat))
            results, checked, *replaced = executable.run(updated, kept, draws)
            if self._reads_memory:
                jax.block_until_ready((results, checked))  # before anybody writes into the memory it reads
            if executable.check_first is None and executable.checks:
                old = {n: results[n] for n in updated.keys() & results.keys()}
                self._require(frame, executable, checked, old | replaced[0])
        except RefusedError:
            generator.state = before  # numpy draws the same numbers again
            raise
        self._store(frame, results)

    def _require(self, frame: Frame, executable: _Executable, checked: Any, old: Mapping[int, Any]) -> None:
        """Raise for the first check that does not hold; then persistables have their old values."""
        try:
            executable.require(checked)
        except (RefusedError, OperatorError):
            for position, value in old.items():
                self._store_one(frame, position, value)
            raise

    # Inputs

    def _collect(self, frame: Frame) -> tuple[dict[int, Any], dict[int, Any]]:
        """Return the inputs: those on the device that the piece overwrites, and the others."""
        updated: dict[int, Any] = {}
        kept: dict[int, Any] = {}
        values, lods, overwritten = frame.values, frame.lods, self._updated
        array_type, size = self._array_type, len(values)
        sequences: dict[int, tuple[np.ndarray[Any, Any], LoD]] = {}
        for position, reader in self._first_reader.items():
            value = values[position] if position < size else None
            if value is None:
                continue
            if lods and lods.get(position) and isinstance(value, np.ndarray | jax.Array):
                self._check_dtype(value, reader)
                sequences[position] = np.asarray(value), lods[position]
                continue
            if type(value) is not array_type:
                value = self._upload(frame, position, value, reader)
            if position in overwritten and type(value) is array_type:
                updated[position] = value
            else:
                kept[position] = value
        if sequences:
            kept |= self._pack(sequences)
        return updated, kept

    def _pack(self, sequences: Mapping[int, tuple[np.ndarray[Any, Any], LoD]]) -> dict[int, Packed]:
        """Return sequences with padding.

        Those whose rows are alike, as the words of a question and of its answers, take the size of the
        largest: with a size for each, nearly every batch would be another choice of sizes to compile.
        Sequences of one row each, as the ids of a click, are just these rows, and go with arrays of as many.
        """
        sizes: dict[Any, tuple[int, int]] = {}
        single = {
            n for n, (rows, lod) in sequences.items() if len(rows) and bool((np.diff(lod[-1]) == 1).all())
        }
        for n, (rows, lod) in sequences.items():
            if n in single:
                continue
            most, longest = sizes.get((rows.shape[1:], rows.dtype), (0, 0))
            longest = max(longest, int(np.diff(lod[-1]).max(initial=1)))
            sizes[rows.shape[1:], rows.dtype] = max(most, len(rows)), longest
        gradients = self.plan.gradients
        return {
            n: pack(
                rows,
                lod,
                is_gradient=n in gradients,
                least=sizes.get((rows.shape[1:], rows.dtype), (0, 0)),
                exact=self._pads,
                unused=n not in single,
            )
            for n, (rows, lod) in sequences.items()
        }

    @staticmethod
    def _check_dtype(value: Any, reader: int) -> None:
        if value.dtype.kind not in "fiub":
            raise RefusedError(reader, f"it reads an array of {value.dtype}")

    def _upload(self, frame: Frame, position: int, value: Any, reader: int) -> Any:
        if isinstance(value, SelectedRows):
            if value.array is None:
                raise RefusedError(reader, "it reads a SelectedRows that holds nothing yet")
            return SparseRows(value.row_array, value.array, value.height())
        if not isinstance(value, np.ndarray):
            raise RefusedError(reader, f"it reads a {type(value).__name__}")
        self._check_dtype(value, reader)
        holder = frame.holders.get(position)
        if self._reads_memory and holder is None:
            return value  # as it is; XLA copies it where its memory is not aligned
        array = jax.device_put(value, self._device, may_alias=False)
        if holder is not None and isinstance(holder.value, LoDTensor) and position not in self._updated:
            holder.value.keep_on_device(array)
        return array

    # Compiling

    def _find_executable(self, updated: dict[int, Any], kept: dict[int, Any]) -> _Executable:
        signature = (_describe(updated), _describe(kept))
        found = self._executables.get(signature)
        if found is None:
            begin = time.perf_counter()
            with settings(self._device):
                found = self._executables[signature] = self._compile(updated, kept)
            self.seconds += time.perf_counter() - begin
            self.compilations += 1
            self._note_shapes({**updated, **kept})
        return found

    def _compile(self, updated: dict[int, Any], kept: dict[int, Any]) -> _Executable:
        drawn: list[Draw | DrawLoop] = []
        checks: list[tuple[Operator, str]] = []

        def compute(updated: dict[int, Any], kept: dict[int, Any], draws: Sequence[Any] | None) -> Any:
            trace = Trace(self.plan, {**updated, **kept}, draws)
            for index in range(self.start, self.stop):
                trace.run(self.plan.steps[index], index)
            drawn[:] = trace.drawn
            checks[:] = [(op, message) for op, message, _ in trace.checks]
            found = {n: trace.values[n] for n in self._outputs if trace.values.get(n) is not None}
            found = {n: value for n, value in found.items() if not isinstance(value, SavedSteps)}
            for n, source in self._shapes_of.items():
                x = trace.values.get(source)
                if n in found and isinstance(x, Packed) and found[n].shape[1:] == x.rows.shape:
                    found[n] = x.replace(x.rows[:, None][:, :0], shown=False)
            return found, jnp.stack([holds for _, _, holds in trace.checks]) if checks else None

        def keep_unless_checked(updated: dict[int, Any], kept: dict[int, Any], draws: Sequence[Any]) -> Any:
            """Return the results, with old persistables if a check fails; apart those of another shape."""
            found, held = compute(updated, kept, draws)
            before = {}
            for position in updated.keys() & found.keys():
                old, new = updated[position], found[position]
                if _describe_one(old) == _describe_one(new):
                    found[position] = jnp.where(held.all(), new, old)
                else:  # as the table of `auc` after the first step
                    before[position] = old
            return found, held, before

        shapes = jax.tree_util.tree_map(_shape_of, (updated, kept))
        if self._may_draw:
            jax.eval_shape(lambda a, b: compute(a, b, None), *shapes)
        asked = list(drawn)
        draws = [find_shapes(draw) for draw in asked]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Some donated buffers were not usable")
            traced = jax.jit(compute, donate_argnums=0).trace(*shapes, draws)
            # A choice between old and new arrays keeps both: a copy of every table that is updated by rows.
            check_first = compile_check(traced.jaxpr) if checks else None
            if checks and check_first is None:
                traced = jax.jit(keep_unless_checked, donate_argnums=0).trace(*shapes, draws)
            return _Executable(traced.lower().compile(), asked, checks, check_first)

    def _note_shapes(self, values: Mapping[int, Any]) -> None:
        """Warn, at the tenth compilation, which feeds come in ever other shapes."""
        for name, fed in self.plan.fed.items():
            if fed.position in values:
                self._shapes.setdefault(fed.position, set()).add(_describe({0: values[fed.position]}))
            if self.compilations == _MOST and len(self._shapes.get(fed.position, ())) > 1:
                count = len(self._shapes[fed.position])
                warnings.warn(
                    f"a program was compiled {_MOST} times, because the feed {name!r} came in {count} "
                    "shapes; every new shape costs a compilation. Feed batches of one size, or sequences "
                    "with a LoD",
                    UserWarning,
                    stacklevel=8,
                )

    # Outputs

    def _store(self, frame: Frame, results: Mapping[int, Any]) -> None:
        for position in self._dying:
            frame.values[position] = None
        for position, value in results.items():
            self._store_one(frame, position, value)

    def _store_one(self, frame: Frame, position: int, value: Any) -> None:
        lods = frame.lods
        if lods:
            lods.pop(position, None)
        on_device = type(value) is self._array_type
        if isinstance(value, TensorArray | Ranks):
            frame.values[position] = value.to_host()
            return
        if isinstance(value, Packed):
            lod = [[int(n) for n in np.asarray(level)] for level in value.offsets]
            if value.shown and lod:
                lods[position] = lod
            value = value.rows[: int(value.total)]
            on_device = True
            if position in self._shapes_of:
                value, on_device = np.empty((0, len(value), *value.shape[2:]), value.dtype), False
        elif isinstance(value, SparseRows):
            rows = np.array(value.rows)
            there = rows < value.height  # others are unused
            value = SelectedRows(rows[there], value.height, np.array(value.values)[there])
        frame.values[position] = value
        holder = frame.holders.get(position)
        if holder is None:
            return
        if not on_device:
            holder.set_value(value)
            return
        tensor = LoDTensor() if holder.value is None else holder.value
        if not isinstance(tensor, LoDTensor):
            raise TypeError(f"{holder.name!r} holds a {type(tensor).__name__}")
        tensor.adopt_from_device(value, lods.get(position) if lods else None)
        if holder.value is not tensor:
            holder.set_value(tensor)


def _separate(updated: dict[int, Any], kept: dict[int, Any]) -> dict[int, Any]:
    """Return the arrays that will be overwritten, none of which is given a second time."""
    seen = {id(value) for value in kept.values()}
    separate = {}
    for position, value in updated.items():
        if id(value) in seen:
            value = jax.numpy.array(value, copy=True)
        seen.add(id(value))
        separate[position] = value
    return separate


def _describe(values: Mapping[int, Any]) -> tuple[Any, ...]:
    """Return what a compiled piece depends on."""
    return tuple([(n, _describe_one(value)) for n, value in values.items()])


def _describe_one(value: Any) -> Any:
    if isinstance(value, Packed):
        return (value.rows.shape, value.rows.dtype, value.longest, *(len(level) for level in value.offsets))
    if isinstance(value, SparseRows):
        return (value.values.shape, value.values.dtype, value.height)
    known = getattr(value, "aval", value)  # of an array of JAX, whose own properties take four times as long
    return (known.shape, known.dtype)


def _shape_of(value: Any) -> Any:
    return jax.ShapeDtypeStruct(value.shape, value.dtype)
