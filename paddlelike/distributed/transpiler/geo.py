"""Geo-SGD: trainers update parameters themselves, and send the changes to servers after several steps.

A trainer's program keeps its updates. After them, one ``send`` reports the ids that the step looked up;
:mod:`paddlelike.distributed.client.geo` decides what to send. Servers add each difference to its parameter.
"""

from __future__ import annotations

from paddlelike.core import VarType
from paddlelike.distributed.placement import DELTA
from paddlelike.distributed.transpiler.config import DistributedMode
from paddlelike.distributed.transpiler.server import Server
from paddlelike.distributed.transpiler.split_plan import Plan, make_control_variable
from paddlelike.distributed.transpiler.training import LOOKUPS, Training
from paddlelike.framework import Block, Program


def turn_into_differences(program: Program, plan: Plan) -> None:
    """Change the pieces of a plan from gradients to changes of parameters."""
    block = program.global_block()
    for one in plan.trained:
        one.remote = one.grad.type == VarType.SELECTED_ROWS
        for piece in one.pieces:
            if one.is_cut:
                del block.vars[piece.grad.name]
            piece.merged = piece.param.name + DELTA
            if not block.has_var(piece.merged):
                piece.grad = block.create_var(
                    name=piece.merged, type=one.grad.type, dtype=piece.param.dtype, shape=piece.param.shape
                )


def add_geo_traffic(program: Program, plan: Plan) -> None:
    """Add an operator by which a trainer's program reports looked-up ids to the communicator."""
    block = program.global_block()
    sparse = {one.param.name for one in plan.trained if one.remote}
    pairs: dict[tuple[str, str], None] = {}
    for op in block.ops:
        if op.type in LOOKUPS and op.input("W")[0] in sparse:
            if "remote_prefetch" in op.attrs:
                op._set_attr("remote_prefetch", False)
            pairs[op.input("Ids")[0], op.input("W")[0]] = None
    _send(block, plan, [ids for ids, _ in pairs], [table for _, table in pairs])


def send_start(startup: Program, plan: Plan) -> None:
    """Add an operator to a trainer's startup program that reports the initialized parameters."""
    start = startup.global_block().create_var(name="param_init")
    _send(startup.global_block(), plan, [start.name], [start.name])


def _send(block: Block, plan: Plan, sent: list[str], names: list[str]) -> None:
    attrs = {"send_varnames": names, "epmap": list(plan.job.endpoints), "trainer_id": plan.job.trainer_id}
    block.append_op("send", {"X": sent}, {"Out": make_control_variable(block.program)}, attrs)


def make_geo_server(source: Program, training: Training, plan: Plan, endpoint: str) -> Program:
    """Return the program of the server at ``endpoint``."""
    server = Server(source, training, plan, endpoint)
    server.declare()
    parent = server.program.num_blocks - 1
    blocks = []
    for piece in server.pieces:
        block = server.program._create_block(parent)
        block.append_op("sum", {"X": [piece.param.name, piece.merged]}, {"Out": piece.param.name})
        server.gradient_blocks.append(f"{piece.merged}:{block.idx}")
        if piece.grad.type == VarType.SELECTED_ROWS:
            server.sparse.append(f"{piece.merged}:{piece.param.name}")
        blocks.append(block)
    server.listen(blocks or [server.program._create_block(parent)], None, None, mode=DistributedMode.GEO)
    return server.program
