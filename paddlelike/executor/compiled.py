"""CompiledProgram and ParallelExecutor: the same program, over one or several copies of the batch.

Fluid runs one copy per device and averages the gradients; see :mod:`paddlelike.executor.copies`. The
environment variable CPU_NUM (default 1) sets the number of copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.core import CPUPlace, LoDTensor, Place, Scope, global_scope
from paddlelike.core.places import cpu_places
from paddlelike.errors import EnforceNotMet
from paddlelike.executor.copies import Copies
from paddlelike.executor.exchange.fetches import collect_names, view_fetched
from paddlelike.executor.run import Executor
from paddlelike.executor.startup import choose_backend, explain_pieces
from paddlelike.executor.strategies import BuildStrategy, ExecutionStrategy
from paddlelike.foundation.near_names import suggest_names
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program, Variable, default_main_program
from paddlelike.hooks import Hook

if TYPE_CHECKING:
    from paddlelike.framework.passes.ir_graph import Graph
    from paddlelike.framework.typing import Feed, FetchList

_distribute_program: Final[Hook[[Program, BuildStrategy, Scope], AbstractContextManager[Program]]] = Hook(
    "distribute_program"
)
_load_jax: Final[Hook[[], Any]] = Hook("load_jax")


class CompiledProgram:
    """A program with options: :meth:`with_data_parallel` runs it on several pieces of the batch,
    :meth:`with_backend` with another engine.

    Parameters
    ----------
    program_or_graph
        The Program to run with these options, or a ``core.Graph``, whose program at this time runs.
    build_strategy
        A BuildStrategy; None for the defaults.

    Raises
    ------
    TypeError
        ``program_or_graph`` is neither a program nor a graph.

    >>> import paddlelike as fluid
    >>> loss = fluid.layers.mean(fluid.data("x", [None, 4]))
    >>> compiled = fluid.CompiledProgram(loss.block.program).with_data_parallel(loss_name=loss.name)
    """

    def __init__(
        self, program_or_graph: Program | Graph, build_strategy: BuildStrategy | None = None
    ) -> None:
        program = program_or_graph
        if not isinstance(program, Program):
            if not hasattr(program, "to_program"):
                raise TypeError(f"CompiledProgram: program_or_graph must be a Program, got {program!r}")
            program = program.to_program()
        self._program: Program = program
        self._build_strategy = build_strategy
        self._places: Sequence[Place] = ()
        self._parallel: Copies | None = None
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
            _load_jax.function()
        self._backend = backend
        return self

    def explain(self, feed: Iterable[str] | None = None, fetch_list: FetchList | None = None) -> str:
        """Return which operators :meth:`with_backend` compiles together, and why numpy runs the others.

        ``feed`` and ``fetch_list`` are the same as for the run; only the names in ``feed`` count.

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
        self,
        executor: Executor,
        scope: Scope,
        feed: Iterable[str] | None,
        fetch_list: FetchList | None,
        repeat: int,
    ) -> str:
        """Return the explanation for :meth:`Executor.explain`, on the device of that executor."""
        fetches = collect_names(fetch_list)
        if self._parallel is not None and self._parallel.copies > 1:
            return self._parallel.explain(list(feed or ()), fetches, self._find_devices())
        return explain_pieces(self._program, feed, fetches, executor.place)

    def with_data_parallel(
        self,
        loss_name: str | None = None,
        build_strategy: BuildStrategy | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        share_vars_from: CompiledProgram | None = None,
        places: Place | Sequence[Place] | None = None,
    ) -> CompiledProgram:
        """Run as many copies as there are ``places`` (None means CPU_NUM copies). Return self.

        With ``build_strategy.num_trainers`` above 1, the program runs as worker ``trainer_id`` of a job whose
        startup program ``fluid.DistributeTranspiler`` made in the mode nccl2; gradients are averaged over all
        workers.
        """
        if isinstance(loss_name, Variable):
            loss_name = loss_name.name
        known = self._program.global_block().vars
        if loss_name and loss_name not in known:
            near = suggest_names(loss_name, known, lead="; ")
            warn_user(f"the program has no variable {loss_name!r}, so loss_name has no effect{near}")
        places = [places] if isinstance(places, Place) else places
        self._places = cpu_places() if places is None else list(places)
        strategy = self._build_strategy if build_strategy is None else build_strategy
        self._build_strategy = strategy
        scaling = BuildStrategy.GradientScaleStrategy
        average = strategy is None or strategy.gradient_scale_strategy == scaling.CoeffNumDevice
        shared = strategy is not None and strategy.reduce_strategy == BuildStrategy.ReduceStrategy.Reduce
        self._parallel = Copies(self._program, len(self._places), average=average, shared=shared)
        return self

    def _run(
        self,
        executor: Executor,
        scope: Scope,
        feed: Feed | Sequence[Feed] | None,
        fetch_list: FetchList | None,
        return_numpy: bool,
        return_merged: bool,
        use_prune: bool,
    ) -> list[Any]:
        if self._parallel is None:
            return executor._run_program(
                self._program, feed, fetch_list, scope, return_numpy, use_prune, self._backend
            )
        fetches = collect_names(fetch_list)
        with ExitStack() as step:
            if self._build_strategy is not None and self._build_strategy.num_trainers > 1:
                made = _distribute_program.function(self._program, self._build_strategy, scope)
                self._parallel.program = step.enter_context(made)
            values = self._parallel.run(executor, scope, feed, fetches, self._find_devices())
        if not return_merged:
            return [[_convert(v, return_numpy) for v in each] for each in values]
        return [_convert(_merge(each), return_numpy) for each in values]

    def _find_devices(self) -> Sequence[Place]:
        """Return the places where JAX runs the copies; none if numpy does."""
        backend = choose_backend(self._places[0] if self._places else CPUPlace(), self._backend)
        return self._places if backend == "jax" else ()


