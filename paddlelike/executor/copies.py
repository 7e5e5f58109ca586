"""Copies of a program on pieces of one batch, one after the other, or on several devices.

The forward and backward part runs once per piece of the batch, the gradients are averaged, then the update
part runs once. Other persistables that the forward part writes (moving means, counters) are taken from the
first copy; with ``ReduceStrategy.Reduce`` the copies share them, so that an AUC counts all pieces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paddlelike.core import LoD, LoDTensor, Place, Scope, ScopeVariable, SelectedRows
from paddlelike.errors import EnforceNotMet, FeedError
from paddlelike.executor.exchange.feeds import put_feeds
from paddlelike.executor.exchange.fetches import get_fetched
from paddlelike.executor.exchange.files import provide_files
from paddlelike.executor.plans.frame import Frame, Step
from paddlelike.executor.plans.run_plan import Plan
from paddlelike.executor.run import Executor
from paddlelike.executor.steps import run_steps
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import OpRole, Program
from paddlelike.framework.passes.views import collect_writes
from paddlelike.hooks import Hook

_run_copies: Final[Hook[..., list[list[Any]] | None]] = Hook("run_copies")
_explain_copies: Final[Hook[[Program, list[str], list[str], Sequence[Place]], str]] = Hook("explain_copies")

#: Why numpy runs copies although JAX was requested.
_SHARED: Final = "with ReduceStrategy.Reduce they share the variables that they write"


def warn_numpy(reason: str) -> None:
    """Warn that numpy runs copies, although JAX was requested."""
    warn_user(f"numpy runs the copies of this program one after the other: {reason}")


class _CopiesPlan(NamedTuple):
    """A plan, split into the steps that each copy runs and the steps that run once afterwards."""

    plan: Plan
    each_copy: list[Step]
    once: list[Step]
    gradients: list[int]
    written: set[int]  # persistables that each copy writes


class Copies:
    """One program, run on several pieces of the batch.

    ``average`` takes the mean of the gradients, not the sum. ``shared`` says that the copies write
    the same persistables.
    """

    def __init__(self, program: Program, copies: int, *, average: bool, shared: bool) -> None:
        self.program = program
        self.copies = copies
        self.average = average
        self.shared = shared

    def run(
        self, executor: Executor, scope: Scope, feed: Any, fetches: list[str], devices: Sequence[Place]
    ) -> list[list[Any]]:
        """Return, for every fetch, its values in all copies, run by JAX on ``devices`` if there are any."""
        pieces = self._split_feed(feed)
        self._require_batches(scope)
        if self.copies == 1:
            backend = "jax" if devices else "numpy"
            values = executor._run(
                self.program, pieces[0], fetches, scope, return_numpy=False, backend=backend
            )
            return [[value] for value in values]
        if devices and self.shared:
            warn_numpy(_SHARED)
        elif devices:
            gradients = find_gradients(self.program)
            found = _run_copies.function(
                self.program, pieces, fetches, scope, devices, gradients,
                average=self.average, runs_once=_runs_once,
            )  # fmt: skip
            if found is not None:
                return list(found)
        return self._run_copies(executor, scope, pieces, fetches)

    def _require_batches(self, scope: Scope) -> None:
        """Raise EOFException when a reader has no batch for every copy.

        This happens before any operator runs, so a step counter stays equal to the number of batches. Fluid's
        parallel runs begin with the readers too; a plain Executor runs the operators in their order.
        """
        names = self.program.plans.get("readers")
        if names is None:
            ops = self.program.global_block().ops
            names = [op.input("Reader")[0] for op in ops if op.type == "read"]
            self.program.plans["readers"] = names
        for name in names:
            holder = scope.find_var(name)
            if holder is not None and holder.value is not None:
                holder.value.require(self.copies)

    def explain(self, feeds: list[str], fetches: list[str], devices: Sequence[Place]) -> str:
        """Describe where the copies run; ``devices`` are the devices of :meth:`run`."""
        if devices and self.shared:
            reason = f": {_SHARED}"
        elif devices:
            return _explain_copies.function(self.program, feeds, fetches, devices)
        else:
            reason = ""
        return f"numpy: {self.copies} copies, one after the other{reason}"

    def _run_copies(
        self, executor: Executor, scope: Scope, pieces: list[Mapping[str, Any]], fetches: list[str]
    ) -> list[list[Any]]:
        plan, each_copy, once, gradients, written = self._plan(pieces[0], fetches)
        with provide_files(plan, scope, executor._services) as services:
            frames = [plan.create_frame(scope, services) for _ in pieces]
            for frame in [] if self.shared else frames[1:]:
                _separate(frame, written)
            for index, (frame, piece) in enumerate(zip(frames, pieces, strict=True)):
                if self.shared and index:
                    _pass_on(frames[index - 1], frame, written)
                put_feeds(plan, frame, piece)
                run_steps(frame, each_copy)
            if self.shared:
                _pass_on(frames[-1], frames[0], written)
            self._collect_gradients(gradients, [frame.values for frame in frames])
            run_steps(frames[0], once)
        for position in plan.layout.persistables.keys() - written:
            for frame in frames[1:]:
                frame.values[position] = frames[0].values[position]
        return [
            [
                get_fetched(plan, frame, name, position, False)
                for frame in frames
                if frame.values[position] is not None
            ]
            for name, position in zip(fetches, plan.fetch_positions, strict=True)
        ]

    def _plan(self, feeds: Mapping[str, Any], fetches: list[str]) -> _CopiesPlan:
        key = ("parallel", frozenset(feeds), tuple(fetches))
        found = self.program.plans.get(key)
        if found is None:
            block = self.program.global_block()
            names = find_gradients(self.program)
            plan = Plan(self.program, sorted(feeds), [*fetches, *names], None)
            plan.fetch_positions = plan.fetch_positions[: len(fetches)]
            each_copy = [step for step in plan.steps if not _runs_once(step.op)]
            outputs = [name for step in each_copy for name in collect_writes(step.op)]
            written = {plan.layout.get_position(block, name) for name in outputs}
            found = _CopiesPlan(
                plan,
                each_copy,
                [step for step in plan.steps if _runs_once(step.op)],
                [plan.layout.get_position(block, name) for name in names],
                written & plan.layout.persistables.keys(),
            )
            self.program.plans[key] = found
        return found

    def _collect_gradients(self, gradients: list[int], values: list[list[Any]]) -> None:
        """Put the mean, or the sum, of every gradient of a parameter into the first copy."""
        count = len(values) if self.average else 1
        for position in gradients:
            parts = [each[position] for each in values]
            if isinstance(parts[0], SelectedRows):
                rows = np.concatenate([part.row_array for part in parts])
                array = np.concatenate([np.asarray(part.get_tensor()) for part in parts])
                array /= array.dtype.type(count)
                values[0][position] = SelectedRows(rows, parts[0].height(), array)
            elif parts[0] is not None:
                values[0][position] = sum(parts[1:], parts[0]) / parts[0].dtype.type(count)

    def _split_feed(self, feed: Any) -> list[Mapping[str, Any]]:
        """Return one feed per copy: the dicts of a list, or the parts of a dict that is split.

        Without gradients there may be fewer feeds than copies, as for the last batches of a DataLoader.

        Raises FeedError and EnforceNotMet for feeds that cannot be split.
        """
        if feed is None:
            return [{}] * self.copies
        if isinstance(feed, list | tuple):
            if not 0 < len(feed) <= self.copies or (len(feed) < self.copies and find_gradients(self.program)):
                raise FeedError(
                    f"feed is a list of {len(feed)} dicts, expected {self.copies}, one for each place",
                    hint="feed one dict with the whole batch, which is split; or build with "
                    f"places=[...] of {len(feed)}",
                )
            return list(feed)
        if self.copies == 1:
            return [feed]
        parts_by_name = {name: split_batch(name, value, self.copies) for name, value in feed.items()}
        counts = {name: len(parts) for name, parts in parts_by_name.items()}
        found = min(counts.values(), default=self.copies)
        if len(set(counts.values())) > 1:
            raise FeedError(
                f"the feeds cannot be cut into equally many parts for {self.copies} copies: {counts}"
            )
        if found < self.copies and find_gradients(self.program):
            name = min(counts)
            raise EnforceNotMet(
                f"the batch fed to {name!r} is cut into {found} parts, fewer than the {self.copies} copies",
                hint="feed larger batches, or set CPU_NUM to a smaller value",
            )
        return [{name: parts[i] for name, parts in parts_by_name.items()} for i in range(found)]


def _separate(frame: Frame, written: set[int]) -> None:
    """Give a frame its own copy of the persistables it writes; only the first frame writes into the scope."""
    for position in written:
        holder = ScopeVariable(frame.layout.persistables[position].name)
        value = frame.values[position]
        if isinstance(value, np.ndarray):
            value = value.copy()
            holder.set_value(LoDTensor(value, frame.lods.get(position)))
        frame.holders[position], frame.values[position] = holder, value


def _pass_on(source: Frame, target: Frame, positions: set[int]) -> None:
    """Let a frame continue with the values that another frame wrote."""
    for position in positions:
        target.values[position] = source.values[position]


def _runs_once(op: Any) -> bool:
    """Return whether an operator runs once, after the gradients: updates, learning rates, sends."""
    after = OpRole.Optimize | OpRole.LRSched | OpRole.RPC | OpRole.Dist
    return bool(op.attrs.get("op_role", 0) & after)


def find_gradients(program: Program) -> list[str]:
    """Return the gradients of parameters, as the backward pass marked them."""
    found: dict[str, None] = {}
    for op in program.global_block().ops:
        if op.attrs.get("op_role", 0) & OpRole.Backward:
            found.update(dict.fromkeys((op.attrs.get("op_role_var") or [])[1::2]))
    return list(found)


def split_batch(name: str, value: object, copies: int) -> list[Any]:
    """Split a fed batch for the copies as Fluid does; return the parts.

    All parts but the last have the same number of rows, or of sequences of a LoD's first level. A small batch
    gives fewer parts than copies. Raises EnforceNotMet for an empty batch.
    """
    lod = value._lod if isinstance(value, LoDTensor) else []
    array = np.asarray(value)
    count = len(lod[0]) - 1 if lod else len(array)
    if count < 1:
        raise EnforceNotMet(f"the batch fed to {name!r} has no rows")
    size = -(-count // copies)
    spans = [(start, min(start + size, count)) for start in range(0, count, size)]
    if not lod:
        return [array[start:stop] for start, stop in spans]
    return [_cut_sequences(array, lod, start, stop) for start, stop in spans]


def _cut_sequences(array: NDArray[Any], lod: LoD, start: int, stop: int) -> LoDTensor:
    """Return some sequences of the first level, with all LoD levels below."""
    levels = []
    for level in lod:
        levels.append([offset - level[start] for offset in level[start : stop + 1]])
        start, stop = level[start], level[stop]
    return LoDTensor(array[start:stop], levels)
