"""Tables on servers; trainers fetch only the rows that they look up.

Look-ups in tables that are cut into blocks of rows (``is_sparse``) become ``distributed_lookup_table``, those
in growing tables ``distributed_sparse_embedding``. Look-ups in tables sharded by id (``is_distributed``)
become split_ids, prefetch, merge_ids; gradients are split by id as well.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from paddlelike.distributed.transpiler.split_plan import Plan, Trained, make_control_variable
from paddlelike.distributed.transpiler.training import own_attrs, remote_lookups
from paddlelike.errors import GraphError
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Block, Operator, OpRole, Program, Variable

_DIST = {"op_role": OpRole.Dist}

# Growing tables


def grow_remotely(program: Program, plan: Plan) -> list[Variable]:
    """Replace the look-ups in growing tables by remote ones; send the seen ids and the gradients.

    Return the control variables of the sends.
    """
    block, sent = program.global_block(), []
    for one in plan.growing:
        name = one.table.param.name
        parts: list[Variable] = []
        for op in [op for op in block.ops if op.type == "sparse_embedding" and op.input("W") == [name]]:
            seen = block.create_var(
                name=f"{one.counts.grad.name}.{len(parts)}",
                type=one.counts.grad.type,
                dtype=one.counts.grad.dtype,
                shape=one.counts.grad.shape,
            )
            _look_up_remotely(block, plan, op, seen)
            parts.append(seen)
        last = next(op for op in block.ops if parts[-1].name in op.output_arg_names)
        outputs = {"Out": one.counts.grad}
        _insert(block, last.idx + 1, functools.partial(block.append_op, "sum", {"X": parts}, outputs, _DIST))
        for half in (one.counts, one.table):
            half.sent = make_control_variable(program)
            sent.append(half.sent)
            writer = [op for op in block.ops if half.grad.name in op.output_arg_names][-1]
            _insert(block, writer.idx + 1, functools.partial(_send_by_id, block, half))
    return sent


def _look_up_remotely(block: Block, plan: Plan, op: Operator, seen: Variable) -> None:
    outputs = {"Out": op.output("Out"), "Seen": seen}
    attrs = {**own_attrs(op), "endpoints": list(plan.job.endpoints), "trainer_id": plan.job.trainer_id}
    at = _remove_ops(block, [op], op.idx)
    add = functools.partial(block.append_op, "distributed_sparse_embedding", op.inputs, outputs, attrs)
    _insert(block, at, add)


def _send_by_id(block: Block, one: Trained) -> None:
    attrs = {
        "epmap": one.endpoints,
        "send_varnames": [one.grad.name for _ in one.pieces],
        "op_role": OpRole.RPC,
        "op_role_var": [one.param.name, one.grad.name],
    }
    block.append_op("send", {"X": [one.grad]}, {"Out": one.sent}, attrs)


# Blocks of rows


def fetch_rows_remotely(program: Program, plan: Plan) -> None:
    """Replace the lookups in tables that servers keep in blocks of rows."""
    lookups = remote_lookups(program.global_block())
    for one in plan.trained:
        if one.remote:
            for group in _group_lookups(lookups[one.param.name]):
                _fetch_rows(program.global_block(), plan, one, group)


def _group_lookups(lookups: Iterable[Operator]) -> list[list[Operator]]:
    """Group lookups that one operator can do together."""
    groups: dict[tuple[str, int], list[Operator]] = {}
    for op in lookups:
        groups.setdefault((op.type, op.attrs["padding_idx"]), []).append(op)
    return list(groups.values())


def _fetch_rows(block: Block, plan: Plan, one: Trained, lookups: list[Operator]) -> None:
    at = _index_for(block, lookups)
    if at is None and len(lookups) > 1:  # some depend on others
        for op in lookups:
            _fetch_rows(block, plan, one, [op])
        return
    at = _remove_ops(block, lookups, at if at is not None else lookups[0].idx)

    def append() -> None:
        block.append_op(
            "distributed_lookup_table",
            {"Ids": [op.input("Ids")[0] for op in lookups], "W": one.param},
            {"Outputs": [op.output("Out")[0] for op in lookups]},
            {
                "table_names": [piece.name for piece in one.param_pieces],
                "height_sections": one.heights,
                "endpoints": one.endpoints,
                "padding_idx": lookups[0].attrs["padding_idx"],
                "trainer_id": plan.job.trainer_id,
                "lookup_table_version": lookups[0].type,
            },
        )

    _insert(block, at, append)


def _index_for(block: Block, lookups: Sequence[Operator]) -> int | None:
    """Return an index after the lookups' ids and before their first use, or None if no index is between."""
    ids = {name for op in lookups for name in op.input("Ids")}
    outs = {name for op in lookups for name in op.output("Out")}
    mine = {id(op) for op in lookups}
    others = [(i, op) for i, op in enumerate(block.ops) if id(op) not in mine]
    at = max((i for i, op in others if ids.intersection(op.output_arg_names)), default=-1) + 1
    first_use = min((i for i, op in others if outs.intersection(op.input_arg_names)), default=len(block.ops))
    return at if at <= first_use else None


