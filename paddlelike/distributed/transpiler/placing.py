"""Make the placement of a transpiled job: its plan, with the optimizer state and the schedules."""

from __future__ import annotations

from collections.abc import Iterator

from paddlelike.core import VarType
from paddlelike.distributed.placement import Kind, Overview, Slice
from paddlelike.distributed.transpiler.slicing import shape_on_server, yield_state
from paddlelike.distributed.transpiler.split_plan import Piece, Plan, Trained
from paddlelike.distributed.transpiler.table_server import count_shard_rows
from paddlelike.distributed.transpiler.training import Training, find_target, is_update, schedule_ops
from paddlelike.framework import Operator, Program, Variable


def place_all(source: Program, startup: Program, training: Training, plan: Plan) -> Overview:
    """Return all slices of a job; ``source`` has the network with updates, ``startup`` its initializers."""
    slices = list(_yield_trained(plan))
    if plan.job.is_geo:
        return Overview(slices, endpoints=plan.job.endpoints, trainers=plan.job.trainers)
    slices += _optimizer_state(source, training, plan)
    slices += _table(source, plan)
    slices += _growing(source, training, plan)
    slices += _schedules(source, startup, training, plan)
    slices += _averages(source, startup, training, plan, {(one.endpoint, one.name) for one in slices})
    return Overview(slices, endpoints=plan.job.endpoints, trainers=plan.job.trainers)


def _yield_trained(plan: Plan) -> Iterator[Slice]:
    for one in plan.trained:
        for piece in one.pieces:
            yield _slice(
                one.param,
                piece,
                name=piece.param.name,
                shape=piece.param.shape,
                kind=Kind.REMOTE if one.remote else Kind.PARAMETER,
                gradient=piece.merged,
            )


def _slice(
    origin: Variable,
    piece: Piece,
    *,
    name: str,
    shape: tuple[int, ...],
    kind: Kind,
    gradient: str = "",
    owner: str = "",
) -> Slice:
    """Return the slice of a variable on the server of ``piece``, cut like the piece or, if shapes are equal,
    whole.
    """
    is_whole = tuple(shape) == tuple(origin.shape)
    return Slice(
        origin.name,
        name,
        piece.endpoint,
        0 if is_whole else piece.block,
        0 if is_whole else piece.first_row,
        tuple(shape),
        tuple(origin.shape),
        origin.dtype,
        kind,
        gradient=gradient,
        owner=owner,
    )


def _optimizer_state(source: Program, training: Training, plan: Plan) -> Iterator[Slice]:
    trained = {one.param.name: one for one in plan.trained}
    updates = [op for op in training.ops if is_update(op) and op.input("Param")[0] in trained]
    for endpoint in plan.job.endpoints:
        for op in updates:
            one = trained[op.input("Param")[0]]
            for piece in one.pieces:
                if piece.endpoint == endpoint:
                    yield from _yield_state_slices(source, op, one, piece)


def _yield_state_slices(source: Program, op: Operator, one: Trained, piece: Piece) -> Iterator[Slice]:
    for slot, whole in sorted(yield_state(op, source.global_block()), key=lambda pair: pair[0]):
        shape = shape_on_server(op, slot, whole, piece.param.shape)
        yield _slice(whole, piece, name=whole.name, shape=shape, kind=Kind.OPTIMIZER, owner=one.param.name)


def _table(source: Program, plan: Plan) -> Iterator[Slice]:
    if plan.table is None:
        return
    table, servers = source.global_block().var(plan.table), len(plan.job.endpoints)
    shape = (count_shard_rows(table.shape[0], servers), *table.shape[1:])
    suffix = "" if plan.job.sync else ".pserver_{}"
    for server, endpoint in enumerate(plan.job.endpoints):
        yield Slice(
            table.name,
            table.name,
            endpoint,
            server,
            server,
            shape,
            tuple(table.shape),
            table.dtype,
            Kind.TABLE,
            gradient=f"{table.name}@GRAD" + suffix.format(server),
            stride=servers,
        )


