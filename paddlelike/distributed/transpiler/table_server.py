"""One server's shard of a table that is sharded by id: how it is updated, looked up and saved.

The table is SelectedRows; a row is created when it is first looked up. Its update is always sgd, since
``minimize`` appends no other update for such a table.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from paddlelike.core import VarType
from paddlelike.distributed.transpiler.split_plan import Plan
from paddlelike.distributed.transpiler.training import Training
from paddlelike.framework import Block, Operator, Program, Variable


class TableBlocks(NamedTuple):
    """The blocks and variables of a sharded table, for the attributes of listen_and_serv."""

    gradient: str
    asked: str  #: the variable of the ids that are looked up
    update: Block
    lookup: Block
    save: Block


def count_shard_rows(rows: int, servers: int) -> int:
    """Return the number of rows that a server declares."""
    return math.ceil(rows / servers)


def add_table(
    program: Program, source: Program, training: Training, plan: Plan, endpoint: str, parent: int
) -> TableBlocks:
    """Add the blocks for the shard of ``endpoint`` to its program."""
    server = plan.job.endpoints.index(endpoint)
    block, whole = program.global_block(), source.global_block().var(str(plan.table))
    table = block.create_var(
        name=whole.name,
        shape=[count_shard_rows(whole.shape[0], len(plan.job.endpoints)), *whole.shape[1:]],
        dtype=whole.dtype,
        type=VarType.SELECTED_ROWS,
        persistable=True,
    )
    update = program._create_block(parent)
    gradient = _add_update(update, table, source, training, plan, server)
    lookup = program._create_block(update.idx)
    asked = _add_lookup(lookup, table, source, server)
    block.create_var(name="kLookupTablePath", persistable=True, type=VarType.RAW)
    save = program._create_block(update.idx)
    save.append_op("save", {"X": [table]}, {}, {"file_path": "none"})  # the request names the directory
    return TableBlocks(gradient, asked, update, lookup, save)


def _add_update(
    update: Block, table: Variable, source: Program, training: Training, plan: Plan, server: int
) -> str:
    """Update the table by sgd; return the name of the gradient that arrives or is summed."""
    block, network = update.program.global_block(), source.global_block()
    op = _find_update(training, table.name)
    whole = network.var(f"{table.name}@GRAD")
    rate = op.input("LearningRate")[0]
    if not block.has_var(rate):
        block._clone_variable(network.var(rate))
    if plan.job.sync:
        grad = block._clone_variable(whole).name
        names = [f"{whole.name}.trainer_{i}.pserver_{server}" for i in range(plan.job.trainers)]
        for name in names:
            block.create_var(name=name, type=whole.type, shape=whole.shape, dtype=whole.dtype)
        update.append_op("sum", {"X": names}, {"Out": grad})
    else:
        grad = f"{whole.name}.pserver_{server}"
        block.create_var(name=grad, type=whole.type, shape=whole.shape, dtype=whole.dtype, persistable=True)
    inputs = {"Param": table, "Grad": grad, "LearningRate": rate}
    update.append_op("sgd", inputs, {"ParamOut": table})
    return grad


def _find_update(training: Training, table: str) -> Operator:
    return next(op for op in training.ops if op.input("Param") == [table])


def _add_lookup(lookup: Block, table: Variable, source: Program, server: int) -> str:
    block, network = lookup.program.global_block(), source.global_block()
    names = [f"prefetch_compress_in_tmp_{server}", f"prefetch_compress_out_tmp_{server}"]
    for name in names:
        like = network.var(name)
        block.create_var(name=name, type=like.type, shape=like.shape, dtype=like.dtype)
    lookup.append_op("lookup_sparse_table", {"Ids": names[0], "W": table}, {"Out": names[1]})
    return names[0]
