"""The Executor: runs a program against a scope."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from paddlelike.core import memory
from paddlelike.core.places import Place, require_cpu
from paddlelike.core.scope import Scope, global_scope
from paddlelike.errors import EnforceNotMet, FeedError
from paddlelike.executor.datasets import FetchHandler, run_over
from paddlelike.executor.feeds import one_feed, put_feeds
from paddlelike.executor.fetches import all_updates, fetch_names, fetched, updates_of
from paddlelike.executor.files import run_files
from paddlelike.executor.plan import Plan
from paddlelike.executor.remote import RemoteSwitch
from paddlelike.executor.steps import run_steps
from paddlelike.framework.graph.guards import default_main_program
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program
from paddlelike.framework.passes.views import find_needed_ops

__all__ = ["Executor"]


class Executor:
    """Runs programs.

    >>> import paddlelike as fluid
    >>> main = fluid.Program()
    >>> with fluid.program_guard(main):
    ...     six = 3.0 * fluid.layers.fill_constant([1], "float32", 2.0)
    >>> fluid.Executor(fluid.CPUPlace()).run(main, fetch_list=[six])
    [array([6.], dtype=float32)]
    """

    def __init__(self, place: Place | None = None) -> None:
        self.place = require_cpu(place)
        memory.keep_freed_memory()
        self._closed = False
        self._remote = RemoteSwitch()
        self._services: dict[str, Any] = {"remote": self._remote}

    def close(self) -> None:
        """End this executor; it runs nothing afterwards. Parameter servers learn that it has left."""
        if not self._closed:
            self._closed = True
            self._remote.close()

    def run(
        self,
        program: Any = None,
        feed: Any = None,
        fetch_list: Any = None,
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
            A Program or CompiledProgram; None: the default main program.
        feed
            ``{name: array}``; a LoDTensor brings its LoD, a number becomes shape ``[1]``.
        fetch_list
            Variables, or their names, whose values are returned in that order. What ``minimize`` returned
            may stand in it: then only those updates, and what the fetches need, are run.
        scope
            Where persistables live; None: the global scope.
        return_numpy
            False: LoDTensors are returned, needed for values with a LoD.
        use_prune
            Run only what the fetches and the update operators need.

        Raises
        ------
        FeedError
            A fed value that does not fit its variable.
        UntrustedError
            The program was read from bytes, and holds operators that reach outside of it.
        OperatorError
            An operator failed; the message names it, its variables and the line that made it.
        """
        if self._closed:
            raise RuntimeError("this Executor was closed; make a new one")
        if program is None:
            program = default_main_program()
        scope = global_scope() if scope is None else scope
        if not isinstance(program, Program):
            runner = getattr(program, "_run", None)
            if runner is None:
                raise TypeError(f"Executor.run takes a Program or CompiledProgram, not {program!r}")
            return list(runner(self, scope, feed, fetch_list, return_numpy, return_merged))
        fetches, updates = fetch_names(fetch_list), updates_of(fetch_list)
        feeds = one_feed(feed)
        if not program.global_block().ops:
            if fetches:
                raise EnforceNotMet(f"the program is empty; nothing computes {fetches}")
            warnings.warn("the program to run is empty", UserWarning, stacklevel=2)
            return []
        if use_prune and not updates:
            updates = all_updates(program)
        pruned_to = tuple(updates) if use_prune or updates else None
        return self._run(program, feeds, fetches, scope, return_numpy, pruned_to)

    def train_from_dataset(
        self,
        program: Any = None,
        dataset: Any = None,
        scope: Scope | None = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Sequence[Any] | None = None,
        fetch_info: Sequence[str] | None = None,
        print_period: int = 100,
        fetch_handler: FetchHandler | None = None,
    ) -> None:
        """Run a program once for every batch of a dataset; see :mod:`paddlelike.reader.dataset`.

        Parameters
        ----------
        thread, debug
            Hints that are not needed here: one batch is run after the other.
        fetch_list, fetch_info
            What is printed every ``print_period`` batches, and what stands before each value.
        fetch_handler
            Gets values every so many seconds.
        """
        run_over(self, program, dataset, scope, fetch_list, fetch_info, print_period, fetch_handler)

    def infer_from_dataset(
        self,
        program: Any = None,
        dataset: Any = None,
        scope: Scope | None = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Sequence[Any] | None = None,
        fetch_info: Sequence[str] | None = None,
        print_period: int = 100,
        fetch_handler: FetchHandler | None = None,
    ) -> None:
        """As :meth:`train_from_dataset`; pass a program without updates (``clone(for_test=True)``)."""
        run_over(self, program, dataset, scope, fetch_list, fetch_info, print_period, fetch_handler)

    def _run(
        self,
        program: Program,
        feeds: Mapping[str, Any],
        fetches: list[str],
        scope: Scope,
        return_numpy: bool,
        pruned_to: tuple[Operator, ...] | None = None,
        services: dict[str, Any] | None = None,
    ) -> list[Any]:
        plan = _plan(program, feeds, fetches, pruned_to)
        with run_files(plan, scope, self._services | (services or {})) as lent:
            frame = plan.begin(scope, lent)
            if plan.initializes:
                _warn_of_overwriting(scope, plan.initializes)
            put_feeds(frame, feeds)
            run_steps(frame, plan.steps)
        return [
            fetched(frame, name, number, return_numpy)
            for name, number in zip(fetches, plan.fetch_numbers, strict=True)
        ]


def _plan(
    program: Program, feeds: Mapping[str, Any], fetches: list[str], pruned_to: tuple[Operator, ...] | None
) -> Plan:
    """The plan for this choice of feeds and fetches, made at its first use.

    ``pruned_to``: only what the fetches and these operators need; None: everything.
    """
    key = (frozenset(feeds), tuple(fetches), pruned_to)
    plan = program.plans.get(key)
    if plan is None:
        ops = None
        if pruned_to is not None:
            block = program.global_block()
            ops = find_needed_ops(block, targets=set(fetches), fed=set(feeds), kept=pruned_to)
        plan = Plan(program, sorted(feeds), fetches, ops)
        _check_holders(plan, feeds)
        program.plans[key] = plan
    return plan


def _check_holders(plan: Plan, feeds: Mapping[str, Any]) -> None:
    """A program with feed operators takes exactly its feeds."""
    if plan.fed_by_op and set(plan.fed_by_op.values()) != set(feeds):
        wanted = sorted(plan.fed_by_op.values())
        raise FeedError(f"this program is fed {wanted}, but feed holds {sorted(feeds)}")


def _warn_of_overwriting(scope: Scope, names: list[str]) -> None:
    """Say so when a startup program is about to replace what a load brought."""
    loaded = []
    for name in names:
        holder = scope.find_var(name)
        if holder is not None and holder.origin is not None:
            loaded.append((name, holder.origin))
            holder.origin = None
    if loaded:
        name, origin = loaded[0]
        more = f" and {len(loaded) - 1} more" if len(loaded) > 1 else ""
        warnings.warn(
            f"this program gives {name!r}{more} first values and replaces what was loaded from {origin}; "
            "run the startup program before loading, not after",
            UserWarning,
            stacklevel=4,
        )
