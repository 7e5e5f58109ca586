"""Blocks of which only one runs: cond, case, switch_case, Switch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import BOOL, check_variable, describe, is_whole
from paddlelike.layers.control.sub_blocks import ConditionalBlock, parent_of, select_input
from paddlelike.layers.elementwise.comparison import equal, logical_not
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.constants import fill_constant
from paddlelike.layers.tensor.creation import assign
from paddlelike.layers.tensor.shaping import cast
from paddlelike.layers.utils import have_same_structure, map_structure

__all__ = ["Switch", "case", "cond", "switch_case"]

Branch = Callable[[], Any]


def cond(
    pred: Variable, true_fn: Branch | None = None, false_fn: Branch | None = None, name: str | None = None
) -> Any:
    """What ``true_fn()`` returns if ``pred``, a bool of shape ``[1]``, holds, else what ``false_fn()`` does.

    Both return the same structure of variables, or None. Each is built into a block of its own, of which
    only one runs (operator ``conditional_block``).

    >>> a, b = fill_constant([1], "float32", 1.0), fill_constant([1], "float32", 2.0)
    >>> out = cond(a < b, lambda: a + b, lambda: a - b)
    """
    LayerHelper("cond", name=name)
    check_variable("cond", "pred", pred, BOOL)
    for what, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if function is not None and not callable(function):
            raise TypeError(f"cond: {what} is a function, not {describe(function)}")
    when_true = None if true_fn is None else _branch(pred, true_fn)
    when_false = None if false_fn is None else _branch(logical_not(pred), false_fn)
    if when_true is None and when_false is None:
        return None
    if when_true is None or when_false is None:
        one, other = ("true_fn", "false_fn") if when_true is None else ("false_fn", "true_fn")
        raise GraphError(f"cond: {one} returns nothing, but {other} does; both must return the same")
    if not have_same_structure(when_true, when_false):
        raise GraphError(
            f"cond: true_fn returns {describe(when_true)}, false_fn {describe(when_false)}; "
            "both must return the same structure"
        )
    mask = cast(pred, "int32")
    return map_structure(lambda false, true: select_input([false, true], mask), when_false, when_true)


def _branch(pred: Variable, function: Branch) -> Any:
    """What a function returns, as variables around the block that computes it if ``pred`` holds."""
    block = ConditionalBlock([pred], is_scalar_condition=True)
    with block.block():
        found = function()
        around = parent_of(block.helper.main_program.current_block())
        return None if found is None else map_structure(partial(_handed_out, around), found)


def _handed_out(around: Block, variable: Any) -> Any:
    """A variable of a block as one of the block around it."""
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
    pred_fn_pairs: Sequence[tuple[Variable, Branch]], default: Branch | None = None, name: str | None = None
) -> Any:
    """What the function of the first pair ``(condition, function)`` whose condition holds returns.

    Else what ``default()`` returns; without a default, the last function stands for it.

    >>> x = fill_constant([1], "float32", 0.3)
    >>> out = case([(x < 0.1, lambda: x), (x < 0.5, lambda: x * 2.0)], default=lambda: x * 3.0)
    """
    LayerHelper("case", name=name)
    if not isinstance(pred_fn_pairs, list | tuple):
        raise TypeError(f"case: pred_fn_pairs is a list of pairs, not {describe(pred_fn_pairs)}")
    if not pred_fn_pairs:
        raise GraphError("case: pred_fn_pairs is empty")
    for pair in pred_fn_pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"case: a pair is a tuple (condition, function), not {describe(pair)}")
        check_variable("case", "a condition", pair[0], BOOL)
        if not callable(pair[1]):
            raise TypeError(f"case: the second of a pair is a function, not {describe(pair[1])}")
    if default is not None and not callable(default):
        raise TypeError(f"case: default is a function, not {describe(default)}")
    pairs = list(pred_fn_pairs)
    chosen = pairs.pop()[1] if default is None else default
    for pred, function in reversed(pairs):
        chosen = partial(cond, pred=pred, true_fn=function, false_fn=chosen)
    return chosen()


def switch_case(
    branch_index: Variable,
    branch_fns: Mapping[int, Branch] | Sequence[Any],
    default: Branch | None = None,
    name: str | None = None,
) -> Any:
    """What the function whose number ``branch_index``, an integer of shape ``[1]``, holds returns.

    ``branch_fns`` maps numbers to functions, or is a list of functions or of pairs ``(number, function)``.
    For any other number ``default()``; without a default, the function of the greatest number.

    >>> index = fill_constant([1], "int32", 1)
    >>> out = switch_case(index, {0: lambda: index + 1, 1: lambda: index + 2})
    """
    LayerHelper("switch_case", name=name)
    check_variable("switch_case", "branch_index", branch_index, (VarType.UINT8, VarType.INT32, VarType.INT64))
    branches = _numbered(branch_fns)
    if default is not None and not callable(default):
        raise TypeError(f"switch_case: default is a function, not {describe(default)}")
    if branch_index.dtype != VarType.INT64:
        branch_index = cast(branch_index, "int64")
    if default is None:
        branches.sort(key=lambda branch: branch[0])
        default = branches.pop()[1]
    chosen: Branch = default
    tests = [(equal(branch_index, fill_constant([1], "int64", number)), fn) for number, fn in branches]
    for pred, function in tests:
        chosen = partial(cond, pred=pred, true_fn=function, false_fn=chosen)
    return chosen()


def _numbered(branch_fns: Any) -> list[tuple[int, Branch]]:
    """The branches as pairs (number, function)."""
    if isinstance(branch_fns, Mapping):
        branch_fns = list(branch_fns.items())
    if not isinstance(branch_fns, list | tuple):
        raise TypeError(f"switch_case: branch_fns is a dict or a list, not {describe(branch_fns)}")
    if not branch_fns:
        raise GraphError("switch_case: branch_fns is empty")
    if all(callable(function) for function in branch_fns):
        branch_fns = list(enumerate(branch_fns))
    for pair in branch_fns:
        if not isinstance(pair, tuple) or len(pair) != 2 or not is_whole(pair[0]) or not callable(pair[1]):
            raise TypeError(f"switch_case: a branch is a tuple (number, function), not {describe(pair)}")
    numbers = [number for number, _ in branch_fns]
    if len(set(numbers)) != len(numbers):
        raise GraphError(f"switch_case: the numbers of the branches are {numbers}; each may be there once")
    return list(branch_fns)


class Switch:
    """Of several blocks the first whose condition holds is run, or the default.

    >>> from paddlelike.layers.tensor.creation import create_global_var
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
        self._none_so_far: Variable | None = None  # true when no condition above has held

    def __enter__(self) -> Switch:
        self._inside = True
        return self

    def __exit__(self, *exception: object) -> None:
        self._inside = False

    @contextmanager
    def case(self, condition: Variable) -> Iterator[None]:
        """The block to run when ``condition``, a bool of shape ``[1]``, is the first one that holds."""
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
        """The block to run when no condition held."""
        self._check_inside("default")
        if self._none_so_far is None:
            raise GraphError("Switch: default comes after at least one case")
        with ConditionalBlock([self._none_so_far], is_scalar_condition=True).block():
            yield

    def _check_inside(self, method: str) -> None:
        if not self._inside:
            raise GraphError(f"Switch.{method} is called inside `with Switch() as switch:`")
