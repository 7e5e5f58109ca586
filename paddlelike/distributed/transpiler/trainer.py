"""The program of a trainer: sends each gradient once it is computed, receives parameters at the end."""

from __future__ import annotations

from typing import Any

from paddlelike.core import VarType
from paddlelike.distributed.transpiler.sparse import fetch_rows_remotely, grow_remotely
from paddlelike.distributed.transpiler.split_plan import Plan, Trained, make_control_variable
from paddlelike.distributed.transpiler.training import (
    Training,
    remote_lookups,
    schedule_ops,
    tables_read_whole,
)
from paddlelike.errors import GraphError
from paddlelike.framework import Block, Operator, OpRole, Program, Variable

_RPC = {"op_role": OpRole.RPC}
_DIST = {"op_role": OpRole.Dist}


def add_traffic(program: Program, plan: Plan, counter: Variable | None) -> None:
    """Add the sends, barriers and receives to a trainer's program.

    An asynchronous trainer sends ``counter``, its step counter, for the schedules. Raises GraphError
    where no operator computes a gradient.
    """
    lookups = remote_lookups(program.global_block())
    needed = tables_read_whole(program, lookups)
    for one in plan.trained:
        is_rows = one.pieces[0].grad.type == VarType.SELECTED_ROWS
        one.remote = is_rows and one.param.name in lookups and one.param.name not in needed
    _send_gradients(program, plan)
    _receive_parameters(program, plan, counter, grow_remotely(program, plan))


def _send_gradients(program: Program, plan: Plan) -> None:
    block = program.global_block()
    count = len(block.ops)
    writers = {name: op for op in block.ops for name in op.output_arg_names}
    behind: dict[int, list[Operator]] = {}  # by id of an operator, the ones after it; the last gradient first
    for one in plan.sending:
        one.sent = make_control_variable(program)
        start = len(block.ops)
        _send(block, plan, one)
        if one.grad.name not in writers:
            raise GraphError(f"no operator computes {one.grad.name!r}, the gradient of {one.param.name!r}")
        writer = id(writers[one.grad.name])
        behind[writer] = [*block.ops[start:], *behind.get(writer, [])]
    block.ops = [step for op in block.ops[:count] for step in (op, *behind.get(id(op), ()))]
    program._note_change()


def _send(block: Block, plan: Plan, one: Trained) -> None:
    job = plan.job
    attrs: dict[str, Any] = {"epmap": one.endpoints, "op_role_var": one.role_var, **_RPC}
    sent = one.grad_pieces
    if job.config.runtime_split_send_recv:
        sent = [one.grad]
        attrs["sections"] = one.heights
        waits = job.config.completely_not_async and job.trainers > 1
        suffix = f".trainer_{job.trainer_id}" if waits else ""
        attrs["send_varnames"] = [piece.grad.name + suffix for piece in one.pieces]
    elif one.is_cut:
        _cut_gradient(block, one)
    block.append_op("send", {"X": sent}, {"Out": one.sent}, attrs)


def _cut_gradient(block: Block, one: Trained) -> None:
    type_, how = "split_byref", "sections"
    if one.grad.type == VarType.SELECTED_ROWS:
        type_, how = "split_selected_rows", "height_sections"
    block.append_op(type_, {"X": one.grad}, {"Out": one.grad_pieces}, {how: one.heights, **_DIST})


def _receive_parameters(
    program: Program, plan: Plan, counter: Variable | None, growing: list[Variable]
) -> None:
    block, job = program.global_block(), plan.job
    barrier = make_control_variable(program)
    sent = [*(one.sent for one in plan.sending), *growing]
    if plan.table is not None:
        plan.table_sent = make_control_variable(program)
        sent.append(plan.table_sent)
    if counter is not None:
        sent.append(_send_counter(program, plan, counter))
    to_all = {"endpoints": list(job.endpoints), "trainer_id": job.trainer_id, **_RPC}
    half_async = job.config.runtime_split_send_recv and job.config.half_async
    if job.sync or half_async:
        attrs = {**to_all, "half_async": not job.sync}
        block.append_op("send_barrier", {"X": sent}, {"Out": barrier}, attrs)
    received = []
    for one in plan.trained:
        if not one.remote:
            received += _receive(block, plan, one, barrier if job.sync else one.sent)
    fetch_rows_remotely(program, plan)
    if job.sync:
        block.append_op("fetch_barrier", {"X": [barrier]}, {"Out": received}, to_all)
    if not job.config.runtime_split_send_recv:
        for one in plan.trained:
            if one.is_cut and not one.remote:
                block.append_op("concat", {"X": one.param_pieces}, {"Out": [one.param]}, {"axis": 0, **_DIST})


def _send_counter(program: Program, plan: Plan, counter: Variable) -> Variable:
    job, sent = plan.job, make_control_variable(program)
    attrs = {
        "epmap": list(job.endpoints),
        "send_varnames": [counter.name] if job.config.runtime_split_send_recv else [],
        "merge_add": True,
        "use_send_handler": False,
        "op_role_var": [counter.name, counter.name],
        **_RPC,
    }
    program.global_block().append_op("send", {"X": counter}, {"Out": sent}, attrs)
    return sent


def _receive(block: Block, plan: Plan, one: Trained, after: Variable | None) -> list[Variable]:
    """Receive one parameter; return the variables that are received."""
    attrs = {"epmap": one.endpoints, "trainer_id": plan.job.trainer_id, "op_role_var": one.role_var, **_RPC}
    out = one.param_pieces
    if plan.job.config.runtime_split_send_recv:
        attrs["recv_varnames"] = [piece.name for piece in out]
        out = [one.param]
    block.append_op("recv", {"X": [after]}, {"Out": out}, attrs)
    return out


def remove_updates(program: Program, startup: Program, training: Training) -> None:
    """Remove updates, learning rates, and the variables that only these need; idempotent."""
    block, first = program.global_block(), startup.global_block()
    named = {name for op in training.ops for name in op.attrs["op_role_var"]}
    surplus = {name for op in training.ops for name in op.input_arg_names} - named
    first.ops = [op for op in first.ops if not surplus.intersection(op.output_arg_names)]
    gone = {id(op) for op in [*training.ops, *schedule_ops(block)]}
    block.ops = [op for op in block.ops if id(op) not in gone]
    for where in (first, block):
        where.vars = {name: var for name, var in where.vars.items() if name not in surplus}
        where.program._note_change()
