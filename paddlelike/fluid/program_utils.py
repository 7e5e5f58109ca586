"""``fluid.transpiler.details.program_utils``: a program as assignments, in Fluid's text form."""

from __future__ import annotations

from typing import TextIO

from paddlelike.core import AttrType
from paddlelike.framework import Block, Operator, Parameter, Program, Variable
from paddlelike.left_out import make_getattr

__all__ = ["block_to_code", "op_to_code", "program_to_code", "variable_to_code"]

__getattr__ = make_getattr(__name__, "transpiler.details.program_utils")


def program_to_code(prog: Program, fout: TextIO | None = None, skip_op_callstack: bool = True) -> None:
    """Print a program, one variable and one operator a line.

    Parameters
    ----------
    prog
        The program.
    fout
        The open file to print to. None means the standard output.
    skip_op_callstack
        Leave out where each operator was built.

    >>> import paddlelike as fluid
    >>> x = fluid.layers.relu(fluid.data("x", [2, 3]))
    >>> program_to_code(fluid.default_main_program())
    { // block 0
        var relu_0.tmp_0 : fluid.VarType.LOD_TENSOR.shape(2, 3).astype(VarType.FP32)
        var x : fluid.VarType.LOD_TENSOR.shape(2, 3).astype(VarType.FP32)
    <BLANKLINE>
        {Out=['relu_0.tmp_0']} = relu(inputs={X=['x']}, ...)
    }
    """
    for block in prog.blocks:
        block_to_code(block, block.idx, fout, skip_op_callstack)


def block_to_code(
    block: Block, block_idx: int, fout: TextIO | None = None, skip_op_callstack: bool = False
) -> None:
    """Print a block.

    Parameters
    ----------
    block, block_idx
        The block, and the number to print.
    fout, skip_op_callstack
        The same as for ``program_to_code``.
    """
    lines = [f"    {variable_to_code(block.vars[name])}" for name in sorted(block.vars)]
    lines += [""] if lines else []
    lines += [f"    {op_to_code(op, skip_op_callstack)}" for op in block.ops]
    print(f"{{ // block {block_idx}", *lines, "}", sep="\n", file=fout)


def variable_to_code(var: Variable) -> str:
    """Return a variable as text.

    Parameters
    ----------
    var
        The variable.

    Returns
    -------
    str
        Its kind, name, type, shape and dtype.
    """
    text = f"{var.name} : fluid.{var.type}"
    text += f".shape{var.shape}.astype({var.dtype})" if _has_shape(var) else ")"
    kind = (
        "var" if not isinstance(var, Parameter) else "trainable parameter" if var.trainable else "parameter"
    )
    return f"{'persist ' if var.persistable else ''}{kind} {text}"


def op_to_code(op: Operator, skip_op_callstack: bool = True) -> str:
    """Return an operator as text.

    Parameters
    ----------
    op
        The operator.
    skip_op_callstack
        The same as for ``program_to_code``.

    Returns
    -------
    str
        Its outputs, type, inputs and attributes, sorted by name.
    """
    names = [one for one in sorted(op.attr_names) if not (skip_op_callstack and one == "op_callstack")]
    attrs = ", ".join(f"{name} {_format_attr(op, name)}" for name in names)
    outputs, inputs = (
        "{" + ", ".join(f"{slot}={read(slot)}" for slot in sorted(slots)) + "}"
        for slots, read in ((op.output_names, op.output), (op.input_names, op.input))
    )
    return f"{outputs + ' = ' if outputs != '{}' else ''}{op.type}(inputs={inputs}, {attrs})"


def _has_shape(var: Variable) -> bool:
    return var.type.name in ("LOD_TENSOR", "SELECTED_ROWS")


def _format_attr(op: Operator, name: str) -> str:
    blocks = {AttrType.BLOCK: "block[{}]", AttrType.BLOCKS: "blocks{}"}
    return f"= {blocks.get(op.attr_type(name), '{}').format(op.attr(name))}"
