"""Sub-blocks of control flow operators, and the outer variables that they read and write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from paddlelike.core import VarType
from paddlelike.framework import Block, Operator, OpRole, Program, Variable
from paddlelike.framework.opdef import GradOp, grad_names
from paddlelike.layers.emit import check_variable
from paddlelike.layers.helper import LayerHelper


@contextmanager
def sub_block(program: Program) -> Iterator[Block]:
    """Append the layers built inside the ``with`` to a new block of ``program``."""
    inside = program._create_block()
    try:
        yield inside
    finally:
        program._rollback()


def find_parent(block: Block) -> Block:
    """Return the parent of a sub-block."""
    around = block.parent
    assert around is not None
    return around


def outer_names(block: Block) -> tuple[list[str], list[str]]:
    """Return the names that a block reads before writing them, and the names that it writes, in order.

    Arrays that exist only in the block are left out.
    """
    read: dict[str, None] = {}
    written: dict[str, None] = {}
    for op in block.ops:
        read.update((name, None) for name in op.input_arg_names if name not in written)
        written.update(dict.fromkeys(op.output_arg_names))
    around = find_parent(block)
    return [name for name in read if around._has_var_recursive(name) or not _is_array(block, name)], list(
        written
    )


def _is_array(block: Block, name: str) -> bool:
    variable = block.vars.get(name)
    return variable is not None and variable.type == VarType.LOD_TENSOR_ARRAY


class ConditionalBlock:
    """A block that runs when its condition is true (operator ``conditional_block``).

    With ``is_scalar_condition`` the one variable in ``inputs`` is a bool of shape ``[1]``; without it the
    block runs when no variable in ``inputs`` is empty. Its assignments to outer variables persist.
    """

    def __init__(
        self, inputs: Sequence[Variable], is_scalar_condition: bool = False, name: str | None = None
    ) -> None:
        self.inputs = [check_variable("conditional_block", "inputs", one) for one in inputs]
        self.is_scalar_condition = is_scalar_condition
        self.helper = LayerHelper("conditional_block", name=name)

    @contextmanager
    def block(self) -> Iterator[None]:
        """Build the block inside the ``with``."""
        with sub_block(self.helper.main_program) as inside:
            yield
        self._complete(inside)

    def _complete(self, inside: Block) -> None:
        """Append the operator that runs the block."""
        around = find_parent(inside)
        read, written = outer_names(inside)
        around.append_op(
            type="conditional_block",
            inputs={"Cond": self.inputs, "Input": [around._var_recursive(name) for name in read]},
            outputs={
                "Out": [name for name in written if around._has_var_recursive(name)],
                "Scope": [around.create_var(type=VarType.STEP_SCOPES)],
            },
            attrs={"sub_block": inside, "is_scalar_condition": self.is_scalar_condition},
        )
        if inside.backward_block is not None:
            _append_gradient(around.ops[-1], inside.backward_block)


def _append_gradient(op: Operator, backward: Block) -> None:
    """Append the operator that runs the backward pass and the updates for a loss inside a branch."""
    around = op.block
    read, _ = outer_names(backward)
    inputs = [name for name in read if around._has_var_recursive(name)]
    gradients = grad_names(inputs)
    for name, gradient in zip(inputs, gradients, strict=True):
        if not backward._has_var_recursive(gradient):
            like = around._var_recursive(name)
            backward.create_var(name=gradient, dtype=like.dtype, shape=like.shape, type=like.type)
    slots = {"Cond": op.input("Cond"), "Input": inputs, "Out": op.output("Out"), "Scope": op.output("Scope")}
    slots["Out@GRAD"] = grad_names(op.output("Out"))
    attrs = {"sub_block": backward.idx, "is_scalar_condition": op.attrs["is_scalar_condition"]}
    grad = GradOp("conditional_block_grad", slots, {"Input@GRAD": gradients}, attrs, own_attrs=True)
    del around.append_grad_op(grad, op, OpRole.Backward).attrs["op_device"]  # Fluid's has none


def select_input(inputs: Sequence[Variable], mask: Variable) -> Variable:
    """Return ``inputs[mask]``, ``mask`` being an int of shape ``[1]`` (operator ``select_input``)."""
    helper = LayerHelper("select_input")
    first = inputs[0]
    out = helper.create_variable(dtype=first.dtype, shape=first.shape, type=first.type)
    helper.append_op(type="select_input", inputs={"X": inputs, "Mask": mask}, outputs={"Out": out})
    return out
