"""The Executor: runs programs against a scope."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, overload
from weakref import ref

from paddlelike.core import Place, Scope, global_scope, memory
from paddlelike.core.places import require_device
from paddlelike.errors import EnforceNotMet, UnsupportedError
from paddlelike.executor import profile
from paddlelike.executor.exchange.feeds import get_single_feed, warn_unknown
from paddlelike.executor.exchange.fetches import (
    collect_names,
    copy_value,
    find_others,
    find_updates,
    get_fetched,
    holds_value,
    read_fetch_list,
)
from paddlelike.executor.exchange.files import RemoteSwitch, provide_files
from paddlelike.executor.plans.cached import get_plan
from paddlelike.executor.startup import (
    choose_backend,
    explain_pieces,
    warn_alone,
    warn_overwriting,
)
from paddlelike.executor.steps import run_plan
from paddlelike.foundation.display import Displayed
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Operator, Program, default_main_program
from paddlelike.hooks import Hook

if TYPE_CHECKING:
    from paddlelike.core import Array, LoDTensor
    from paddlelike.executor.datasets import Batches, FetchHandler
    from paddlelike.executor.explain import Explanation
    from paddlelike.framework import Variable
    from paddlelike.framework.typing import Feed, FetchList, ProgramLike

_run_compiled: Final[Hook[..., list[Any] | None]] = Hook("run_compiled")


class Executor(Displayed):
    """Runs programs.

    Parameters
    ----------
    place
        A CPUPlace, or a CUDAPlace, on which JAX runs the programs; None for a CPUPlace.

    Raises
    ------
    UnsupportedError
        ``place`` is not a place that programs run on.

    >>> import paddlelike as fluid
    >>> main = fluid.Program()
    >>> with fluid.program_guard(main):
    ...     six = 3.0 * fluid.layers.fill_constant([1], "float32", 2.0)
    >>> fluid.Executor(fluid.CPUPlace()).run(main, fetch_list=[six])
    [array([6.], dtype=float32)]
    """

    def __init__(self, place: Place | None = None) -> None:
        self.place = require_device(place)
        memory.keep_freed_memory()
        self._closed = False
        self._remote = RemoteSwitch()
        self._services: dict[str, Any] = {"remote": self._remote}

    def __repr__(self) -> str:
        return f"Executor({self.place}{', closed' if self._closed else ''})"

    def close(self) -> None:
        """Close this executor, which then cannot run programs, and leave a job of parameter servers.

        >>> import paddlelike as fluid
        >>> exe = fluid.Executor()
        >>> exe.close()
        >>> exe
        Executor(CPUPlace, closed)
        """
        if not self._closed:
            self._closed = True
            self._remote.close()

    @overload
    def run(
        self,
        program: ProgramLike | None = None,
        feed: Feed | Sequence[Feed] | None = None,
        fetch_list: FetchList | None = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Scope | None = None,
        return_numpy: Literal[True] = True,
        use_program_cache: bool = False,
        return_merged: Literal[True] = True,
        use_prune: bool = False,
    ) -> list[Array]: ...
    @overload
    def run(
        self,
        program: ProgramLike | None = None,
        feed: Feed | Sequence[Feed] | None = None,
        fetch_list: FetchList | None = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Scope | None = None,
        *,
        return_numpy: Literal[False],
        use_program_cache: bool = False,
        return_merged: Literal[True] = True,
        use_prune: bool = False,
    ) -> list[LoDTensor]: ...
    @overload
    def run(
        self,
        program: ProgramLike | None = None,
        feed: Feed | Sequence[Feed] | None = None,
        fetch_list: FetchList | None = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Scope | None = None,
        return_numpy: bool = True,
        use_program_cache: bool = False,
        return_merged: bool = True,
        use_prune: bool = False,
    ) -> list[Any]: ...
    def run(
        self,
        program: ProgramLike | None = None,
        feed: Feed | Sequence[Feed] | None = None,
        fetch_list: FetchList | None = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Scope | None = None,
        return_numpy: bool = True,
        use_program_cache: bool = False,
        return_merged: bool = True,
        use_prune: bool = False,
    ) -> list[Any]:
        """Run a program once.

        Parameters
        ----------
        program
            A Program or CompiledProgram; None for the default main program.
        feed
            ``{name: array}``; a LoDTensor keeps its LoD, a number becomes shape ``[1]``.
        fetch_list
            Variables, or their names, whose values are returned in that order. It may contain the result of
            ``minimize``: then only its updates run, and the operators that the fetches need.
        feed_var_name, fetch_var_name, use_program_cache
            Accepted for Fluid; execution plans are always cached.
        scope
            The scope of persistables; None for the global scope.
        return_numpy
            Whether values are arrays of numpy, otherwise LoDTensors. A value with a LoD needs False.
        return_merged
            Whether a CompiledProgram on several places merges their values; if False, every fetch is a list
            with one value per place.
        use_prune
            Whether to run only the operators that the fetches and the update operators need.

        Returns
        -------
        list
            The fetched values in the order of ``fetch_list``: arrays of numpy, or LoDTensors without
            ``return_numpy``. Each has the shape that it has in this run.

        Raises
        ------
        FeedError
            A fed value does not fit its variable.
        UntrustedError
            The program was read from bytes, and holds operators that reach outside of it.
        OperatorError
            An operator failed; the message names the operator, its variables and the line that created it.
        NotInitializedError
            A variable that an operator reads, or that is fetched, holds no value.
        EnforceNotMet
            A fetched name is unknown, or the program is empty.
        RuntimeError
            This executor is closed.
        TypeError
            An argument has another type.

        >>> import numpy as np
        >>> import paddlelike as fluid
        >>> x = fluid.data("x", [None, 3])
        >>> total = fluid.layers.reduce_sum(x)
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[total])
        [array([6.], dtype=float32)]
        """
        if self._closed:
            raise RuntimeError("Executor.run: this Executor is closed; create a new one")
        if program is None:
            program = default_main_program()
        scope = global_scope() if scope is None else scope
        if not isinstance(program, Program):
            runner = getattr(program, "_run", None)
            if runner is None:
                raise TypeError(_describe_no_program(program))
            return list(runner(self, scope, feed, fetch_list, return_numpy, return_merged, use_prune))
        if program._workers > 1:
            warn_alone(program)
        if program._caution is not None:
            program._caution(program, scope)
        return self._run_program(program, feed, fetch_list, scope, return_numpy, use_prune)

    def _run_program(
        self,
        program: Program,
        feed: Feed | Sequence[Feed] | None,
        fetch_list: FetchList | None,
        scope: Scope,
        return_numpy: bool,
        use_prune: bool = False,
        backend: str | None = None,
    ) -> list[Any]:
        """Run a Program; ``backend`` takes the place of FLAGS_backend."""
        fetches, updates = read_fetch_list(fetch_list)
        feeds = get_single_feed(feed)
        if not program.blocks[0].ops:
            if not fetches:
                warn_user("the program to run is empty")
                return []
            held = program.global_block().vars
            computed = [
                name
                for name in fetches
                if name not in feeds and not holds_value(scope, name)
                if name not in held or not held[name].persistable
            ]
            if computed:
                raise EnforceNotMet(
                    f"the program is empty: no operator computes {computed}",
                    hint="run the program in which the network was built; None is the default main program",
                )
        if use_prune and not updates:
            updates = find_updates(program)
        pruned_to = tuple(updates) if use_prune or updates else None
        try:
            return self._run(program, feeds, fetches, scope, return_numpy, pruned_to, backend=backend)
        except EnforceNotMet:
            others = find_others(program, fetches, scope)
            if not others:
                raise
        # As in Fluid, a fetch reads the scope, also for names that the program does not have.
        own = [name for name in fetches if name not in others]
        found = iter(self._run(program, feeds, own, scope, return_numpy, pruned_to, backend=backend))
        return [copy_value(scope, name, return_numpy) if name in others else next(found) for name in fetches]

    def train_from_dataset(
        self,
        program: ProgramLike | None = None,
        dataset: Batches | None = None,
        scope: Scope | None = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Sequence[Variable | str] | None = None,
        fetch_info: Sequence[str] | None = None,
        print_period: int = 100,
        fetch_handler: FetchHandler | None = None,
    ) -> None:
        r"""Run a program once for every batch of a dataset; see :mod:`paddlelike.reader.dataset`.

        Parameters
        ----------
        print_period
            The number of batches between two prints of ``fetch_list``.
        program, scope
            The same as in :meth:`run`.
        dataset
            A dataset of ``fluid.DatasetFactory``.
        thread, debug
            Accepted for Fluid. They have no effect: batches run one after another.
        fetch_list, fetch_info
            The variables printed every ``print_period`` batches, and the titles in front of their values.
        fetch_handler
            An object that receives the values of variables periodically.

        Raises
        ------
        RuntimeError
            ``dataset`` is None. For the rest see :meth:`run`.

        >>> import pathlib, tempfile
        >>> import paddlelike as fluid
        >>> ids = fluid.data("ids", [None, 1], "int64")
        >>> seen = fluid.layers.create_global_var([1], 0, "int64", persistable=True)
        >>> _ = fluid.layers.sums([seen, fluid.layers.reduce_sum(ids)], out=seen)
        >>> rows = pathlib.Path(tempfile.mkdtemp(), "rows")
        >>> _ = rows.write_text("1 20\n1 22\n")  # of each slot the number of its numbers, then these
        >>> dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
        >>> dataset.set_use_var([ids])
        >>> dataset.set_batch_size(1)
        >>> dataset.set_filelist([str(rows)])
        >>> exe = fluid.Executor()
        >>> _ = exe.run(fluid.default_startup_program())
        >>> exe.train_from_dataset(dataset=dataset)
        >>> fluid.global_scope().find_var(seen.name).get_tensor()[0]
        LoDTensor(shape=[1], dtype=int64)
        [42]
        """
        from paddlelike.executor.datasets import run_dataset  # late: few programs read datasets

        run_dataset(self, program, dataset, scope, fetch_list, fetch_info, print_period, fetch_handler)

    def infer_from_dataset(
        self,
        program: ProgramLike | None = None,
        dataset: Batches | None = None,
        scope: Scope | None = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Sequence[Variable | str] | None = None,
        fetch_info: Sequence[str] | None = None,
        print_period: int = 100,
        fetch_handler: FetchHandler | None = None,
    ) -> None:
        r"""Run a program without updates once for every batch of a dataset.

        The parameters are the same as for :meth:`train_from_dataset`.

        Parameters
        ----------
        program, dataset, scope, thread, debug, fetch_list, fetch_info, print_period, fetch_handler
            The same as in :meth:`train_from_dataset`.

        Raises
        ------
        RuntimeError
            ``dataset`` is None. For the rest see :meth:`Executor.run`.

        >>> import pathlib, tempfile
        >>> import paddlelike as fluid
        >>> ids = fluid.data("ids", [None, 1], "int64")
        >>> rows = pathlib.Path(tempfile.mkdtemp(), "rows")
        >>> _ = rows.write_text("1 20\n1 22\n")
        >>> dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
        >>> dataset.set_use_var([ids])
        >>> dataset.set_batch_size(1)
        >>> dataset.set_filelist([str(rows)])
        >>> total = fluid.layers.reduce_sum(ids)
        >>> exe = fluid.Executor()
        >>> exe.infer_from_dataset(dataset=dataset, fetch_list=[total], fetch_info=["sum"], print_period=1)
        batch 1: sum: [20]
        batch 2: sum: [22]
        """
        from paddlelike.executor.datasets import run_dataset  # late: few programs read datasets

        run_dataset(self, program, dataset, scope, fetch_list, fetch_info, print_period, fetch_handler)

    def explain(
        self,
        program: ProgramLike | None = None,
        feed: Feed | Sequence[Feed] | None = None,
        fetch_list: FetchList | None = None,
        scope: Scope | None = None,
        repeat: int = 3,
    ) -> Explanation | str:
        """Return a report on the steps of a run: their work, their times, and the least possible times.

        The program runs ``repeat`` times on copies of its persistables, so that nothing changes; the shortest
        times are reported. Fluid does not have this method. It also raises the errors of :meth:`run`.

        Parameters
        ----------
        repeat
            The number of runs. The shortest times count.
        program, feed, fetch_list, scope
            The same as in :meth:`run`.

        Returns
        -------
        Explanation or str
            An :class:`~paddlelike.executor.explain.Explanation`; its text is a table. If the CompiledProgram,
            ``FLAGS_backend`` or the place selects JAX, it is a text about the compiled pieces instead; see
            :meth:`~paddlelike.executor.compiled.CompiledProgram.explain`.

        Raises
        ------
        UnsupportedError
            The program holds operators that reach files, readers, other processes or Python functions.

        >>> import numpy as np
        >>> import paddlelike as fluid
        >>> main = fluid.Program()
        >>> with fluid.program_guard(main), fluid.unique_name.guard():
        ...     y = fluid.layers.relu(fluid.layers.scale(fluid.data("x", [None, 4]), 2.0))
        >>> feed = {"x": np.ones((2, 4), "float32")}
        >>> explained = fluid.Executor().explain(main, feed, [y])
        >>> [(step.operators, step.kernel, step.released) for step in explained.steps]
        [(('scale',), 'specialized', ('x',)), (('relu',), 'general', ('scale_0.tmp_0',))]
        """
        program = default_main_program() if program is None else program
        scope = global_scope() if scope is None else scope
        if not isinstance(program, Program):
            explain = getattr(program, "_explain", None)
            if explain is None:
                raise UnsupportedError(
                    f"Executor.explain: program must be a Program, got {program!r}",
                    hint="pass the Program that the CompiledProgram was made of",
                )
            told: str = explain(self, scope, feed, fetch_list, repeat)
            return told
        fetches, feeds = collect_names(fetch_list), get_single_feed(feed)
        if choose_backend(self.place) != "numpy":
            return explain_pieces(program, feeds, fetches, self.place)
        from paddlelike.executor.explain import explain_plan  # late: few programs are explained

        plan = get_plan(program, feeds, fetches, None)
        return explain_plan(plan, scope, dict(self._services), feeds, repeat)

    def _run(
        self,
        program: Program,
        feeds: Feed,
        fetches: list[str],
        scope: Scope,
        return_numpy: bool,
        pruned_to: tuple[Operator, ...] | None = None,
        services: dict[str, Any] | None = None,
        backend: str | None = None,
    ) -> list[Any]:
        if choose_backend(self.place, backend) != "numpy":
            given = self._services | (services or {})
            found = _run_compiled.function(
                program, feeds, fetches, scope, return_numpy, pruned_to, given, self.place
            )
            if found is not None:
                return list(found)
        plan = get_plan(program, feeds, fetches, pruned_to)
        if plan.initializes:
            warn_overwriting(scope, plan.initializes)
            program._started = ref(scope)
        if plan.unknown_feeds:
            warn_unknown(program, plan.unknown_feeds)
        provided = {**self._services, **services} if services else self._services
        if plan.uses_files or profile.current is not None:
            with contextlib.ExitStack() as stack:
                if profile.current is not None:
                    stack.enter_context(profile.current.measure_run())
                frame = run_plan(
                    plan, scope, stack.enter_context(provide_files(plan, scope, provided)), feeds
                )
        else:
            frame = run_plan(plan, scope, provided, feeds)
        return [get_fetched(plan, frame, name, position, return_numpy) for name, position in plan.fetched]


def _describe_no_program(given: object) -> str:
    """Return the error text for something that is not a program."""
    hint = "the program comes first; variables go to fetch_list=[...], arrays to feed={...}"
    called = getattr(given, "__name__", "")
    if called and callable(given):
        hint = f"call it: exe.run(fluid.{called}())"
    elif isinstance(given, list | tuple) and isinstance(next(iter(given), None), Program):
        hint = "load_inference_model returns three things: program, feeds, fetches = ..."
    what = f"{type(given).__name__} {called}".strip()
    return f"Executor.run: program must be a Program or CompiledProgram, got a {what}\n  hint: {hint}"
