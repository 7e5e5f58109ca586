"""The Executor: runs a program against a scope."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.core import memory
from paddlelike.core.dtypes import convert_dtype, numpy_dtype
from paddlelike.core.places import Place, require_cpu
from paddlelike.core.scope import Scope, global_scope
from paddlelike.core.tensor import LoDTensor, LoDTensorArray, SelectedRows
from paddlelike.errors import (
    EnforceNotMet,
    EOFException,
    FeedError,
    NotInitializedError,
    OperatorError,
    PaddlelikeError,
    UnsupportedError,
)
from paddlelike.executor import profile
from paddlelike.executor.datasets import FetchHandler, run_over
from paddlelike.executor.plan import Frame, Plan, Step, keep, missing_inputs, not_initialized
from paddlelike.framework.environment import flag
from paddlelike.framework.graph import needed_ops
from paddlelike.framework.operator import Operator, OpRole
from paddlelike.framework.program import Program, default_main_program
from paddlelike.framework.variable import Variable

__all__ = ["Executor", "as_numpy"]


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
        self._services: dict[str, Any] = {}

    def close(self) -> None:
        """End this executor; it runs nothing afterwards."""
        self._closed = True

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
        fetches, updates = _fetch_names(fetch_list), _updates(fetch_list)
        feeds = _one_feed(feed)
        if not program.global_block().ops:
            if fetches:
                raise EnforceNotMet(f"the program is empty; nothing computes {fetches}")
            warnings.warn("the program to run is empty", UserWarning, stacklevel=2)
            return []
        if use_prune and not updates:
            updates = _all_updates(program)
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
        frame = plan.begin(scope, self._services if services is None else services)
        if plan.initializes:
            _warn_of_overwriting(scope, plan.initializes)
        _put_feeds(frame, feeds)
        _run_steps(frame, plan.steps)
        return [
            _fetched(frame, name, number, return_numpy)
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
            ops = needed_ops(block, targets=set(fetches), fed=set(feeds), kept=pruned_to)
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


def _run_steps(frame: Frame, steps: list[Step]) -> None:
    step = None
    try:
        with np.errstate(all="ignore"):  # as in C: log(0) is -inf, 1 / 0 inf, without a word
            if profile.current is not None:
                for step in steps:
                    with profile.current.event(step.op.type):
                        step.run(frame)
            elif flag("FLAGS_check_nan_inf"):
                for step in steps:
                    step.run(frame)
                    _check_finite(frame, step.op)
            else:
                for step in steps:
                    step.run(frame)
    except EOFException:
        raise
    except Exception as error:
        assert step is not None
        raise _explained(frame, step.op, error) from error


def _check_finite(frame: Frame, op: Operator) -> None:
    for name in op.output_arg_names:
        value = frame.values[frame.plan.number(op.block, name)]
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
            bad = np.argwhere(~np.isfinite(value))
            raise OperatorError(
                f"operator {op.type!r}: output {name!r} holds {value[tuple(bad[0])]} at {bad[0].tolist()} "
                f"({len(bad)} of {value.size} elements are not finite){_where(op)}",
                hint="the flag FLAGS_check_nan_inf asks for this error",
            )


def _explained(frame: Frame, op: Operator, error: Exception) -> Exception:
    """The error to raise for one that came out of an operator."""
    block = op.block
    if isinstance(error, OperatorError):  # from a sub-block: told already
        return error
    where = _where(op)
    if not isinstance(error, UnsupportedError | NotInitializedError):
        try:
            missing = missing_inputs(frame, op, block)
        except EnforceNotMet:
            missing = []
        if missing:
            error = not_initialized(missing, op, block)
    if isinstance(error, NotInitializedError | UnsupportedError):
        return type(error)(f"{_text(error)}{where}", hint=error.hint)
    variables = "".join(
        f"\n    {slot} = {', '.join(_described(frame, op, name) for name in names)}"
        for slot, names in op.inputs.items()
        if names
    )
    text = _text(error) if isinstance(error, EnforceNotMet) else f"{type(error).__name__}: {error}"
    return OperatorError(
        f"operator {op.type!r} -> {op.output_arg_names} failed: {text}\n  inputs{variables}{where}",
        hint=getattr(error, "hint", None),
    )


def _text(error: Exception) -> str:
    return error.message if isinstance(error, PaddlelikeError) else str(error)


def _where(op: Operator) -> str:
    """Where the operator was made, by us or, as its program says, in a script of real Paddle."""
    if op.line:
        return f"\n  made at {op.line}"
    stack = op.attrs.get("op_callstack") or []
    return f"\n  made at {stack[0].strip()}" if stack else ""


def _described(frame: Frame, op: Operator, name: str) -> str:
    number = frame.plan.number(op.block, name)
    value = frame.values[number] if number < len(frame.values) else None
    if isinstance(value, np.ndarray):
        return f"{name}: {value.dtype}{list(value.shape)}"
    return f"{name}: {'no value' if value is None else type(value).__name__}"


# Feeds


def _one_feed(feed: Any) -> Mapping[str, Any]:
    if feed is None:
        return {}
    if isinstance(feed, list | tuple):
        if len(feed) != 1:
            raise FeedError(f"feed is a dict or a list of one dict, not a list of {len(feed)}")
        feed = feed[0]
    if not isinstance(feed, Mapping):
        raise TypeError(f"feed is a dict of arrays by variable name, not {feed!r}")
    return feed


def _put_feeds(frame: Frame, feeds: Mapping[str, Any]) -> None:
    plan = frame.plan
    block = plan.program.global_block()
    for name, value in feeds.items():
        variable = block.vars.get(name)
        if variable is None:
            continue  # as Fluid: a feed may hold more than the program takes
        array, lod = _fed_value(variable, value)
        number = plan.number(block, name)
        if number >= len(frame.values):
            continue
        if lod:
            frame.lods[number] = lod
        if name in plan.aliases.overwrites_feed:
            array = array.copy() if isinstance(array, np.ndarray) else array
        frame.values[number] = keep(frame, number, array) if number in frame.holders else array


def _fed_value(variable: Variable, value: Any) -> tuple[Any, Any]:
    """The array and the LoD of a fed value, checked against its variable."""
    lod = None
    if isinstance(value, LoDTensor):
        if value.array is None:
            raise FeedError(f"the tensor fed to {variable.name!r} is empty")
        array, lod = value.array, value._lod
    elif isinstance(value, SelectedRows | LoDTensorArray):
        return value, None
    elif isinstance(value, np.ndarray):
        array = value
    elif isinstance(value, numbers.Number | np.generic):
        array = np.full(1, value, numpy_dtype(variable.dtype))
    else:
        raise FeedError(
            f"variable {variable.name!r} is fed a {type(value).__name__}; "
            "it takes a numpy array, a LoDTensor or a number",
            hint="wrap it: numpy.array(value, dtype), or use fluid.DataFeeder or fluid.create_lod_tensor",
        )
    if variable.need_check_feed:
        _check_fed(variable, array)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return np.ascontiguousarray(array) if array.ndim else array, lod


def _check_fed(variable: Variable, array: Any) -> None:
    got = convert_dtype(array.dtype)
    if got != variable.dtype:
        raise FeedError(
            f"variable {variable.name!r} has dtype {numpy_dtype(variable.dtype)}, "
            f"the fed array has {array.dtype}",
            hint=f"convert it: array.astype({numpy_dtype(variable.dtype).name!r})",
        )
    want, have = variable.shape, array.shape
    if len(have) == 1 and want[:1] == (-1,):
        return  # as Fluid: a flat array passes, the operators judge it
    fits = len(want) == len(have) and all(w in (-1, h) for w, h in zip(want, have, strict=True))
    if not fits:
        shown = ["None" if dim == -1 else str(dim) for dim in want]
        raise FeedError(
            f"variable {variable.name!r} has shape [{', '.join(shown)}], the fed array has {list(have)}",
            hint="None stands for any size; reshape the array or declare the variable as it is fed",
        )


# Fetches


def _fetch_names(fetch_list: Any) -> list[str]:
    """The names in a fetch_list, which may be nested or a single item; update operators are left out."""
    if fetch_list is None:
        return []
    if isinstance(fetch_list, Variable):
        return [fetch_list.name]
    if isinstance(fetch_list, str):
        return [fetch_list]
    if isinstance(fetch_list, Operator) or _is_minimized(fetch_list):
        return []
    if isinstance(fetch_list, list | tuple):
        return [name for one in fetch_list for name in _fetch_names(one)]
    if getattr(fetch_list, "name", None) and isinstance(fetch_list.name, str):
        return [fetch_list.name]
    raise TypeError(f"fetch_list holds variables or their names, not {fetch_list!r}")


def _updates(fetch_list: Any) -> list[Operator]:
    """The update operators in a fetch_list."""
    if isinstance(fetch_list, Operator):
        return [fetch_list]
    if _is_minimized(fetch_list):
        return list(fetch_list[0])
    if isinstance(fetch_list, list | tuple):
        return [op for one in fetch_list for op in _updates(one)]
    return []


def _is_minimized(item: Any) -> bool:
    """Whether this is what ``minimize`` returns: operators, and pairs of parameter and gradient."""
    return (
        isinstance(item, tuple)
        and len(item) == 2
        and isinstance(item[0], list)
        and all(isinstance(op, Operator) for op in item[0])
        and isinstance(item[1], list)
        and all(isinstance(pair, tuple) for pair in item[1])
    )


def _all_updates(program: Program) -> list[Operator]:
    return [op for op in program.global_block().ops if op.attrs.get("op_role", 0) & OpRole.Optimize]


def _fetched(frame: Frame, name: str, number: int, return_numpy: bool) -> Any:
    value = frame.values[number] if number < len(frame.values) else None
    if value is None:
        raise NotInitializedError(
            f"fetch_list asks for {name!r}, which holds no value after the run",
            hint="persistables get theirs from the startup program or a load, temporaries from an operator",
        )
    if isinstance(value, SelectedRows):
        raise EnforceNotMet(
            f"fetch_list asks for {name!r}, which holds SelectedRows (a sparse gradient), not a tensor",
            hint="use layers.get_tensor_from_selected_rows, or is_sparse=False",
        )
    if isinstance(value, LoDTensorArray):
        return as_numpy(value) if return_numpy else value
    if not isinstance(value, np.ndarray):
        return value
    shared = number in frame.holders or name in frame.plan.aliases.of_kept or name in frame.plan.feeds
    lod = frame.lods.get(number)
    if return_numpy and lod:
        raise RuntimeError(
            f"fetched variable {name!r} has a LoD, which a numpy array cannot hold; use return_numpy=False"
        )
    array = np.array(value) if shared else value
    if not return_numpy:
        return LoDTensor(array, lod)
    return array.view(OneElement) if array.size == 1 and array.ndim else array


def as_numpy(tensor: Any) -> Any:
    """A copy of a tensor, or of each tensor in a list, as numpy array; one with a LoD is refused."""
    if isinstance(tensor, list):
        return [as_numpy(one) for one in tensor]
    if isinstance(tensor, LoDTensor) and tensor._lod:
        raise RuntimeError("this tensor has a LoD, which a numpy array cannot hold; use numpy.array(tensor)")
    return np.array(tensor)


class OneElement(np.ndarray[Any, Any]):
    """A fetched array of shape (1,) or alike: a number where a script wants one.

    Fluid scripts print losses as ``"%f" % exe.run(...)[0]``, and numpy from 2.4 on takes only arrays
    without dims for numbers.
    """

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __reduce__(self) -> Any:
        return np.asarray(self).__reduce__()
