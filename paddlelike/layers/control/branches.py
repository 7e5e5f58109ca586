"""Conditional execution: cond, case, switch_case, Switch.

Returns
-------
Variable, structure or None
    The result of the function that runs. All functions return the same structure, with the same dtypes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, TypeVar

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Block, Variable
from paddlelike.layers.control.sub_blocks import ConditionalBlock, find_parent, select_input
from paddlelike.layers.elementwise.compare import equal, logical_not
from paddlelike.layers.elementwise.scale import cast
from paddlelike.layers.emit import BOOL, check_variable, describe, emit, is_whole
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.assign import assign
from paddlelike.layers.tensor.constant import fill_constant
from paddlelike.layers.utils import have_same_structure, map_structure

__all__ = ["Switch", "case", "cond", "switch_case"]

Result = TypeVar("Result")
Branch: TypeAlias = Callable[[], Result]


def cond(
    pred: Variable,
    true_fn: Branch[Result] | None = None,
    false_fn: Branch[Result] | None = None,
    name: str | None = None,
) -> Result:
    """Return the result of ``true_fn()`` if ``pred``, a bool of shape [1], is true, else of ``false_fn()``.

    Both functions return the same structure of variables, or None. Each is built into its own block, and a
    run executes one of the blocks (operator ``conditional_block``).

    Parameters
    ----------
    pred
        A bool variable of shape [1].
    true_fn, false_fn
        Functions without parameters that return the same structure of variables; None for one that returns
        None.

    Raises
    ------
    TypeError
        A branch is not callable.
    GraphError
        The two return different structures.

    >>> a, b = fill_constant([1], "float32", 1.0), fill_constant([1], "float32", 2.0)
    >>> out = cond(a < b, lambda: a + b, lambda: a - b)
    """
    LayerHelper("cond", name=name)
    check_variable("cond", "pred", pred, BOOL)
    for what, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if function is not None and not callable(function):
            raise TypeError(
                f"cond: {what} must be a function, got {describe(function)}\n"
                f"  hint: lambda: ...; operators inside of it run only where it is taken"
            )
    when_true = None if true_fn is None else _branch(pred, true_fn)
    when_false = None if false_fn is None else _branch(logical_not(pred), false_fn)
    if when_true is None and when_false is None:
        return None  # type: ignore[return-value]  # which is what both return
    if when_true is None or when_false is None:
        one, other = ("true_fn", "false_fn") if when_true is None else ("false_fn", "true_fn")
        raise GraphError(
            f"cond: {one} returns None, but {other} does not; both must return the same structure",
            hint="return a variable from each branch, or write to an outer one with layers.assign in both",
        )
    if not have_same_structure(when_true, when_false):
        raise GraphError(
            f"cond: true_fn returns {describe(when_true)}, false_fn returns {describe(when_false)}; "
            "both must return the same structure"
        )
    mask = cast(pred, "int32")
    found: Result = map_structure(
        lambda false, true: select_input([false, true], mask), when_false, when_true
    )
    return found


def _branch(pred: Variable, function: Branch[Result]) -> Result | None:
    """Return the result of a function, copied out of a block that runs if ``pred`` is true."""
    block = ConditionalBlock([pred], is_scalar_condition=True)
    with block.block():
        found = function()
        around = find_parent(block.helper.main_program.current_block())
        return None if found is None else map_structure(partial(_copy_out, around), found)


def _copy_out(around: Block, variable: Variable | None) -> Variable | None:
    """Return a copy, in the parent block, of a variable of the current block."""
    if variable is None:
        return None
    check_variable("cond", "what a branch returns", variable)
    array = variable.type == VarType.LOD_TENSOR_ARRAY
    if array and around._has_var_recursive(variable.name):
        return variable
    twin = around.create_var(dtype=variable.dtype, shape=variable.shape, type=variable.type)
    assign(variable, twin)
    return twin


def case(
    pred_fn_pairs: Sequence[tuple[Variable, Branch[Result]]],
    default: Branch[Result] | None = None,
    name: str | None = None,
) -> Result:
    """Return the result of the function of the first pair ``(condition, function)`` whose condition is true.

    Operators ``conditional_block`` and ``select_input``, as in :func:`cond`. If no condition is true, return
    the result of ``default()``, or, without a default, of the last function.

    Parameters
    ----------
    pred_fn_pairs
        Pairs of a bool variable of shape [1] and a function without parameters.
    default
        The function to call when no condition is true; None for the last function.

    Raises
    ------
    TypeError
        A pair is malformed.
    GraphError
        The list of pairs is empty.

    >>> x = fill_constant([1], "float32", 0.3)
    >>> out = case([(x < 0.1, lambda: x), (x < 0.5, lambda: x * 2.0)], default=lambda: x * 3.0)
    """
    LayerHelper("case", name=name)
    if not isinstance(pred_fn_pairs, list | tuple):
        raise TypeError(f"case: pred_fn_pairs must be a list of pairs, got {describe(pred_fn_pairs)}")
    if not pred_fn_pairs:
        raise GraphError("case: pred_fn_pairs is empty")
    for pair in pred_fn_pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"case: a pair must be a tuple (condition, function), got {describe(pair)}")
        check_variable("case", "a condition", pair[0], BOOL)
        if not callable(pair[1]):
            raise TypeError(f"case: the second of a pair must be a function, got {describe(pair[1])}")
    if default is not None and not callable(default):
        raise TypeError(f"case: default must be a function, got {describe(default)}")
    pairs = list(pred_fn_pairs)
    chosen = pairs.pop()[1] if default is None else default
    for pred, function in reversed(pairs):
        chosen = partial(cond, pred=pred, true_fn=function, false_fn=chosen)
    return chosen()


def switch_case(
    branch_index: Variable,
    branch_fns: Mapping[int, Branch[Result]]
    | Sequence[Branch[Result]]
    | Sequence[tuple[int, Branch[Result]]],
    default: Branch[Result] | None = None,
    name: str | None = None,
) -> Result:
    """Return the result of the function at ``branch_index``, an integer of shape ``[1]``.

    Operators ``equal``, ``conditional_block`` and ``select_input``. For any other index, ``default()`` is
    called, or, without a default, the function of the greatest index.

    Parameters
    ----------
    branch_index
        An integer variable of shape [1].
    branch_fns
        Functions by index: a dict, a list of functions, or a list of pairs ``(index, function)``.
    default
        The function to call for another index; None for the function of the greatest index.

    Raises
    ------
    TypeError
        A branch is malformed.
    GraphError
        There is no branch, or an index is repeated.

    >>> index = fill_constant([1], "int32", 1)
    >>> out = switch_case(index, {0: lambda: index + 1, 1: lambda: index + 2})
    """
    LayerHelper("switch_case", name=name)
    check_variable("switch_case", "branch_index", branch_index, (VarType.UINT8, VarType.INT32, VarType.INT64))
    branches = _index_branches(branch_fns)
    if default is not None and not callable(default):
        raise TypeError(f"switch_case: default must be a function, got {describe(default)}")
    if branch_index.dtype != VarType.INT64:
        branch_index = cast(branch_index, "int64")
    if default is None:
        branches.sort(key=lambda branch: branch[0])
        default = branches.pop()[1]
    chosen: Branch[Result] = default
    tests = [(equal(branch_index, fill_constant([1], "int64", index)), fn) for index, fn in branches]
    for pred, function in tests:
        chosen = partial(cond, pred=pred, true_fn=function, false_fn=chosen)
    return chosen()


def _index_branches(branch_fns: object) -> list[tuple[int, Branch[Any]]]:
    """Return the branches as pairs (index, function)."""
    if isinstance(branch_fns, Mapping):
        branch_fns = list(branch_fns.items())
    if not isinstance(branch_fns, list | tuple):
        raise TypeError(f"switch_case: branch_fns must be a dict or a list, got {describe(branch_fns)}")
    if not branch_fns:
        raise GraphError("switch_case: branch_fns is empty")
    if all(callable(function) for function in branch_fns):
        branch_fns = list(enumerate(branch_fns))
    for pair in branch_fns:
        if not isinstance(pair, tuple) or len(pair) != 2 or not is_whole(pair[0]) or not callable(pair[1]):
            raise TypeError(f"switch_case: a branch must be a tuple (index, function), got {describe(pair)}")
    indices = [index for index, _ in branch_fns]
    if len(set(indices)) != len(indices):
        raise GraphError(f"switch_case: the indices of the branches are {indices}, expected different ones")
    return list(branch_fns)


class Switch:
    """Several blocks with conditions. A run executes the first block whose condition is true, or the default.

    Operators ``conditional_block`` and ``logical_not``. Conditions are variables of shape (1,).

    >>> from paddlelike.layers.tensor.assign import create_global_var
    >>> step = create_global_var([1], 7.0, "float32", persistable=True, name="switch_step")
    >>> rate = create_global_var([1], 0.0, "float32", persistable=True, name="switch_rate")
    >>> with Switch() as switch:
    ...     with switch.case(step < 5.0):
    ...         _ = assign(fill_constant([1], "float32", 0.1), output=rate)
    ...     with switch.default():
    ...         _ = assign(fill_constant([1], "float32", 0.01), output=rate)
    """

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("switch", name=name)
        self._inside = False
        self._none_so_far: Variable | None = None  # whether all conditions so far were false

    def __enter__(self) -> Switch:
        self._inside = True
        return self

    def __exit__(self, *exception: object) -> None:
        self._inside = False

    @contextmanager
    def case(self, condition: Variable) -> Iterator[None]:
        """Build the block to run when ``condition``, a bool of shape ``[1]``, is the first that is true.

        Raises TypeError unless ``condition`` is a variable of a supported dtype, GraphError outside of
        ``with Switch() as switch:``.
        """
        self._check_inside("case")
        check_variable("switch", "condition", condition, BOOL)
        before = self._none_so_far
        negated = emit("logical_not", {"X": condition})
        if before is None:
            self._none_so_far = negated
        else:
            self._none_so_far = emit("logical_and", {"X": before, "Y": negated})
            condition = emit("logical_and", {"X": before, "Y": condition})
        with ConditionalBlock([condition], is_scalar_condition=True).block():
            yield

    @contextmanager
    def default(self) -> Iterator[None]:
        """Build the block to run when no condition is true.

        Raises GraphError outside of ``with Switch() as switch:``, or before the first case.
        """
        self._check_inside("default")
        if self._none_so_far is None:
            raise GraphError("Switch.default must come after at least one case")
        with ConditionalBlock([self._none_so_far], is_scalar_condition=True).block():
            yield

    def _check_inside(self, method: str) -> None:
        if not self._inside:
            raise GraphError(f"Switch.{method} must be called inside `with Switch() as switch:`")
