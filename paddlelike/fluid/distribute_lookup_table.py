"""``fluid.distribute_lookup_table``: the table of a program that is sharded by id over servers."""

from paddlelike.distributed.transpiler.training import find_table as find_distributed_lookup_table
from paddlelike.framework import Operator, Program, Variable

__all__ = [
    "find_distributed_lookup_table",
    "find_distributed_lookup_table_inputs",
    "find_distributed_lookup_table_outputs",
]


def find_distributed_lookup_table_inputs(program: Program, table_name: str) -> list[Variable]:
    """Return the ids that are looked up in a table, one variable for each operator."""
    return [program.global_block().var(op.input("Ids")[0]) for op in _find_lookups(program, table_name)]


def find_distributed_lookup_table_outputs(program: Program, table_name: str) -> list[Variable]:
    """Return the rows that are looked up in a table, one variable for each operator."""
    return [program.global_block().var(op.output("Out")[0]) for op in _find_lookups(program, table_name)]


def _find_lookups(program: Program, table: str) -> list[Operator]:
    ops = program.global_block().ops
    return [op for op in ops if op.type == "lookup_table" and op.input("W") == [table]]
