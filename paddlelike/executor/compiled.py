"""CompiledProgram and ParallelExecutor: the same program, over one or several copies of the batch.

Fluid runs one copy per device and averages the gradients. Here the copies run one after the other on the
CPU: the forward and backward part once per piece of the batch, the gradients averaged, then the update
part once. Other persistables that the forward part writes (moving means, counters) are taken from the first
copy; with ``ReduceStrategy.Reduce`` the copies share them, so that an AUC counts all pieces: as in Fluid.
The environment variable CPU_NUM (default 1) sets the count of copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from paddlelike.core.places import CPUPlace, Place, cpu_places
from paddlelike.core.scope import Scope, ScopeVariable, global_scope
from paddlelike.core.tensor import LoDTensor, SelectedRows
from paddlelike.errors import EnforceNotMet, FeedError
from paddlelike.executor.backends import choose_backend
from paddlelike.executor.feeds import put_feeds
from paddlelike.executor.fetches import collect_names, get_fetched, view_fetched
from paddlelike.executor.files import provide_files
from paddlelike.executor.parts import split_batch
from paddlelike.executor.plans.frame import Frame, Step
from paddlelike.executor.plans.plan import Plan
from paddlelike.executor.run import Executor
from paddlelike.executor.steps import run_steps
from paddlelike.executor.strategies import BuildStrategy, ExecutionStrategy
from paddlelike.framework.graph.guards import default_main_program
from paddlelike.framework.graph.operator import OpRole
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.passes.views import collect_writes
from paddlelike.hooks import find_provider

__all__ = ["CompiledProgram", "ParallelExecutor"]


class CompiledProgram:
    """A program with options: :meth:`with_data_parallel` runs it on several pieces of the batch,
    :meth:`with_backend` with another engine.

    Raises TypeError for anything but a Program.
    """

    def __init__(self, program_or_graph: Any, build_strategy: BuildStrategy | None = None) -> None:
        if not isinstance(program_or_graph, Program):
            raise TypeError(f"CompiledProgram: program_or_graph must be a Program, got {program_or_graph!r}")
        self._program = program_or_graph
        self._build_strategy = build_strategy
        self._places: Sequence[Place] = ()
        self._loss_name: str | None = None
        self._parallel: _DataParallel | None = None
        self._backend: str | None = None

    def with_backend(self, backend: str) -> CompiledProgram:
        """Run the program with ``"jax"``, as XLA computations, or with ``"numpy"``. Return self.

        Names, scopes and saved files are the same with both. Without this call the flag ``FLAGS_backend``
        decides. Raises ValueError for another name, ExtraMissingError without JAX.

        >>> import paddlelike as fluid
        >>> program = fluid.CompiledProgram(fluid.default_main_program()).with_backend("numpy")
        """
        choose_backend(CPUPlace(), backend)
        if backend == "jax":
            load_jax = find_provider("load_jax")
            assert load_jax is not None
            load_jax()
        self._backend = backend
        return self

    def explain(self, feed: Iterable[str] | None = None, fetch_list: Any = None) -> str:
        """Return which operators :meth:`with_backend` compiles together, and why numpy runs the others.

        ``feed`` and ``fetch_list`` are those of the run that is meant; of ``feed`` the names count.

        >>> import paddlelike as fluid
        >>> x = fluid.data("x", [None, 2])
        >>> out = fluid.layers.Print(fluid.layers.scale(x, 2.0))
        >>> program = fluid.CompiledProgram(fluid.default_main_program()).with_backend("jax")
        >>> print(program.explain(["x"], [out]))
        piece 1: 1 operator (scale), not compiled yet
        numpy: print: it reaches outside of the program
        """
        return self._explain(Executor(), global_scope(), feed, fetch_list, 0)

    def _explain(
        self, executor: Executor, scope: Scope, feed: Iterable[str] | None, fetch_list: Any, repeat: int
    ) -> str:
        """Return the same to :meth:`Executor.explain`, for the place of that executor."""
        explain = find_provider("explain_compiled")
        assert explain is not None
        return str(explain(self._program, list(feed or ()), collect_names(fetch_list), executor.place))

    def with_data_parallel(
        self,
        loss_name: str | None = None,
        build_strategy: BuildStrategy | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        share_vars_from: CompiledProgram | None = None,
        places: Sequence[Place] | None = None,
    ) -> CompiledProgram:
        """Run as many copies as there are ``places`` (None: as CPU_NUM says). Return self."""
        if isinstance(loss_name, Variable):
            loss_name = loss_name.name
        self._loss_name = loss_name
        self._places = cpu_places() if places is None else list(places)
        strategy = self._build_strategy if build_strategy is None else build_strategy
        scaling = BuildStrategy.GradientScaleStrategy
        average = strategy is None or strategy.gradient_scale_strategy == scaling.CoeffNumDevice
        shared = strategy is not None and strategy.reduce_strategy == BuildStrategy.ReduceStrategy.Reduce
        self._parallel = _DataParallel(self._program, len(self._places), average=average, shared=shared)
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
            return executor._run_program(
                self._program, feed, fetch_list, scope, return_numpy, backend=self._backend
            )
        fetches = collect_names(fetch_list)
        backend = choose_backend(self._places[0] if self._places else CPUPlace(), self._backend)
        values = self._parallel.run(executor, scope, feed, fetches, self._places if backend == "jax" else ())
        if not return_merged:
            return [[_convert(v, return_numpy) for v in each] for each in values]
        return [_convert(_merge(each), return_numpy) for each in values]


class ParallelExecutor:
    """Fluid's older interface to run a program on several pieces of the batch.

    Raises EnforceNotMet for ``use_cuda=True``.
    """

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
        """The count of copies."""
        return len(self._compiled._places)

    def run(
        self, fetch_list: Any, feed: Any = None, feed_dict: Any = None, return_numpy: bool = True
    ) -> list[Any]:
        """Run the program once. Returns and raises as :meth:`Executor.run` does."""
        return self._executor.run(
            self._compiled,
            feed=feed_dict if feed is None else feed,
            fetch_list=fetch_list,
            scope=global_scope() if self._scope is None else self._scope,
            return_numpy=return_numpy,
        )

    def drop_local_exe_scopes(self) -> None:
        """Do nothing: temporaries are released after each run."""


class _CopiesPlan(NamedTuple):
    """A plan, split into the steps that each copy runs and the steps that run once afterwards."""

    plan: Plan
    each_copy: list[Step]
    once: list[Step]
    gradients: list[int]
    written: set[int]  # persistables that each copy writes


class _DataParallel:
    """One program, run on several pieces of the batch.

    ``average``: take the mean of the gradients, not the sum. ``shared``: the copies write the same
    persistables.
    """

    def __init__(self, program: Program, copies: int, *, average: bool, shared: bool) -> None:
        self.program = program
        self.copies = copies
        self.average = average
        self.shared = shared

    def run(
        self, executor: Executor, scope: Scope, feed: Any, fetches: list[str], devices: Sequence[Place]
    ) -> list[list[Any]]:
        """Return for every fetch its values in all copies; ``devices``: where JAX runs them, or none."""
        pieces = self._split_feed(feed)
        if self.copies == 1:
            backend = "jax" if devices else "numpy"
            values = executor._run(
                self.program, pieces[0], fetches, scope, return_numpy=False, backend=backend
            )
            return [[value] for value in values]
        if devices and not self.shared:
            run_copies = find_provider("run_copies")
            assert run_copies is not None
            gradients = _find_gradients(self.program)
            found = run_copies(
                self.program, pieces, fetches, scope, devices, gradients,
                average=self.average, runs_once=_runs_once,
            )  # fmt: skip
            if found is not None:
                return list(found)
        return self._run_copies(executor, scope, pieces, fetches)

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
            names = _find_gradients(self.program)
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

        Raises FeedError and EnforceNotMet for feeds that cannot be split.
        """
        if feed is None:
            return [{}] * self.copies
        if isinstance(feed, list | tuple):
            if not 0 < len(feed) <= self.copies:
                raise FeedError(f"feed is a list of {len(feed)} dicts, expected at most {self.copies}")
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
        if found < self.copies and _find_gradients(self.program):
            name = min(counts)
            raise EnforceNotMet(
                f"the batch fed to {name!r} is cut into {found} parts, fewer than the {self.copies} copies",
                hint="feed larger batches, or set CPU_NUM to a smaller value",
            )
        return [{name: parts[i] for name, parts in parts_by_name.items()} for i in range(found)]


