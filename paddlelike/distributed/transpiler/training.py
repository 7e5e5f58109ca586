"""The operators of a training program: updates, learning rates, lookups of rows.

The attribute ``op_role`` tells them apart (Optimize: updates and the preparation of gradients for them;
LRSched: learning rates); ``op_role_var`` names the parameter and its gradient.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from paddlelike.errors import GraphError
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Block, Operator, OpRole, Parameter, Program, Variable
from paddlelike.lazy import dataclass

#: Operators that look up rows, which a server may do.
LOOKUPS = ("lookup_table", "lookup_table_v2")
_LOOKUP_GRADS = tuple(f"{type_}_grad" for type_ in LOOKUPS)
_CLIP = re.compile(r"/gra(di|id)ent_clip")  # both spellings occur in Paddle
_LOCAL_ATTRS = ("op_namescope", "op_callstack")


@dataclass
class Training:
    """The update operators, and the pairs of parameters and gradients, in program order."""

    ops: list[Operator] = field(default_factory=list)
    pairs: list[tuple[Variable, Variable]] = field(default_factory=list)


def find_training(program: Program) -> Training:
    """Return the training operators of a program.

    Trainers have whole gradients, so clipping is theirs: its operators get the role Backward. Fluid 1.8.5
    recognizes only ``set_gradient_clip``; with an optimizer's ``grad_clip`` its trainers send gradients that
    they never compute.

    Raises
    ------
    GraphError
        The program has no updates, or one that names no parameter and gradient.
    """
    block = program.global_block()
    found = Training()
    seen = set()
    for op in block.ops:
        if op.attrs.get("op_role") != OpRole.Optimize:
            continue
        if _CLIP.search(op.attrs.get("op_namescope", "")):
            op._set_attr("op_role", OpRole.Backward)
            continue
        found.ops.append(op)
        target = op.attrs.get("op_role_var") or []
        if len(target) < 2:
            raise GraphError(
                f"operator {op.type!r} -> {op.output_arg_names} belongs to the optimizer (op_role Optimize), "
                "but its op_role_var names no parameter and gradient, so that no server can run it",
                hint="append it under program._optimized_guard([parameter, gradient])",
            )
        param, grad = target[:2]
        if param not in seen:
            seen.add(param)
            found.pairs.append((block.var(param), block.var(grad)))
    if not found.ops and not block.ops and not block.vars:
        warn_user("transpile: the program is empty, so that trainers and servers have nothing to do")
    elif not found.ops:
        raise GraphError(
            "the program holds no updates that servers could run",
            hint="call minimize() of an optimizer first",
        )
    return found


def own_attrs(op: Operator) -> dict[str, Any]:
    """Return the attributes of an operator that a copy in another program keeps."""
    return {name: value for name, value in op.attrs.items() if name not in _LOCAL_ATTRS}


def find_target(op: Operator) -> str:
    """Return the parameter that an operator of the optimizer belongs to."""
    return str(op.attrs["op_role_var"][0])


def trainable_pairs(training: Training, *, without: Collection[str]) -> list[tuple[Variable, Variable]]:
    """Return the trainable parameters with their gradients, except the tables in ``without``."""
    return [
        (param, grad)
        for param, grad in training.pairs
        if param.name not in without and not (isinstance(param, Parameter) and not param.trainable)
    ]


def is_update(op: Operator) -> bool:
    """Return whether an operator updates a parameter (sgd, adam, ...; adadelta has no learning rate)."""
    return "Param" in op.inputs and "Grad" in op.inputs


def schedule_ops(block: Block) -> list[Operator]:
    """Return the operators that compute learning rates."""
    roles = (OpRole.LRSched, OpRole.LRSched | OpRole.Optimize)
    return [op for op in block.ops if op.attrs.get("op_role") in roles]


def remote_lookups(block: Block) -> dict[str, list[Operator]]:
    """Return, by table, the lookups whose rows may come from servers."""
    found: dict[str, list[Operator]] = {}
    for op in block.ops:
        if op.type in LOOKUPS and op.attrs.get("remote_prefetch"):
            found.setdefault(op.input("W")[0], []).append(op)
    return found


def tables_read_whole(program: Program, lookups: Mapping[str, Sequence[Operator]]) -> set[str]:
    """Return the tables that operators other than these lookups read, so that trainers need them whole."""
    answered = {id(op) for ops in lookups.values() for op in ops}
    return {
        name
        for block in program.blocks
        for op in block.ops
        if id(op) not in answered
        and op.type not in _LOOKUP_GRADS  # they read only its shape
        and op.attrs.get("op_role") != OpRole.Optimize
        for name in op.input_arg_names
        if name in lookups
    }


def find_table(program: Program) -> str | None:
    """Return the table that is sharded by id: ``embedding(is_distributed=True)``; None if there is none.

    Raises GraphError when there are two, or when some lookups in it are not distributed or not sparse. As in
    Fluid, only ``layers.embedding`` makes such tables.
    """
    for op in program.global_block().ops:
        if op.type == "lookup_table_v2" and op.attrs.get("is_distributed"):
            warn_user(
                f"table {op.input('W')[0]!r} is not sharded by id, as in Fluid: fluid.embedding takes "
                "is_distributed=True and makes an ordinary parameter (fluid.layers.embedding shards it)"
            )
    lookups = [op for op in program.global_block().ops if op.type == "lookup_table"]
    tables = _unique(op.input("W")[0] for op in lookups if op.attrs.get("is_distributed"))
    if len(tables) > 1:
        raise GraphError(
            f"the tables {tables} are all distributed (is_distributed=True); a program may have one such",
            hint="is_sparse=True alone also keeps a table on the servers, cut into blocks of rows",
        )
    for op in lookups:
        if tables and op.input("W")[0] == tables[0] and not op.attrs.get("is_distributed"):
            raise GraphError(
                f"table {tables[0]!r} is distributed, but the lookup to {op.output('Out')} has "
                "is_distributed=False",
                hint="pass is_distributed=True to every embedding that uses it",
            )
        if tables and op.input("W")[0] == tables[0] and not op.attrs.get("is_sparse"):
            raise GraphError(
                f"table {tables[0]!r} is distributed, but the lookup to {op.output('Out')} makes a "
                "gradient of the whole table",
                hint="pass is_sparse=True together with is_distributed=True",
            )
    return tables[0] if tables else None


def find_growing(program: Program) -> dict[str, list[Operator]]:
    """Return the growing tables by name, with the operators that look up their rows.

    Raises GraphError where another operator reads such a table, or two look-ups admit ids differently.
    """
    found: dict[str, list[Operator]] = {}
    for op in program.global_block().ops:
        if op.type == "sparse_embedding":
            found.setdefault(op.input("W")[0], []).append(op)
    for name, ops in found.items():
        rules = {"none" if op.attrs["entry"].startswith("show_click") else op.attrs["entry"] for op in ops}
        if len(rules) > 1:
            raise GraphError(
                f"the look-ups in table {name!r} have different entries: {[op.attrs['entry'] for op in ops]}",
                hint="a table on servers has one rule for new ids: pass one entry= to all sparse_embedding",
            )
    for block in program.blocks:
        for op in block.ops:
            is_own = op.type.startswith("sparse_embedding") and block.idx == 0
            if not is_own and op.attrs.get("op_role") != OpRole.Optimize:
                for name in found.keys() & set(op.input_arg_names):
                    raise GraphError(
                        f"operator {op.type!r} reads table {name!r}, whose rows are on servers",
                        hint="look rows up by sparse_embedding, outside of loops and branches",
                    )
    return found


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
