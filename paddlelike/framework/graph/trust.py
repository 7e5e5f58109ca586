"""Operators that a program read from bytes may run only if the caller declares it trusted.

A model should only compute. Operators that open files, call other processes or Python functions, or write to
the terminal are refused by default.
"""

from __future__ import annotations

from paddlelike.errors import UntrustedError
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program
from paddlelike.framework.opdef import find_or_none

_SHOWN = 8
_TARGETS = ("file_path", "dir", "endpoint", "endpoints", "epmap")


def find_untrusted_operators(program: Program) -> list[Operator]:
    """Return the external operators, in any block, that were read from bytes and not declared trusted."""
    return [op for block in program.blocks for op in block.ops if not op.trusted and _is_external(op)]


def check_trusted(program: Program) -> None:
    """Raise UntrustedError when the program holds an external operator that is not trusted."""
    found = find_untrusted_operators(program)
    if found:
        raise UntrustedError(
            "the program was read from bytes, and a program from bytes runs only operators that compute; "
            f"it also holds {describe_operators(found)}",
            hint="if you know who made it: Program.parse_from_string(data, trusted=True), "
            "load_inference_model(..., trusted=True)",
        )


def describe_operators(ops: list[Operator]) -> str:
    """Return a list of operators for an error: types, outputs, files and endpoints."""
    more = [f"{len(ops) - _SHOWN} more"] if len(ops) > _SHOWN else []
    return ", ".join([*map(_describe, ops[:_SHOWN]), *more])


def _describe(op: Operator) -> str:
    targets = [f"{name}={op.attrs[name]!r:.120}" for name in _TARGETS if op.attrs.get(name)]
    outputs = [f"-> {op.output_arg_names!r:.120}"] if op.output_arg_names else []
    return " ".join([repr(op.type), *outputs, *([f"({', '.join(targets)})"] if targets else [])])


def _is_external(op: Operator) -> bool:
    cls = find_or_none(op.type)
    return cls is not None and cls.external