def _growing(source: Program, training: Training, plan: Plan) -> Iterator[Slice]:
    """Return the growing tables, with their counts and state, on every server."""
    block, servers = source.global_block(), plan.job.endpoints

    def spread(var: Variable, gradient: str = "", owner: str = "") -> Iterator[Slice]:
        is_rows, shape = var.type == VarType.SELECTED_ROWS, tuple(var.shape)
        kind = Kind.GROWING if is_rows else Kind.OPTIMIZER
        for i, endpoint in enumerate(servers):
            at, stride = (i, len(servers)) if is_rows else (0, 1)
            places = (endpoint, at, at, shape, shape, var.dtype, kind)
            yield Slice(var.name, var.name, *places, gradient=gradient, owner=owner, stride=stride)

    for one in plan.growing:
        name = one.table.param.name
        yield from spread(one.table.param, one.table.grad_name)
        yield from spread(one.counts.param, one.counts.grad_name, name)
        for op in training.ops:
            if is_update(op) and op.input("Param") == [name]:
                for _, state in sorted(yield_state(op, block), key=lambda pair: pair[0]):
                    yield from spread(state, owner=name)


def _schedules(source: Program, startup: Program, training: Training, plan: Plan) -> Iterator[Slice]:
    """Return learning rates and counters, on every server that has them."""
    initialised = {name for op in startup.global_block().ops for name in op.output_arg_names}
    block = source.global_block()
    ops = schedule_ops(block)
    rates = {name for op in training.ops for name in op.input("LearningRate")}
    constants = rates - {name for one in source.blocks for op in one.ops for name in op.output_arg_names}
    everywhere = {n for op in ops for n in (*op.input_arg_names, *op.output_arg_names) if n in initialised}
    for endpoint in plan.job.endpoints:
        names = set(everywhere)
        here = {one.param.name for one in plan.trained for p in one.pieces if p.endpoint == endpoint}
        here |= {plan.table} if plan.table is not None else set()
        here |= {one.table.param.name for one in plan.growing}
        for op in training.ops:
            if is_update(op) and op.input("Param")[0] in here:
                for slot in ("LearningRate", "Beta1Tensor", "Beta2Tensor"):
                    names |= initialised.intersection(op.input(slot))
        for name in sorted(names):
            var = block._find_var_recursive(name)
            if var is not None and var.persistable and var.type == VarType.LOD_TENSOR:
                shape = tuple(var.shape)
                kind = Kind.RATE if name in constants else Kind.SCHEDULE
                yield Slice(name, name, endpoint, 0, 0, shape, shape, var.dtype, kind)


def _averages(
    source: Program, startup: Program, training: Training, plan: Plan, known: set[tuple[str, str]]
) -> Iterator[Slice]:
    """Yield new state of operators other than updates, such as moving averages; add it to ``known``."""
    block = source.global_block()
    initialised = {name for op in startup.global_block().ops for name in op.output_arg_names}
    trained = {one.param.name: one for one in plan.trained}
    written = {name for op in training.ops for name in op.output_arg_names}
    for op in training.ops:
        one = trained.get(find_target(op))
        if one is None or is_update(op):
            continue
        for name in sorted(initialised.intersection(op.input_arg_names) - set(trained)):
            var = block.var(name)
            is_like_parameter = var.shape == block.var(one.param.name).shape
            for piece in one.pieces:
                if var.persistable and (piece.endpoint, name) not in known:
                    known.add((piece.endpoint, name))
                    shape = piece.param.shape if is_like_parameter else var.shape
                    kind = Kind.AVERAGE if name in written else Kind.SCHEDULE  # else a constant
                    owner = one.param.name if name in written else ""
                    yield _slice(var, piece, name=name, shape=shape, kind=kind, owner=owner)
