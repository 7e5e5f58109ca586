"""CompiledProgram and ParallelExecutor: the same program, over one or several copies of the batch.

Fluid runs one copy per device and averages the gradients. Here the copies run one after the other on the
CPU: the forward and backward part once per piece of the batch, the gradients averaged, then the update
part once. What the forward part writes besides (moving means, counters) is taken from the first copy, as in
Fluid. Environment variable CPU_NUM (1 by default) says how many copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from paddlelike.core.places import Place, cpu_places
from paddlelike.core.scope import Scope, ScopeVariable, global_scope
from paddlelike.core.tensor import LoDTensor, SelectedRows
from paddlelike.errors import EnforceNotMet, FeedError
from paddlelike.executor.feeds import put_feeds
from paddlelike.executor.fetches import fetch_names, fetched
from paddlelike.executor.files import run_files
from paddlelike.executor.frame import Frame
from paddlelike.executor.plan import Plan, Step
from paddlelike.executor.run import Executor
from paddlelike.executor.steps import run_steps
from paddlelike.executor.strategies import BuildStrategy, ExecutionStrategy
from paddlelike.framework.graph.guards import default_main_program
from paddlelike.framework.graph.operator import OpRole
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.passes.views import collect_writes

__all__ = ["CompiledProgram", "ParallelExecutor"]


class CompiledProgram:
    """A program with options; :meth:`with_data_parallel` runs it over several copies of the batch."""

    def __init__(self, program_or_graph: Any, build_strategy: BuildStrategy | None = None) -> None:
        if not isinstance(program_or_graph, Program):
            raise TypeError(f"CompiledProgram takes a Program, not {program_or_graph!r}")
        self._program = program_or_graph
        self._build_strategy = build_strategy
        self._places: Sequence[Place] = ()
        self._loss_name: str | None = None
        self._parallel: _DataParallel | None = None

    def with_data_parallel(
        self,
        loss_name: str | None = None,
        build_strategy: BuildStrategy | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        share_vars_from: CompiledProgram | None = None,
        places: Sequence[Place] | None = None,
    ) -> CompiledProgram:
        """Run over as many copies as there are ``places`` (None: CPU_NUM)."""
        if isinstance(loss_name, Variable):
            loss_name = loss_name.name
        self._loss_name = loss_name
        self._places = cpu_places() if places is None else list(places)
        strategy = self._build_strategy if build_strategy is None else build_strategy
        scaling = BuildStrategy.GradientScaleStrategy
        average = strategy is None or strategy.gradient_scale_strategy == scaling.CoeffNumDevice
        self._parallel = _DataParallel(self._program, len(self._places), average=average)
        return self

    def _run(
        self,
        executor: Executor,
        scope: Scope,
        feed: Any,
        fetch_list: Any,
        return_numpy: bool,
        return_merged: bool,
    ) -> list[Any]:
        if self._parallel is None:
            return executor.run(
                self._program, feed=feed, fetch_list=fetch_list, scope=scope, return_numpy=return_numpy
            )
        fetches = fetch_names(fetch_list)
        values = self._parallel.run(executor, scope, feed, fetches)
        if not return_merged:
            return [[_given(v, return_numpy) for v in each] for each in values]
        return [_given(_merged(each), return_numpy) for each in values]


class ParallelExecutor:
    """Fluid's older way to run a program over several copies of the batch."""

    def __init__(
        self,
        use_cuda: bool,
        loss_name: str | None = None,
        main_program: Program | None = None,
        share_vars_from: ParallelExecutor | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        build_strategy: BuildStrategy | None = None,
        num_trainers: int = 1,
        trainer_id: int = 0,
        scope: Scope | None = None,
    ) -> None:
        if use_cuda:
            raise EnforceNotMet("ParallelExecutor: there are no GPU kernels here", hint="pass use_cuda=False")
        program = default_main_program() if main_program is None else main_program
        self._scope = scope
        self._executor = Executor()
        self._compiled = CompiledProgram(program).with_data_parallel(loss_name, build_strategy, exec_strategy)

    @property
    def device_count(self) -> int:
        """The number of copies."""
        return len(self._compiled._places)

    def run(
        self, fetch_list: Any, feed: Any = None, feed_dict: Any = None, return_numpy: bool = True
    ) -> list[Any]:
        """Run the program once; see :meth:`Executor.run`."""
        return self._executor.run(
            self._compiled,
            feed=feed_dict if feed is None else feed,
            fetch_list=fetch_list,
            scope=global_scope() if self._scope is None else self._scope,
            return_numpy=return_numpy,
        )

    def drop_local_exe_scopes(self) -> None:
        """Nothing to drop: temporaries die with each run."""


class _CopiesPlan(NamedTuple):
    """A plan and its parts: what each copy runs, what is run once afterwards."""

    plan: Plan
    each_copy: list[Step]
    once: list[Step]
    gradients: list[int]
    written: set[int]  # persistables that each copy writes


