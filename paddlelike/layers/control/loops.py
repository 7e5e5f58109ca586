"""Loops: While, while_loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Block, Variable
from paddlelike.framework.opdef.registry import find_or_none
from paddlelike.layers.control.sub_blocks import find_parent, outer_names, sub_block
from paddlelike.layers.emit import BOOL, check_variable, describe
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.assign import assign
from paddlelike.layers.utils import have_same_structure, map_structure

__all__ = ["While", "while_loop"]


class While:
    """A block that runs as long as ``cond``, a bool of shape ``[1]``, is true (operator ``while``).

    The block must update ``cond``. Its assignments to outer variables persist. With ``is_test`` no values are
    kept for a backward pass.

    Parameters
    ----------
    cond
        The condition, a bool variable of shape [1].

    Raises
    ------
    TypeError
        ``cond`` is not a variable of one bool.
    GraphError
        At the end of the block no operator in it, or in a block inside of it, has written ``cond``.

    >>> import paddlelike as fluid
    >>> i, limit = fluid.layers.fill_constant([1], "int64", 0), fluid.layers.fill_constant([1], "int64", 5)
    >>> going = fluid.layers.less_than(i, limit)
    >>> with fluid.layers.While(going).block():
    ...     _ = fluid.layers.increment(i, 2)
    ...     _ = fluid.layers.less_than(i, limit, cond=going)
    >>> fluid.Executor().run(fetch_list=[i])
    [array([6])]
    """

    def __init__(self, cond: Variable, is_test: bool = False, name: str | None = None) -> None:
        self.helper = LayerHelper("while", name=name)
        self.cond_var = _check_one_bool("while", "cond", cond)
        self.is_test = is_test

    @contextmanager
    def block(self) -> Iterator[None]:
        """Build the block inside the ``with``."""
        with sub_block(self.helper.main_program) as inside:
            yield
        self._complete(inside)

    def _complete(self, inside: Block) -> None:
        if inside.backward_block is not None:
            raise GraphError(
                "While: a loss is minimized inside of the loop, whose steps Fluid does not train one by one",
                hint="minimize the loss after the loop",
            )
        around = find_parent(inside)
        taken, given = outer_names(inside)
        if not _writes(inside, self.cond_var.name):
            raise GraphError(
                f"While: nothing in the block writes its condition {self.cond_var.name!r}, so that the loop "
                "never ends once it has begun",
                hint="compute it again in the block: layers.less_than(i, limit, cond=condition), or "
                "layers.assign(new_value, condition)",
            )
        if fixed := _find_fixed(inside, self.cond_var.name, set(taken).intersection(given)):
            warn_user(
                f"While: the block computes its condition {self.cond_var.name!r} from "
                f"{', '.join(map(repr, fixed))}, which it never changes, so that the loop ends after its "
                "first pass or never. Change one of them in the block: layers.increment(i), or "
                "layers.assign(new_value, i)"
            )
        given = list(dict.fromkeys([self.cond_var.name, *given]))
        scopes = around.create_var(type=VarType.STEP_SCOPES)
        around.append_op(
            type="while",
            inputs={
                "X": [around._var_recursive(name) for name in taken if name != self.cond_var.name],
                "Condition": [self.cond_var],
            },
            outputs={
                "Out": [name for name in given if around._has_var_recursive(name)],
                "StepScopes": [scopes],
            },
            attrs={"sub_block": inside, "is_test": self.is_test},
        )


def _writes(block: Block, name: str) -> bool:
    """Return whether an operator of a block, or of a block inside of it, writes a variable."""
    inside = {block.idx}
    for one in block.program.blocks[block.idx :]:  # a block comes behind the one around it
        if one is block or one.parent_idx in inside:
            inside.add(one.idx)
            if any(name in op.output_arg_names for op in one.ops):
                return True
    return False


def _find_fixed(block: Block, condition: str, carried: Collection[str]) -> list[str]:
    """Return the outer variables that a condition reads, or [] if an iteration may change the condition.

    ``carried`` are the variables that a pass takes over from the previous one. A condition that reads random
    numbers, for example, changes without any assignment.
    """
    wanted, compares = {condition: None}, False
    for op in reversed(block.ops):
        if wanted.keys() & set(op.output_arg_names):
            definition = find_or_none(op.type)
            if definition is None or definition.context or "sub_block" in op.attrs:
                return []
            wanted.update(dict.fromkeys(op.input_arg_names))
            compares = compares or len(op.input_arg_names) > 1
    if not compares or wanted.keys() & carried:
        return []
    return [name for name in wanted if name != condition and find_parent(block)._has_var_recursive(name)]


def _check_one_bool(layer: str, argument: str, value: object) -> Variable:
    """Return ``value``. Raises TypeError unless it is a bool of shape ``[1]``."""
    variable = check_variable(layer, argument, value, BOOL)
    if variable.shape not in ((1,), (-1,), ()):
        raise TypeError(
            f"layer {layer!r}: {argument} is variable {variable.name!r} of shape {list(variable.shape)}; "
            "expected one bool, shape [1]\n  hint: layers.reduce_all reduces many to one"
        )
    return variable


def while_loop(
    cond: Callable[..., Variable],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    is_test: bool = False,
    name: str | None = None,
) -> list[Any]:
    """Repeat ``body`` while ``cond`` is true (operator ``while``).

    ``cond(*loop_vars)`` returns a bool of shape ``[1]``; ``body(*loop_vars)`` returns their next values, in
    the same structure. Returns ``loop_vars``, which hold the last values after the loop.

    Parameters
    ----------
    cond
        A function of the loop variables that returns a bool variable of shape [1].
    body
        A function of the loop variables that returns their next values, in the same structure.
    loop_vars
        A list of variables, or of structures of variables.

    Returns
    -------
    list
        ``loop_vars``, which hold the last values when the loop has ended, with their shapes and dtypes.

    Raises
    ------
    TypeError
        ``cond`` or ``body`` is not callable.
    GraphError
        There are no variables, or ``body`` returns another structure.

    >>> from paddlelike.layers.tensor.constant import fill_constant
    >>> i, limit = fill_constant([1], "int64", 0), fill_constant([1], "int64", 5)
    >>> (i,) = while_loop(lambda i: i < limit, lambda i: [i + 1], [i])
    """
    LayerHelper("while_loop", name=name)
    for what, function in (("cond", cond), ("body", body)):
        if not callable(function):
            raise TypeError(f"while_loop: {what} must be a function, got {describe(function)}")
    if not isinstance(loop_vars, list | tuple):
        raise TypeError(f"while_loop: loop_vars must be a list of variables, got {describe(loop_vars)}")
    if not loop_vars:
        raise GraphError("while_loop: loop_vars is empty, expected at least one variable")
    going = _check_one_bool("while_loop", "what cond returns", cond(*loop_vars))
    with While(going, is_test, name).block():
        found = body(
            *map_structure(lambda variable: variable, loop_vars)
        )  # a copy: body may change the lists
        found = list(found) if isinstance(found, list | tuple) else [found]
        if not have_same_structure(found, list(loop_vars)):
            raise GraphError(
                f"while_loop: body returned {describe(found)}, whose structure is not that of "
                f"loop_vars {describe(loop_vars)}"
            )
        still = cond(*found)
        map_structure(assign, found, list(loop_vars))
        assign(still, going)
    return list(loop_vars)
