"""Programs as protobuf text, as Paddle prints them."""

from __future__ import annotations

from typing import Any

from paddlelike.framework.codec.encode import build_message, encode_block, encode_operator, encode_variable
from paddlelike.framework.codec.schema import messages
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Parameter, Variable


def format_program(program: Program, *, with_details: bool = False) -> str:
    """Return a program as text: its message or, with ``with_details``, its blocks without the version."""
    if not with_details:
        return _to_text(build_message(program))
    return "".join(format_block(block, with_details=True) for block in program.blocks)


def format_block(block: Block, *, with_details: bool = False) -> str:
    """Return a block as text: its message or, with ``with_details``, its variables in order of creation."""
    if not with_details:
        message = messages().ProgramDesc().blocks.add()
        encode_block(block, message)
        return _to_text(message)
    texts = [format_variable(v, with_details=True) for v in block.vars.values()]
    variables = [f"\n  vars {{\n{_indent(text)}  }}" for text in texts]
    ops = [f"\n  ops {{\n{_indent(format_operator(op))}  }}" for op in block.ops]
    head = f"blocks {{\n  idx: {block.idx}\n  parent_idx: {block.parent_idx}"
    return head + "".join(variables) + "".join(ops) + "\n}"


def format_variable(variable: Variable, *, with_details: bool = False) -> str:
    """Return a VarDesc as text; ``with_details`` adds attributes that a VarDesc cannot store."""
    holder = messages().ProgramDesc().blocks.add()
    message = holder.vars.add()
    encode_variable(variable, message)
    details = ""
    if with_details:
        names = ["error_clip", "stop_gradient"]
        if isinstance(variable, Parameter):
            names += ["trainable", "optimize_attr", "regularizer", "do_model_average"]
        details = "".join(f"{name}: {getattr(variable, name)}\n" for name in names)
    return _to_text(message) + details


def format_operator(op: Operator) -> str:
    """Return the text of an OpDesc."""
    holder = messages().ProgramDesc().blocks.add()
    message = holder.ops.add()
    encode_operator(op, message)
    return _to_text(message)


def _to_text(message: Any) -> str:
    from google.protobuf import text_format  # late: most programs are never printed

    return text_format.MessageToString(message)


def _indent(text: str) -> str:
    return "".join(f"    {line}" for line in text.splitlines(keepends=True))
