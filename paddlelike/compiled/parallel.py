"""A program on several devices: each computes a part of the batch; gradients are averaged, parameters copied.

As in Fluid each copy normalizes by its own part of the batch; other values that copies write (moving means)
are taken from the first copy.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from paddlelike.compiled.backend import find_devices, find_options, settings
from paddlelike.compiled.packing import RefusedError, Uncovered, find_largest, have_one_length, pack
from paddlelike.compiled.pieces.piece_plan import CompiledPlan
from paddlelike.compiled.state.tables import keep_tables
from paddlelike.compiled.tracing.draws import Draw, DrawLoop, draw_all, find_shapes
from paddlelike.compiled.tracing.orders import delay_transposes
from paddlelike.compiled.tracing.trace import Trace
from paddlelike.compiled.values import Packed, SparseRows
from paddlelike.core import LoD, LoDTensor, Place, Scope, ScopeVariable
from paddlelike.errors import OperatorError
from paddlelike.executor.copies import warn_numpy
from paddlelike.executor.exchange.feeds import put_feeds
from paddlelike.executor.explanations import format_line
from paddlelike.executor.plans.frame import Frame
from paddlelike.framework import Operator

_NO_STEP: Final = -1  # of a refusal that no operator causes
_AXIS = "copies"
_EACH, _ALL = PartitionSpec(_AXIS), PartitionSpec()


class _Executable(NamedTuple):
    run: Any
    draws: list[Draw | DrawLoop]
    checks: list[tuple[Operator, str]]


class Copies:
    """One program on several devices, for one choice of feeds and fetches.

    Parameters
    ----------
    each_copy, once
        The indexes of the steps that each device runs on its part, and of the steps after the gradients
        are summed.
    gradients
        The positions of the parameters' gradients.
    average
        Whether gradients are averaged, not summed.

    Attributes
    ----------
    refused : str or None
        Why numpy ran the copies the last time.
    compilations, seconds
        The same as for a :class:`~paddlelike.compiled.pieces.piece.Piece`.
    """

    def __init__(
        self,
        plan: CompiledPlan,
        places: Sequence[Place],
        *,
        each_copy: list[int],
        once: list[int],
        gradients: list[int],
        average: bool,
    ) -> None:
        self.plan = plan
        self._each_copy, self._once = each_copy, once
        self._gradients = gradients
        self._average = average
        self._mesh = Mesh(np.array(find_devices(places)), (_AXIS,))
        self._executables: dict[Any, _Executable] = {}
        self.refused: str | None = None  # why numpy ran the copies the last time
        self.compilations = 0
        self.seconds = 0.0
        kept = plan.layout.persistables.keys()
        self._written_by_each = set().union(*(plan.writes[i] for i in each_copy)) & kept
        self._written = (set().union(*plan.writes) if plan.writes else set()) & kept
        computed = set().union(*(plan.writes[i] for i in each_copy)) if each_copy else set()
        self._per_copy = computed | {fed.position for fed in plan.fed.values()} | kept

    def run(self, scope: Scope, feeds: Sequence[Mapping[str, Any]]) -> list[list[Any]] | None:
        """Return, for every fetch, its values in all copies; None, with a warning, if numpy must run them."""
        try:
            found = self._run(scope, feeds)
        except RefusedError as error:
            self.refused = error.reason
            if error.index != _NO_STEP:
                op = self.plan.steps[error.index].op
                self.refused = f"operator {op.type!r} cannot be compiled: {error.reason}"
            warn_numpy(self.refused)
            return None
        self.refused = None
        return found

    def _run(self, scope: Scope, feeds: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
        plan = self.plan
        with settings(self._mesh.devices.flat[0]):
            parts = self._collect_feeds(scope, feeds)
            fed = self._stack(parts)
            keep_tables()
            updated, kept = self._collect_persistables(scope)
            leaves, form = jax.tree_util.tree_flatten((updated, kept, fed))
            signature = (form, tuple((leaf.shape, leaf.dtype) for leaf in leaves))
            executable = self._executables.get(signature)
            if executable is None:
                begin = time.perf_counter()
                executable = self._executables[signature] = self._compile(updated, kept, fed)
                self.seconds += time.perf_counter() - begin
                self.compilations += 1
            state = scope.generator.state
            draws = self._draw(executable.draws, scope, parts)
            persistables, fetched, held, before = executable.run(updated, kept, fed, draws)
            failed = bool(executable.checks) and not (truth := np.asarray(held)).all()
            # The memory of the old arrays was reused; if checks failed, their values were returned.
            found = {n: before.get(n, persistables[n]) for n in updated} if failed else persistables
            for position, value in found.items():
                name = plan.layout.persistables[position].name
                _store(scope.find_var(name) or scope.var(name), value)
            if failed:
                op, message = executable.checks[int(np.argmin(truth))]
                if isinstance(message, Uncovered):
                    scope.generator.state = state  # numpy draws the same numbers again
                    raise RefusedError(message.step, message)
                raise OperatorError(f"operator {op.type!r} failed: {message}{format_line(op)}")
        return [self._read(position, fetched[position]) for position in plan.fetch_positions]

    def _read(self, position: int, value: Any) -> list[LoDTensor]:
        """Return the values of a fetched variable in all copies."""
        if isinstance(value, Packed):
            leaves, form = jax.tree_util.tree_flatten(value)
            parts = zip(*map(np.array, leaves), strict=True)
            return [_unpack(jax.tree_util.tree_unflatten(form, part)) for part in parts]
        values = np.array(value)
        count = len(values) if position in self._per_copy else 1
        return [LoDTensor(values[i]) for i in range(count)]

    def _collect_feeds(self, scope: Scope, feeds: Sequence[Mapping[str, Any]]) -> list[dict[int, Any]]:
        """Return the feeds of each copy, by position; sequences have equally many rows in all copies."""
        plan = self.plan
        frames = []
        for feed in feeds:
            frame = Frame(plan.layout, plan.blocks, scope, {})
            put_feeds(plan, frame, feed)
            frames.append(frame)
        parts: list[dict[int, Any]] = [{} for _ in frames]
        for name, one in plan.fed.items():
            values = [frame.values[one.position] for frame in frames]
            lods = [frame.lods.get(one.position) for frame in frames]
            if any(lods):
                values = self._pack(name, values, lods)
            elif len({(value.shape, value.dtype) for value in values}) > 1:
                shapes = ", ".join(str(list(value.shape)) for value in values)
                raise RefusedError(
                    _NO_STEP,
                    f"the parts of the feed {name!r} have different shapes: {shapes}; feed batches that "
                    f"{len(values)} divides",
                )
            for part, value in zip(parts, values, strict=True):
                part[one.position] = value
        return parts

    def _pack(self, name: str, values: list[Any], lods: list[LoD | None]) -> list[Packed]:
        counts = [tuple(len(level) for level in lod or ()) for lod in lods]
        if len(set(counts)) > 1:
            raise RefusedError(
                _NO_STEP, f"the parts of the feed {name!r} have different numbers of sequences"
            )
        found = [lod for lod in lods if lod]
        least = find_largest(zip(values, found, strict=True))
        alike = have_one_length(found)
        return [pack(value, lod, least=least, alike=alike) for value, lod in zip(values, found, strict=True)]

    def _stack(self, parts: Sequence[Any]) -> object:
        """Return the values of all copies as arrays with a dim for the copies, each on its device."""
        each = NamedSharding(self._mesh, _EACH)
        return jax.tree_util.tree_map(lambda *leaves: jax.device_put(np.stack(leaves), each), *parts)

    def _collect_persistables(self, scope: Scope) -> tuple[dict[int, Any], dict[int, Any]]:
        everywhere = NamedSharding(self._mesh, _ALL)
        updated: dict[int, Any] = {}
        kept: dict[int, Any] = {}
        for position, variable in self.plan.layout.persistables.items():
            tensor = (scope.find_var(variable.name) or scope.var(variable.name)).value
            if tensor is None:
                continue
            if not isinstance(tensor, LoDTensor):
                raise RefusedError(_NO_STEP, f"{variable.name!r} holds a {type(tensor).__name__}")
            value = tensor.find_on_device()
            if value is None or value.is_deleted():
                value = tensor.held_array
            if value is None:
                continue
            if not isinstance(value, Array) or value.sharding != everywhere:
                value = jax.device_put(value, everywhere)
            (updated if position in self._written else kept)[position] = value
        return updated, kept

    def _draw(
        self, draws: Sequence[Draw | DrawLoop], scope: Scope, parts: Sequence[Mapping[int, Any]]
    ) -> list[Any]:
        """Return the random values of all copies: all values of the first copy first, as with numpy."""
        drawn = [draw_all(draws, scope.generator, part) for part in parts]
        return [self._stack(values) for values in zip(*drawn, strict=True)]

    def _compile(self, updated: Any, kept: Any, fed: Any) -> _Executable:
        drawn: list[Draw | DrawLoop] = []
        checks: list[tuple[Operator, str]] = []

        def compute(updated: Any, kept: Any, fed: Any, draws: Any) -> object:
            part = jax.tree_util.tree_map(lambda value: value[0], fed)
            given = None if draws is None else jax.tree_util.tree_map(lambda value: value[0], draws)
            trace = Trace(self.plan, {**updated, **kept, **part}, given)
            for index in self._each_copy:
                trace.run(self.plan.steps[index], index)
            own = {n: trace.values[n] for n in self._written_by_each if trace.values.get(n) is not None}
            self._share(trace)
            for index in self._once:
                trace.run(self.plan.steps[index], index)
            drawn[:] = trace.drawn
            checks[:] = [(op, message) for op, message, _ in trace.checks]
            held = jnp.stack([holds for _, _, holds in trace.checks]) if checks else jnp.ones(1, bool)
            held = jax.lax.pmin(held.astype(jnp.int32), _AXIS)
            found = {n: own.get(n, trace.values[n]) for n in self.plan.fetch_positions}
            if any(isinstance(value, SparseRows) for value in found.values()):  # before anything changes
                raise RefusedError(_NO_STEP, "a sparse gradient is fetched")
            fetched = jax.tree_util.tree_map(lambda value: value[None], found)
            new, before = {n: trace.values[n] for n in self._written if trace.values.get(n) is not None}, {}
            if not all(isinstance(value, Array | Packed) for value in new.values()):
                raise RefusedError(_NO_STEP, "it writes a persistable that is not an array")
            for n, old in updated.items() if checks else ():
                if isinstance(new[n], Array) and (old.shape, old.dtype) == (new[n].shape, new[n].dtype):
                    new[n] = jnp.where(held.all() != 0, new[n], old)
                else:  # such as the table of `auc` after the first step
                    before[n] = old
            return new, fetched, held, before

        def on_all(*args: Any) -> object:
            specs = (_ALL, _ALL, _EACH, _EACH)[: len(args)]
            run = (lambda a, b, c: compute(a, b, c, None)) if len(args) == 3 else delay_transposes(compute)
            return jax.shard_map(
                run, mesh=self._mesh, in_specs=specs, out_specs=(_ALL, _EACH, _ALL, _ALL), check_vma=False
            )(*args)

        jax.eval_shape(on_all, updated, kept, fed)
        asked = list(drawn)
        count = self._mesh.devices.size
        each = NamedSharding(self._mesh, _EACH)
        draws = jax.tree_util.tree_map(
            lambda one: jax.ShapeDtypeStruct((count, *one.shape), one.dtype, sharding=each),
            [find_shapes(draw) for draw in asked],
        )
        options = find_options(on_cpu=self._mesh.devices.flat[0].platform == "cpu")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Some donated buffers were not usable")
            lowered = jax.jit(on_all, donate_argnums=0).lower(updated, kept, fed, draws)
            return _Executable(lowered.compile(options), asked, checks)

    def _share(self, trace: Trace) -> None:
        """Sum the gradients over the copies; give all copies the values that the first copy wrote."""
        for position in self._gradients:
            value = trace.values.get(position)
            if isinstance(value, SparseRows):
                rows, values = (
                    jax.lax.all_gather(one, _AXIS, tiled=True) for one in (value.rows, value.values)
                )
                count = self._mesh.devices.size if self._average else 1
                trace.values[position] = SparseRows(rows, values / count, value.height)
            elif value is not None:
                share = jax.lax.pmean if self._average else jax.lax.psum
                trace.values[position] = share(value, _AXIS)
        for position in self._written_by_each:
            trace.values[position] = jax.tree_util.tree_map(
                lambda value: jax.lax.all_gather(value, _AXIS)[0], trace.values.get(position)
            )


def _unpack(value: Packed) -> LoDTensor:
    """Return sequences without their padding."""
    lod = [np.asarray(level).tolist() for level in value.offsets]
    return LoDTensor(np.array(value.rows)[: int(value.total)], lod if lod and value.shown else None)


def _store(holder: ScopeVariable, value: Array) -> None:
    """Write the results of the copies into the scope."""
    if isinstance(value, Packed):
        holder.set_value(_unpack(value))
    else:
        holder.get_tensor().adopt_from_device(value)