def _remove_ops(block: Block, ops: Sequence[Operator], at: int) -> int:
    """Remove operators; return the new index of the operator that was at ``at``."""
    gone = {id(op) for op in ops}
    at -= sum(id(op) in gone for op in block.ops[:at])
    block.ops = [op for op in block.ops if id(op) not in gone]
    return at


def _insert(block: Block, at: int, append: Callable[[], object]) -> None:
    """Call ``append``, which appends operators to a block, and move these operators to index ``at``."""
    count = len(block.ops)
    append()
    ops, added = block.ops[:count], block.ops[count:]
    block.ops = [*ops[:at], *added, *ops[at:]]
    block.program._note_change()


# Sharded by id


def declare_table_gradients(program: Program, plan: Plan) -> list[Variable]:
    """Declare one variable per server for this trainer's part of the table's gradient."""
    assert plan.table is not None
    block, job = program.global_block(), plan.job
    grad = block.var(f"{plan.table}@GRAD")
    mine = f".trainer_{job.trainer_id}" if job.sync else ""
    return [
        block.create_var(
            name=f"{grad.name}{mine}.pserver_{index}", type=grad.type, shape=grad.shape, dtype=grad.dtype
        )
        for index in range(len(job.endpoints))
    ]


def shard_table(program: Program, plan: Plan, grads: Sequence[Variable]) -> None:
    """Replace the lookups in the table that is sharded by id, and send its gradient.

    Raises GraphError where the lookups depend on each other.
    """
    block = program.global_block()
    _prefetch(block, plan)
    name = f"{plan.table}@GRAD"
    writer = next(op for op in block.ops if name in op.output_arg_names)
    _insert(block, writer.idx + 1, lambda: _send_table(block, plan, name, grads))


def _prefetch(block: Block, plan: Plan) -> None:
    table = plan.table
    lookups = [op for op in block.ops if op.type == "lookup_table" and op.input("W")[0] == table]
    at = _index_for(block, lookups)
    if at is None:
        raise GraphError(
            f"the lookups in the distributed table {table!r} depend on each other",
            hint="use is_sparse=True without is_distributed=True, which has no such limit",
        )
    if any(op.attrs["padding_idx"] != -1 for op in lookups):
        warn_user(
            f"padding_idx has no effect on the distributed table {table!r}, as in Fluid: the row of padding "
            "is looked up and trained like others"
        )
    at = _remove_ops(block, lookups, max(at, lookups[0].idx))
    ids = [block._var_recursive(op.input("Ids")[0]) for op in lookups]
    outs = [block._var_recursive(op.output("Out")[0]) for op in lookups]
    servers = len(plan.job.endpoints)
    asked = _declare_per_server(block, "prefetch_compress_in_tmp", ids[0], servers)
    found = _declare_per_server(block, "prefetch_compress_out_tmp", outs[0], servers)

    def append() -> None:
        block.append_op("split_ids", {"Ids": ids}, {"Out": asked})
        block.append_op("prefetch", {"X": asked}, {"Out": found}, {"epmap": list(plan.job.endpoints)})
        block.append_op("merge_ids", {"Ids": ids, "Rows": asked, "X": found}, {"Out": outs})

    _insert(block, at, append)


def _declare_per_server(block: Block, name: str, like: Variable, servers: int) -> list[Variable]:
    """Declare a variable like another for each server."""
    return [
        block.create_var(name=f"{name}_{i}", type=like.type, shape=like.shape, dtype=like.dtype)
        for i in range(servers)
    ]


def _send_table(block: Block, plan: Plan, grad: str, grads: Sequence[Variable]) -> None:
    block.append_op("split_ids", {"Ids": grad}, {"Out": list(grads)}, {"op_role": OpRole.Dist})
    block.append_op(
        "send",
        {"X": list(grads)},
        {"Out": [plan.table_sent] if plan.job.sync else []},
        {
            "epmap": list(plan.job.endpoints),
            "trainer_id": plan.job.trainer_id,
            "op_role": OpRole.RPC,
            "op_role_var": [plan.table, grad],
        },
    )
