"""Programs as protobuf text, Paddle's way to print them."""

from __future__ import annotations

from google.protobuf import text_format

from paddlelike.framework.codec import program_desc as proto
from paddlelike.framework.codec.schema import messages
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Parameter, Variable

__all__ = ["of_block", "of_operator", "of_program", "of_variable"]


def of_program(program: Program, *, with_details: bool = False) -> str:
    """Block by block, then the version."""
    blocks = [
        "blocks {\n" + _indented(of_block(block, with_details=with_details)) + "}\n"
        for block in program.blocks
    ]
    message = proto.program_message(program)
    message.ClearField("blocks")
    return "".join(blocks) + text_format.MessageToString(message)


def of_block(block: Block, *, with_details: bool = False) -> str:
    """The block's number, its variables in order of creation, its operators in order."""
    head = f"idx: {block.idx}\nparent_idx: {block.parent_idx}\n"
    variables = [
        "vars {\n" + _indented(of_variable(v, with_details=with_details)) + "}\n" for v in block.vars.values()
    ]
    ops = ["ops {\n" + _indented(of_operator(op)) + "}\n" for op in block.ops]
    return head + "".join(variables) + "".join(ops)


def of_variable(variable: Variable, *, with_details: bool = False) -> str:
    """The VarDesc; with details also what only the Python side knows."""
    holder = messages().ProgramDesc().blocks.add()
    message = holder.vars.add()
    proto.encode_variable(variable, message)
    details = ""
    if with_details:
        names = ["error_clip", "stop_gradient"]
        if isinstance(variable, Parameter):
            names += ["trainable", "optimize_attr", "regularizer", "do_model_average"]
        details = "".join(f"{name}: {getattr(variable, name)}\n" for name in names)
    return text_format.MessageToString(message) + details


def of_operator(op: Operator) -> str:
    """The OpDesc."""
    holder = messages().ProgramDesc().blocks.add()
    message = holder.ops.add()
    proto.encode_operator(op, message)
    return text_format.MessageToString(message)


def _indented(text: str) -> str:
    return "".join(f"  {line}" for line in text.splitlines(keepends=True))
