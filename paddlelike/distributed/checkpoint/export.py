"""Make a trainer's program run without servers: lookups that servers answer become local ones."""

from __future__ import annotations

from paddlelike.errors import SaveError
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program
from paddlelike.framework.passes import clone as passes


def with_local_lookups(program: Program) -> Program:
    """Return a copy of a trainer's program that predicts without servers; operators that train are unchanged.

    Raises
    ------
    SaveError
        The program looks up rows of a table that it does not name.
    """
    clone = passes.copy(program)
    table = program._distributed_lookup_table
    clone._is_distributed = clone._is_chief = False
    clone._parameters_on_pservers = clone._ps_endpoint = clone._distributed_lookup_table = None
    block = clone.global_block()
    for index in reversed(range(len(block.ops))):
        op = block.ops[index]
        if op.type == "distributed_lookup_table":
            _replace(block, index, op.attrs["lookup_table_version"], op.input("W")[0], "Outputs")
        elif op.type == "distributed_sparse_embedding":
            inputs = op.inputs
            attrs = {name: op.attrs[name] for name in ("padding_idx", "is_test", "entry")}
            block._remove_op(index)
            block._insert_op(index, "sparse_embedding", inputs, {"Out": op.output("Out")}, attrs)
        elif op.type == "merge_ids":
            if table is None:
                raise SaveError(
                    "the program looks up rows by prefetch and does not name the table",
                    hint="save with the program of DistributeTranspiler.get_trainer_program()",
                )
            _replace(block, index, "lookup_table", table, "Out")
        elif op.type in ("split_ids", "prefetch"):
            block._remove_op(index)
    return clone


def _replace(block: Block, index: int, kind: str, table: str, slot: str) -> None:
    """Replace a lookup that servers answer by local ones."""
    op: Operator = block.ops[index]
    pairs = list(zip(op.input("Ids"), op.output(slot), strict=True))
    padding = op.attrs.get("padding_idx", -1)
    block._remove_op(index)
    for ids, out in pairs:
        inputs = {"W": [table], "Ids": [ids]}
        block._insert_op(index, kind, inputs, {"Out": [out]}, {"padding_idx": padding})
