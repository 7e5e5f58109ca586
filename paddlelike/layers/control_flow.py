"""Blocks that run under a condition: Switch, and ConditionalBlock below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.block import Block
from paddlelike.framework.variable import Variable
from paddlelike.layers.checks import BOOL, check_variable
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper

__all__ = ["ConditionalBlock", "Switch"]


class ConditionalBlock:
    """A block that runs when its condition holds (operator ``conditional_block``).

    With ``is_scalar_condition`` the one variable in ``inputs`` is a bool of shape ``[1]``; without it the
    block runs when none of ``inputs`` is empty. What the block assigns to variables from outside stays.
    """

    def __init__(
        self,
        inputs: Sequence[Variable],
        is_scalar_condition: bool = False,
        name: str | None = None,
    ) -> None:
        self.inputs = [check_variable("conditional_block", "inputs", one) for one in inputs]
        self.is_scalar_condition = is_scalar_condition
        self.helper = LayerHelper("conditional_block", name=name)

    @contextmanager
    def block(self) -> Iterator[None]:
        """Build the block inside the ``with``."""
        program = self.helper.main_program
        inside = program._create_block()
        try:
            yield
        finally:
            program._rollback()
        self._complete(inside)

    def _complete(self, inside: Block) -> None:
        """Append the operator that runs the block."""
        around = inside.parent
        assert around is not None
        taken, given = outside_of(inside)
        around.append_op(
            type="conditional_block",
            inputs={"Cond": self.inputs, "Input": [around._var_recursive(name) for name in taken]},
            outputs={
                "Out": [name for name in given if around._has_var_recursive(name)],
                "Scope": [around.create_var(type=VarType.STEP_SCOPES)],
            },
            attrs={"sub_block": inside, "is_scalar_condition": self.is_scalar_condition},
        )


def outside_of(block: Block) -> tuple[list[str], list[str]]:
    """The names that a block reads before it writes them, and the names it writes, in order."""
    taken: dict[str, None] = {}
    given: dict[str, None] = {}
    for op in block.ops:
        taken.update((name, None) for name in op.input_arg_names if name not in given)
        given.update(dict.fromkeys(op.output_arg_names))
    return list(taken), list(given)


class Switch:
    """Of several blocks the first whose condition holds is run, or the default.

    >>> from paddlelike.layers.constants import fill_constant
    >>> from paddlelike.layers.creation import assign, create_global_var
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
