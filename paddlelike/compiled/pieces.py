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
from paddlelike.compiled.compilations import Compilations, Signature, describe
from paddlelike.compiled.demands import counts_rows, draws_values, find_shapes_kept, pads_to_longest
from paddlelike.compiled.executables import Executable, Outline, compile_piece
from paddlelike.compiled.plan import CompiledPlan
from paddlelike.compiled.refusals import RefusedError
from paddlelike.compiled.tracing.draws import draw_all
from paddlelike.compiled.tracing.sizes import KnownSizes, Sizes, describe_sizes
from paddlelike.compiled.values import (
    Packed,
    SparseRows,
    find_array_type,
    find_sizes,
    have_one_length,
    pack,
)
from paddlelike.core.tensor import LoD, LoDTensor, SelectedRows
from paddlelike.errors import OperatorError
from paddlelike.executor.plans.frame import Frame

__all__ = ["Piece"]

_SMALL: Final = (
    64  # elements; XLA copies a donated array before it writes there, which costs more than a new one
)


class Piece:
    """The steps ``start`` to ``stop`` of a plan.

    Attributes
    ----------
    compiled : Compilations
        What was compiled of it.
    seconds : float
        The time that took.
    """

    def __init__(self, plan: CompiledPlan, start: int, stop: int, device: Any) -> None:
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
        self._donated = {n for n in updated if not _is_small(plan.layout.persistables[n].shape)}
        self._dying = [n for n in self._first_reader if n not in needed and n not in kept]
        self._array_type: Any = find_array_type()
        # On a CPU the arrays of a run need no copies.
        self._reads_memory = device.platform == "cpu"
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
        """How often it was compiled: once for each choice of shapes."""
        return self.compiled.count

    def __len__(self) -> int:
        return self.stop - self.start

    def run(self, frame: Frame) -> None:
        """Run the piece on the values of a frame.

        Raises RefusedError, or PassedOverError for shapes that numpy runs; then nothing has changed.
        """
        donated, kept, signature = self._collect(frame)
        sizes = self._sizes.compute(frame.values, frame.lods)
        if sizes:
            signature = (*signature, describe_sizes(sizes))
        executable = self.compiled.find(signature) or self._compile(signature, donated, kept, sizes)
        if donated and len({*map(id, donated.values()), *map(id, kept.values())}) < len(donated) + len(kept):
            donated = _separate(donated, kept)
        if not executable.draws:
            results = self._run(frame, executable, donated, kept, [])
        else:
            generator = frame.scope.generator
            before = generator.state
            draws = draw_all(executable.draws, generator, kept)
            try:
                results = self._run(frame, executable, donated, kept, draws)
            except RefusedError:
                generator.state = before  # numpy draws the same numbers again
                raise
        self._store(frame, results)

    def _run(
        self,
        frame: Frame,
        executable: Executable,
        donated: dict[int, Any],
        kept: dict[int, Any],
        draws: list[Any],
    ) -> dict[int, Any]:
        """Return the results. Where a check does not hold, raise; then persistables have their old values."""
        if executable.check_first is not None:
            flat = jax.tree_util.tree_leaves((donated, kept, draws))
            executable.require(executable.check_first(flat))
        results, checked, *replaced = executable.run(donated, kept, draws)
        if self._reads_memory:
            # Before anybody writes into the memory it reads. Where JAX computes in a thread of its own, one
            # result may be there before another.
            jax.block_until_ready((results, checked))
        if executable.check_first is None and executable.checks:
            try:
                executable.require(checked)
            except (RefusedError, OperatorError):
                old = {n: results[n] for n in donated.keys() & results.keys()} | replaced[0]
                for position, value in old.items():
                    self._store_one(frame, position, value)
                raise
        found: dict[int, Any] = results
        return found

    # Inputs

    def _collect(self, frame: Frame) -> tuple[dict[int, Any], dict[int, Any], Signature]:
        """Return the inputs, those whose memory the piece may take and the others, and what they are like."""
        donated: dict[int, Any] = {}
        kept: dict[int, Any] = {}
        described: list[Any] = []
        values, given_away = frame.values, self._donated
        lods = frame.unshown | frame.lods if frame.unshown else frame.lods
        array_type, size = self._array_type, len(values)
        sent: list[Any] = []
        sequences: dict[int, tuple[np.ndarray[Any, Any], LoD]] = {}
        # This loop is most of what a network of many parameters costs outside of XLA.
        for position, reader in self._first_reader.items():
            value = values[position] if position < size else None
            if value is None:
                continue
            if (
                lods
                and isinstance(value, np.ndarray | jax.Array)
                and _are_sequences(value, lods.get(position))
            ):
                self._check_dtype(value, reader)
                sequences[position] = np.asarray(value), lods[position]
                continue
            if lods and _stands_for_none(value, lods.get(position)):
                raise RefusedError(reader, "it reads one row that stands for none")
            if type(value) is not array_type:
                value = self._upload(frame, position, value, reader)
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
            jax.block_until_ready(sent)  # before anybody writes into the memory that is sent
        if sequences:
            fed = [lods[one.position] for one in self.plan.fed.values() if one.position in lods]
            packed = self._pack(sequences, fed)
            for position in packed.keys() & frame.unshown.keys() - frame.lods.keys():
                packed[position].shown = False
            kept |= packed
            described += [(position, describe(value)) for position, value in packed.items()]
        return donated, kept, tuple(described)

    def _pack(
        self, sequences: Mapping[int, tuple[np.ndarray[Any, Any], LoD]], fed: Sequence[LoD]
    ) -> dict[int, Packed]:
        """Return sequences with padding.

        Those whose rows are alike, as the words of a question and of its answers, take the size of the
        largest: with a size for each, nearly every batch would be another choice of sizes to compile.
        Sequences of one row each, as the ids of a click, are just these rows, and go with arrays of as many;
        so are those of one length, as the fields of a click, where results depend on the count of rows.
        Both are said of what is fed: of rows that numpy chose, as the regions of images, it is chance.
        """
        levels = [level for lod in fed for level in lod]
        chosen = {n for n, (_, lod) in sequences.items() if lod[-1] not in levels}
        single = {
            n
            for n, (rows, lod) in sequences.items()
            if len(rows)
            and n not in chosen
            and (bool((np.diff(lod[-1]) == 1).all()) or (self._counts and have_one_length([lod])))
        }
        others = {n: one for n, one in sequences.items() if n not in single}
        sizes = find_sizes(others, padded=self._pads, chosen=chosen)
        return {
            n: pack(
                rows,
                lod,
                is_gradient=n in self.plan.gradients,
                least=sizes[n].least if n in sizes else (0, 0),
                alike=n in sizes and sizes[n].alike,
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
        if holder is not None and isinstance(holder.value, LoDTensor) and position not in self._donated:
            holder.value.keep_on_device(array)
        return array

    # Compiling

    def _compile(
        self, signature: Signature, donated: dict[int, Any], kept: dict[int, Any], sizes: KnownSizes
    ) -> Executable:
        self.compiled.check_worth(signature, kept, describe_sizes(sizes))
        begin = time.perf_counter()
        with settings(self._device):
            found = compile_piece(self._outline, donated, kept, sizes, on_cpu=self._reads_memory)
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


def _are_sequences(value: Any, lod: LoD | None) -> bool:
    """Return whether a LoD cuts an array.

    It does not where rows without one were added to sequences: `concat` leaves its result the LoD of X[0].
    """
    return bool(lod) and len(value) == lod[-1][-1]  # type: ignore[index]


def _stands_for_none(value: Any, lod: LoD | None) -> bool:
    """Return whether sequences are all empty, but have a row, as ``ctc_align`` leaves them."""
    return bool(lod) and lod[-1][-1] == 0 and len(value) == 1  # type: ignore[index]


def _is_small(shape: Sequence[int]) -> bool:
    return 0 <= math.prod(shape) <= _SMALL and -1 not in shape


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
