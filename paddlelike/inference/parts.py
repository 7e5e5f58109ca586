"""Cut a program into parts that run one after the other on different engines."""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby
from typing import Final, NamedTuple

from paddlelike.core import VarType
from paddlelike.framework import Operator, Program
from paddlelike.framework.opdef import registry
from paddlelike.framework.passes import clone as passes
from paddlelike.framework.passes.views import collect_reads, collect_writes

_PORTS: Final = ("feed", "fetch")
#: Operators whose inputs out of range are errors here and zeros in onnxruntime.
_STRICT: Final = frozenset({"one_hot", "one_hot_v2"})
_FEWEST: Final = 4  # least number of operators of a part, so that the change of engine pays off


class Part(NamedTuple):
    """Consecutive operators that run on one engine, as a separate program."""

    program: Program
    inputs: list[str]
    outputs: list[str]
    stays: bool  # whether the Executor runs it


def find_kept(program: Program) -> dict[int, str]:
    """Return the operators that only the Executor runs as Paddle does, by index, with their types.

    They draw random numbers, write into the scope, or refuse inputs that other engines accept.
    """
    return {
        index: op.type
        for index, op in enumerate(program.global_block().ops)
        if op.type not in _PORTS and (_is_random(op) or writes_scope(op) or op.type in _STRICT)
    }


def _is_random(op: Operator) -> bool:
    cls = registry.find_or_none(op.type)
    return cls is not None and "seed" in cls.attrs and not op.attrs.get("is_test")


def writes_scope(op: Operator) -> bool:
    """Return whether an operator changes a persistable."""
    if op.type in _PORTS or op.attrs.get("is_test") or op.attrs.get("use_global_stats"):
        return False
    found = (op.block._find_var_recursive(name) for name in collect_writes(op))
    return any(variable is not None and variable.persistable for variable in found)


def cut_into_parts(
    program: Program, feeds: Collection[str], fetches: Collection[str], kept: Collection[int]
) -> list[Part] | None:
    """Cut a program into parts; the Executor runs the parts that contain the operators ``kept``.

    Return None if a value between two parts may not be a tensor, or if too few operators are left for the
    engine.
    """
    chosen = [
        (op, index in kept) for index, op in enumerate(program.global_block().ops) if op.type not in _PORTS
    ]
    runs = [
        [(op, stays or len(run) < _FEWEST) for op, _ in run]
        for stays, run in ((stays, list(run)) for stays, run in groupby(chosen, key=lambda pair: pair[1]))
    ]
    merged = [
        ([op for op, _ in run], stays)
        for stays, run in (
            (stays, list(run))
            for stays, run in groupby((pair for run in runs for pair in run), key=lambda pair: pair[1])
        )
    ]
    if all(stays for _, stays in merged):
        return None
    parts = []
    for at, (ops, stays) in enumerate(merged):
        later = {name for others, _ in merged[at + 1 :] for op in others for name in collect_reads(op)}
        part = _make_part(program, ops, set(fetches) | later, stays=stays)
        borders = (program.global_block().vars.get(name) for name in (*part.inputs, *part.outputs))
        if any(one is None or one.type != VarType.LOD_TENSOR for one in borders):
            return None
        parts.append(part)
    written = {*feeds}.union(*(part.outputs for part in parts))
    return parts if all(written.issuperset(part.inputs) for part in parts) else None


def _make_part(program: Program, ops: list[Operator], wanted: set[str], *, stays: bool) -> Part:
    block = program.global_block()
    places = {id(op): index for index, op in enumerate(block.ops)}
    written: dict[str, None] = {}
    inputs: dict[str, None] = {}
    for op in ops:
        read = [name for name in sorted(collect_reads(op)) if name not in written]
        inputs.update(dict.fromkeys(n for n in read if n not in block.vars or not block.vars[n].persistable))
        written.update(dict.fromkeys(sorted(collect_writes(op))))
    copied = passes.copy(program)
    top = copied.global_block()
    top.ops = [top.ops[places[id(op)]] for op in ops]
    outputs = [n for n in written if n in wanted and not (n in block.vars and block.vars[n].persistable)]
    return Part(copied, [name for name in inputs if name], outputs, stays)
