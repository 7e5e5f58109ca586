"""A piece: consecutive operators of a program that run as one XLA computation."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jax
import numpy as np

from paddlelike.compiled.arrays import Ranks, TensorArray
from paddlelike.compiled.backend import settings
from paddlelike.compiled.packing import RefusedError, are_sequences, pack_all, stands_for_none
from paddlelike.compiled.pieces.compilations import Compilations, PassedOverError, Signature, describe
from paddlelike.compiled.pieces.executables import Executable, Outline, compile_piece, separate
from paddlelike.compiled.pieces.gradients import counts_rows, draws_values, find_shapes_kept, pads_to_longest
from paddlelike.compiled.pieces.piece_plan import CompiledPlan
from paddlelike.compiled.state.alike import find_alike
from paddlelike.compiled.state.repeats import CompiledFrame, create_repeat
from paddlelike.compiled.state.tables import DeviceTables, KeptRows
from paddlelike.compiled.tracing.draws import draw_all
from paddlelike.compiled.tracing.sizes import KnownSizes, Sizes, describe_sizes
from paddlelike.compiled.values import Packed, SparseRows, align_feed, find_array_type
from paddlelike.core import Array, LoD, LoDTensor, SelectedRows
from paddlelike.errors import OperatorError
from paddlelike.executor.plans.frame import Frame
from paddlelike.executor.plans.touched import is_unsigned

_SMALL: Final = 64  # elements; XLA copies a donated array before it writes there, a new one costs less


class Piece:
    """The steps ``start`` to ``stop`` of a plan.

    Attributes
    ----------
    compiled : Compilations
        The compilations of the piece.
    seconds : float
        The time that they took.
    """

    def __init__(self, plan: CompiledPlan, start: int, stop: int, device: jax.Device) -> None:
        self.plan = plan
        self.start, self.stop = start, stop
        self.seconds = 0.0
        self._device = device
        self._shapes: dict[int, set[Any]] = {}
        written: set[int] = set()
        self._first_reader: dict[int, int] = {}
        for index in range(start, stop):
            for position in plan.reads[index] - written:
                self._first_reader.setdefault(position, index)
            written |= plan.writes[index]
        kept = plan.layout.persistables.keys()
        needed = plan.needed_after[stop - 1]
        updated = written & kept & self._first_reader.keys()
        small = {n for n in updated if _is_small(plan.layout.persistables[n].shape)}
        self._donated = updated - small
        self._alike = find_alike(plan, start, stop, small)
        self._unsigned = plan.find_unsigned(range(start, stop))
        self._dying = [n for n in self._first_reader if n not in needed and n not in kept]
        self._array_type: Any = find_array_type()
        # On a CPU the arrays of a run need no copies.
        self._reads_memory = device.platform == "cpu"
        self._tables = DeviceTables(plan, start, stop, self._donated) if self._reads_memory else None
        self._pads = any(pads_to_longest(plan.steps[index].op) for index in range(start, stop))
        self._counts = any(counts_rows(plan.steps[index].op) for index in range(start, stop))
        self._sizes = Sizes(plan, start, stop)
        self.compiled = Compilations(plan, self._first_reader, self._sizes.given, pads=self._pads)
        self._outline = Outline(
            plan,
            range(start, stop),
            outputs=sorted(written & (needed | kept)),
            shapes_of=dict(find_shapes_kept(plan, start, stop)),
            may_draw=any(draws_values(plan, plan.steps[index].op) for index in range(start, stop)),
        )

    @property
    def compilations(self) -> int:
        """The number of compilations: one for each choice of shapes."""
        return self.compiled.count

    def __len__(self) -> int:
        return self.stop - self.start

    def run(self, frame: CompiledFrame) -> None:
        """Run the piece on the values of a frame.

        Raises RefusedError, or PassedOverError for shapes that numpy runs; then nothing has changed.
        """
        repeat, frame.repeat = frame.repeat, None
        if repeat is not None and repeat.fits(frame):
            self.compiled.count_known()
            for position in repeat.copied:
                value = frame.values[position]
                value = align_feed(value) if self._reads_memory else self._put(value).block_until_ready()
                frame.values[position] = value
            take = repeat.take_donated(frame.values), repeat.take_kept(frame.values)
            repeat.store(frame, self._run(frame, repeat.executable, *take, {}))
            frame.repeat = repeat
            return
        donated, kept, signature = self._collect(frame)
        sizes = self._sizes.compute(frame.values, frame.lods)
        if sizes:
            signature = (*signature, describe_sizes(sizes))
        same = self._alike.find_same(kept)
        if same:
            signature = (*signature, tuple(same.items()))
        executable = self.compiled.find(signature) or self._compile(signature, donated, kept, sizes, same)
        if donated and len({*map(id, donated.values()), *map(id, kept.values())}) < len(donated) + len(kept):
            donated = separate(donated, kept)
        take = [donated[n] for n in executable.donated], [kept[n] for n in executable.kept]
        found = dict(zip(executable.results, self._run(frame, executable, *take, kept), strict=True))
        found |= {n: found[first] for n, first in same.items()}
        self._store(frame, found)
        if len(self) == len(self.plan.steps) and not self._sizes.given:
            frame.repeat = create_repeat(self.plan, frame, executable, donated | kept, found, same)

    def _run(
        self,
        frame: Frame,
        executable: Executable,
        donated: Sequence[Any],
        kept: Sequence[Any],
        given: Mapping[int, Any],
    ) -> list[Any]:
        """Return the results. Random values have the shapes that ``given`` leads to. Raises the errors of
        `_compute`.
        """
        if not executable.draws:
            return self._compute(frame, executable, donated, kept, [])
        generator = frame.scope.generator
        before = generator.state
        draws = draw_all(executable.draws, generator, given)
        try:
            return self._compute(frame, executable, donated, kept, draws)
        except RefusedError:
            generator.state = before  # numpy draws the same numbers again
            raise

    def _compute(
        self,
        frame: Frame,
        executable: Executable,
        donated: Sequence[Any],
        kept: Sequence[Any],
        draws: Sequence[Any],
    ) -> list[Any]:
        """Return the results. If a check fails, raise; the persistables then have their old values."""
        if executable.check_first is not None:
            executable.require(executable.check_first(jax.tree_util.tree_leaves((donated, kept, draws))))
        if not self._tables:
            found = self._launch(executable, donated, kept, draws)
        else:
            by_position = {}
            rows = KeptRows()
            try:
                self._tables.begin(rows, executable.donated, donated, frame.values)
                found = self._launch(executable, donated, kept, draws)
                by_position = dict(zip(executable.results, found[0], strict=True))
            finally:
                self._tables.end(rows, by_position)
        results: list[Any] = found[0]
        if executable.check_first is None and executable.checks:
            try:
                executable.require(found[1])
            except (RefusedError, OperatorError):
                by_position = dict(zip(executable.results, results, strict=True))
                old = {n: by_position[n] for n in executable.donated if n in by_position} | found[2]
                for position, value in old.items():
                    self._store_one(frame, position, value)
                raise
        return results

    def _launch(
        self, executable: Executable, donated: Sequence[Any], kept: Sequence[Any], draws: Sequence[Any]
    ) -> Any:
        found = executable.run(list(donated), list(kept), draws)
        if self._reads_memory:
            # Wait before other code writes into the memory that JAX reads. If JAX computes in another thread,
            # some results may be ready before others.
            for value in found[0]:
                if type(value) is self._array_type:
                    value.block_until_ready()
                else:
                    jax.block_until_ready(value)
        return found

    # Inputs

    def _collect(self, frame: Frame) -> tuple[dict[int, Any], dict[int, Any], Signature]:
        """Return the inputs with reusable memory, the other inputs, and their descriptions."""
        donated: dict[int, Any] = {}
        kept: dict[int, Any] = {}
        described: list[Any] = []
        values, given_away = frame.values, self._donated
        lods = frame.unshown | frame.lods if frame.unshown else frame.lods
        array_type, size = self._array_type, len(values)
        sent: list[Any] = []
        sequences: dict[int, tuple[Array, LoD]] = {}
        uploaded: dict[Any, Any] = {}
        # A network with many parameters spends most of its time outside of XLA in this loop.
        for position, reader in self._first_reader.items():
            value = values[position] if position < size else None
            if value is None:
                continue
            lod = lods.get(position) if lods else None
            if lod and isinstance(value, np.ndarray | jax.Array) and are_sequences(value, lod):
                self._check_dtype(value, reader)
                sequences[position] = np.asarray(value), lod
                continue
            if lod and stands_for_none(value, lod):
                raise RefusedError(reader, "it reads the placeholder row of an array without rows")
            if type(value) is not array_type:
                value = self._upload(frame, position, value, reader, uploaded)
                sent.append(value)
            if type(value) is array_type:
                aval = value.aval  # the array's own properties take four times as long
                described += position, aval.shape, aval.dtype
                if position in given_away:
                    donated[position] = value
                    continue
            else:
                described += position, describe(value)
            kept[position] = value
        if not self._reads_memory:
            jax.block_until_ready(sent)  # before other code writes into the memory that is sent
        if sequences:
            fed = [lods[position] for position in self.plan.batch if position in lods]
            packed = pack_all(sequences, fed, self.plan.gradients, counts=self._counts, padded=self._pads)
            for position in packed.keys() & frame.unshown.keys() - frame.lods.keys():
                packed[position].shown = False
            kept |= packed
            described += [(position, describe(value)) for position, value in packed.items()]
        return donated, kept, tuple(described)

    @staticmethod
    def _check_dtype(value: Any, reader: int) -> None:
        if value.dtype.kind not in "fiub":
            raise RefusedError(reader, f"it reads an array of {value.dtype}")

    def _upload(self, frame: Frame, position: int, value: Any, reader: int, uploaded: dict[Any, Any]) -> Any:
        """Convert a value for the piece. ``uploaded`` holds arrays that several persistables may share."""
        if isinstance(value, SelectedRows):
            if value.held_array is None:
                raise RefusedError(reader, "it reads a SelectedRows that holds nothing yet")
            return SparseRows(value.row_array, value.held_array, value.height())
        if not isinstance(value, np.ndarray):
            raise RefusedError(reader, f"it reads a {type(value).__name__}")
        self._check_dtype(value, reader)
        if position in self._unsigned and not is_unsigned(value):
            raise PassedOverError  # numpy updates all rows while this lasts
        holder = frame.holders.get(position)
        if self._reads_memory and holder is None:
            return align_feed(value)  # as it is, if it can be
        group = self._alike.group_of.get(position)
        key = None if group is None else (group, value.shape, value.dtype, value.tobytes())
        array = self._put(value) if key not in uploaded else uploaded[key]
        if key is not None:
            uploaded[key] = array
        if holder is not None and isinstance(holder.value, LoDTensor) and position not in self._donated:
            holder.value.keep_on_device(array)
        return array

    def _put(self, value: Array) -> jax.Array:
        return jax.device_put(value, self._device, may_alias=False)

    # Compiling

    def _compile(
        self,
        signature: Signature,
        donated: dict[int, Any],
        kept: dict[int, Any],
        sizes: KnownSizes,
        same: Mapping[int, int],
    ) -> Executable:
        self.compiled.check_worth(signature, kept, describe_sizes(sizes))
        begin = time.perf_counter()
        with settings(self._device):
            found = compile_piece(self._outline, donated, kept, sizes, same=same, on_cpu=self._reads_memory)
        self.seconds += time.perf_counter() - begin
        self.compiled.add(signature, found, kept, describe_sizes(sizes))
        return found

    # Outputs

    def _store(self, frame: Frame, results: Mapping[int, Any]) -> None:
        for position in self._dying:
            frame.values[position] = None
        values, find, array_type = frame.values, frame.holders.get, self._array_type
        plain = not frame.lods and not frame.unshown
        for position, value in results.items():
            if plain and type(value) is array_type:  # the usual case, without a call
                holder = find(position)
                if holder is None:
                    values[position] = value
                    continue
                tensor = holder.value
                if type(tensor) is LoDTensor:
                    values[position] = value
                    tensor.adopt_from_device(value)
                    continue
            self._store_one(frame, position, value)

    def _store_one(self, frame: Frame, position: int, value: Any) -> None:
        lods = frame.lods
        if lods:
            lods.pop(position, None)
        frame.unshown.pop(position, None)
        on_device = type(value) is self._array_type
        if isinstance(value, TensorArray | Ranks):
            frame.values[position] = value.to_host()
            return
        if isinstance(value, Packed):
            lod = [[int(n) for n in np.asarray(level)] for level in value.offsets]
            if lod:
                (lods if value.shown else frame.unshown)[position] = lod
            value = value.rows[: int(value.total)]
            on_device = True
            if position in self._outline.shapes_of:
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


def _is_small(shape: Sequence[int]) -> bool:
    return 0 <= math.prod(shape) <= _SMALL and -1 not in shape