def _separate(frame: Frame, written: set[int]) -> None:
    """Give a frame its own copy of the persistables it writes: the scope gets those of the first frame."""
    for position in written:
        holder = ScopeVariable(frame.layout.persistables[position].name)
        value = frame.values[position]
        if isinstance(value, np.ndarray):
            value = value.copy()
            holder.set_value(LoDTensor(value, frame.lods.get(position)))
        frame.holders[position], frame.values[position] = holder, value


def _pass_on(source: Frame, target: Frame, positions: set[int]) -> None:
    """Let a frame go on with what another has written."""
    for position in positions:
        target.values[position] = source.values[position]


def _runs_once(op: Any) -> bool:
    """Return whether an operator runs once, after the gradients: updates, learning rates, sends."""
    after = OpRole.Optimize | OpRole.LRSched | OpRole.RPC | OpRole.Dist
    return bool(op.attrs.get("op_role", 0) & after)


def _find_gradients(program: Program) -> list[str]:
    """Return the gradients of parameters, as the backward pass marked them."""
    found: dict[str, None] = {}
    for op in program.global_block().ops:
        if op.attrs.get("op_role", 0) & OpRole.Backward:
            found.update(dict.fromkeys((op.attrs.get("op_role_var") or [])[1::2]))
    return list(found)


def _merge(values: list[Any]) -> Any:
    if len(values) == 1:
        return values[0]
    return LoDTensor(np.concatenate([np.asarray(value) for value in values]))


def _convert(value: Any, return_numpy: bool) -> Any:
    return view_fetched(np.array(value)) if return_numpy and isinstance(value, LoDTensor) else value