class ParallelExecutor:
    """Fluid's older interface to run a program on several pieces of the batch.

    Parameters
    ----------
    use_cuda
        Must be False: CUDA kernels do not exist here.
    loss_name
        The name of the loss; None for a program without gradients.
    main_program
        The program; None for the default main program.
    share_vars_from
        It is not needed: executors share the variables of their scope.
    exec_strategy, build_strategy
        Options of the run; None for the defaults. Options for threads and memory have no effect.
    num_trainers
        The number of trainers of the job.
    trainer_id
        The index of this trainer, from 0.
    scope
        The scope of the variables; None for the global scope.

    Raises
    ------
    EnforceNotMet
        ``use_cuda`` is True.

    >>> import paddlelike as fluid
    >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
    >>> exe = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name)
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
        if num_trainers > 1:
            build_strategy = BuildStrategy() if build_strategy is None else build_strategy
            build_strategy.num_trainers, build_strategy.trainer_id = num_trainers, trainer_id
        self._scope = scope
        self._executor = Executor()
        self._compiled = CompiledProgram(program).with_data_parallel(loss_name, build_strategy, exec_strategy)

    @property
    def device_count(self) -> int:
        """The number of copies."""
        return len(self._compiled._places)

    def run(
        self,
        fetch_list: FetchList,
        feed: Feed | Sequence[Feed] | None = None,
        feed_dict: Feed | Sequence[Feed] | None = None,
        return_numpy: bool = True,
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


def _merge(values: list[Any]) -> object:
    """Return the value of all copies: their rows one after the other, with their sequences."""
    if len(values) == 1:
        return values[0]
    merged = LoDTensor(np.concatenate([np.asarray(value) for value in values]))
    lengths = [value.recursive_sequence_lengths() for value in values if isinstance(value, LoDTensor)]
    merged.set_recursive_sequence_lengths([list(chain(*level)) for level in zip(*lengths, strict=True)])
    return merged


def _convert(value: Any, return_numpy: bool) -> object:
    return view_fetched(np.array(value)) if return_numpy and isinstance(value, LoDTensor) else value