class _DataParallel:
    """One program over several pieces of the batch."""

    def __init__(self, program: Program, copies: int, *, average: bool) -> None:
        self.program = program
        self.copies = copies
        self.average = average

    def run(self, executor: Executor, scope: Scope, feed: Any, fetches: list[str]) -> list[list[Any]]:
        """For every fetch, its value in each copy."""
        pieces = self._pieces(feed)
        if self.copies == 1:
            values = executor._run(self.program, pieces[0], fetches, scope, return_numpy=False)
            return [[value] for value in values]
        return self._run_copies(executor, scope, pieces, fetches)

    def _run_copies(
        self, executor: Executor, scope: Scope, pieces: list[Mapping[str, Any]], fetches: list[str]
    ) -> list[list[Any]]:
        plan, each_copy, once, gradients, written = self._plan(pieces[0], fetches)
        with run_files(plan, scope, executor._services) as services:
            frames = [plan.begin(scope, services) for _ in pieces]
            for frame in frames[1:]:
                _keep_apart(frame, written)
            for frame, piece in zip(frames, pieces, strict=True):
                put_feeds(frame, piece)
                run_steps(frame, each_copy)
            self._collect(gradients, [frame.values for frame in frames])
            run_steps(frames[0], once)
        for number in plan.persistables.keys() - written:
            for frame in frames[1:]:
                frame.values[number] = frames[0].values[number]
        return [
            [fetched(frame, name, number, False) for frame in frames if frame.values[number] is not None]
            for name, number in zip(fetches, plan.fetch_numbers, strict=True)
        ]

    def _plan(self, feeds: Mapping[str, Any], fetches: list[str]) -> _CopiesPlan:
        key = ("parallel", frozenset(feeds), tuple(fetches))
        found = self.program.plans.get(key)
        if found is None:
            block = self.program.global_block()
            names = _gradients(self.program)
            plan = Plan(self.program, sorted(feeds), [*fetches, *names], None)
            plan.fetch_numbers = plan.fetch_numbers[: len(fetches)]
            each_copy = [step for step in plan.steps if not _updates(step.op)]
            found = _CopiesPlan(
                plan,
                each_copy,
                [step for step in plan.steps if _updates(step.op)],
                [plan.number(block, name) for name in names],
                {plan.number(block, name) for step in each_copy for name in collect_writes(step.op)}
                & plan.persistables.keys(),
            )
            self.program.plans[key] = found
        return found

    def _collect(self, gradients: list[int], values: list[list[Any]]) -> None:
        """Put the mean, or the sum, of every gradient of a parameter into the first copy."""
        count = len(values) if self.average else 1
        for number in gradients:
            parts = [each[number] for each in values]
            if isinstance(parts[0], SelectedRows):
                rows = np.concatenate([part.row_array for part in parts])
                array = np.concatenate([np.asarray(part.get_tensor()) for part in parts])
                array /= array.dtype.type(count)
                values[0][number] = SelectedRows(rows, parts[0].height(), array)
            elif parts[0] is not None:
                values[0][number] = sum(parts[1:], parts[0]) / parts[0].dtype.type(count)

    def _pieces(self, feed: Any) -> list[Mapping[str, Any]]:
        """One feed per copy: a list of dicts as it is (the last may be shorter), a dict cut into parts."""
        if feed is None:
            return [{}] * self.copies
        if isinstance(feed, list | tuple):
            if not 0 < len(feed) <= self.copies:
                raise FeedError(f"feed is a list of {len(feed)} dicts, there are {self.copies} copies")
            return list(feed)
        if self.copies == 1:
            return [feed]
        cut = {name: _split(name, value, self.copies) for name, value in feed.items()}
        return [{name: parts[i] for name, parts in cut.items()} for i in range(self.copies)]


def _keep_apart(frame: Frame, written: set[int]) -> None:
    """Give a copy values of its own for what it writes, so that the scope gets them from the first copy."""
    for number in written:
        holder = ScopeVariable(frame.plan.persistables[number].name)
        value = frame.values[number]
        if isinstance(value, np.ndarray):
            value = value.copy()
            holder.set_value(LoDTensor(value, frame.lods.get(number)))
        frame.holders[number], frame.values[number] = holder, value


def _split(name: str, value: Any, copies: int) -> list[Any]:
    if isinstance(value, LoDTensor) and value._lod:
        raise FeedError(
            f"the LoD tensor fed to {name!r} cannot be cut into {copies} pieces",
            hint="feed a list with one dict for each copy",
        )
    array = np.asarray(value)
    if len(array) < copies:
        raise EnforceNotMet(
            f"the batch fed to {name!r} has {len(array)} rows, fewer than the {copies} copies",
            hint="feed larger batches, or set CPU_NUM to a smaller number",
        )
    return np.array_split(array, copies)


def _updates(op: Any) -> bool:
    """Whether an operator comes after the gradients: it updates, computes a learning rate, or sends."""
    after = OpRole.Optimize | OpRole.LRSched | OpRole.RPC | OpRole.Dist
    return bool(op.attrs.get("op_role", 0) & after)


def _gradients(program: Program) -> list[str]:
    """The gradients of parameters, as the backward pass marked them."""
    found: dict[str, None] = {}
    for op in program.global_block().ops:
        if op.attrs.get("op_role", 0) & OpRole.Backward:
            found.update(dict.fromkeys((op.attrs.get("op_role_var") or [])[1::2]))
    return list(found)


def _merged(values: list[Any]) -> Any:
    if len(values) == 1:
        return values[0]
    return LoDTensor(np.concatenate([np.asarray(value) for value in values]))


def _given(value: Any, return_numpy: bool) -> Any:
    return np.array(value) if return_numpy and isinstance(value, LoDTensor) else value
