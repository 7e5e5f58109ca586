"""The plan of a transpiled job: every trained variable, its blocks, their servers and names."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import field

import numpy as np

from paddlelike.core import VarType
from paddlelike.distributed.placement import SEEN
from paddlelike.distributed.transpiler.config import Job
from paddlelike.distributed.transpiler.slicing import block_name, count_block_rows
from paddlelike.distributed.transpiler.training import Training, find_growing, trainable_pairs
from paddlelike.errors import GraphError
from paddlelike.framework import Program, Variable
from paddlelike.framework.codec.schema import messages
from paddlelike.lazy import dataclass

#: Optimizers that read all rows of a parameter at once, so that it must stay in one piece.
_NEEDS_WHOLE = ("lamb",)


@dataclass
class Piece:
    """One block of rows of a parameter and its gradient, which has a name for this trainer."""

    param: Variable
    grad: Variable
    block: int
    first_row: int
    merged: str  #: the name of the gradient of all trainers on the server
    endpoint: str = ""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.param.shape[0]


@dataclass
class Trained:
    """A parameter, its gradient and their pieces."""

    param: Variable
    grad: Variable
    grad_name: str  #: without this trainer's suffix
    pieces: list[Piece]
    sent: Variable | None = None  #: the control variable of the send
    remote: bool = False  #: trainers prefetch rows of it instead of receiving it

    @property
    def is_cut(self) -> bool:
        """Whether the variable has several pieces."""
        return len(self.pieces) > 1

    @property
    def param_pieces(self) -> list[Variable]:
        """The pieces of the parameter."""
        return [piece.param for piece in self.pieces]

    @property
    def grad_pieces(self) -> list[Variable]:
        """The pieces of the gradient."""
        return [piece.grad for piece in self.pieces]

    @property
    def endpoints(self) -> list[str]:
        """The endpoint of each piece."""
        return [piece.endpoint for piece in self.pieces]

    @property
    def heights(self) -> list[int]:
        """The number of rows of each piece."""
        return [piece.rows for piece in self.pieces]

    @property
    def role_var(self) -> list[str]:
        """The parameter and its gradient, for ``op_role_var``."""
        return [self.param.name, self.grad_name if self.is_cut else self.pieces[0].grad.name]


@dataclass
class Growing:
    """A growing table and its counts, each with a piece on every server, and the rule for admitting ids."""

    table: Trained
    counts: Trained
    entry: str


@dataclass
class Plan:
    """The trained variables in program order and in sending order, and the tables sharded by id."""

    job: Job
    trained: list[Trained]
    sending: list[Trained] = field(default_factory=list)
    table: str | None = None  #: the table that is sharded by id
    table_sent: Variable | None = None  #: the control variable of its send
    growing: list[Growing] = field(default_factory=list)

    def pieces_on(self, endpoint: str) -> list[Piece]:
        """Return the pieces on a server, in the order of sending."""
        tables = [half for one in self.growing for half in (one.counts, one.table)]
        return [p for one in (*self.sending, *tables) for p in one.pieces if p.endpoint == endpoint]


def make_plan(program: Program, training: Training, job: Job, table: str | None) -> Plan:
    """Cut the variables of a program, declare the pieces in it and place them on servers.

    A gradient in one piece gets this trainer's suffix wherever it is named. Raises GraphError where the
    dispatcher does not give every piece a server of its own.
    """
    whole = {op.input("Param")[0] for op in training.ops if op.type in _NEEDS_WHOLE}
    trained = []
    renamed: dict[str, str] = {}
    growing = _plan_growing(program, training, job)
    by_id = {one.table.param.name for one in growing} | {table or ""}
    for param, grad in trainable_pairs(training, without=by_id):
        cut = job.config.slice_var_up and param.name not in whole
        heights = count_block_rows(
            param.shape, servers=len(job.endpoints) if cut else 1, min_block_size=job.config.min_block_size
        )
        trained.append(_cut(program, param, grad, heights, job.suffix))
        if not trained[-1].is_cut and job.suffix:
            renamed[grad.name] = grad.name + job.suffix
    _rename(program, renamed)
    plan = Plan(job, trained, _sending_order(trained, job, program.random_seed), table)
    plan.growing = growing
    _place_pieces(plan)
    return plan


def _plan_growing(program: Program, training: Training, job: Job) -> list[Growing]:
    """Return the growing tables; declare the variables that send the ids seen by a trainer."""
    found, block = [], program.global_block()
    pairs = {param.name: (param, grad) for param, grad in training.pairs}
    for name, ops in find_growing(program).items():
        if name not in pairs:
            raise GraphError(
                f"table {name!r} is not trained, so no server would keep it",
                hint="let the loss depend on its rows, or look them up by embedding",
            )
        counts = block.var(ops[0].input("Counts")[0])
        seen = block.create_var(
            name=counts.name + SEEN,
            type=VarType.SELECTED_ROWS,
            dtype=counts.dtype,
            shape=[counts.shape[0], 2],
        )
        table, counted = (
            Trained(
                one,
                grad,
                grad.name,
                [Piece(one, grad, i, i, grad.name, at) for i, at in enumerate(job.endpoints)],
            )
            for one, grad in (pairs[name], (counts, seen))
        )
        found.append(Growing(table, counted, ops[0].attrs["entry"]))
    return found


def _cut(program: Program, param: Variable, grad: Variable, heights: list[int], suffix: str) -> Trained:
    count, name = len(heights), grad.name
    firsts = [0, *itertools.accumulate(heights)][:-1]
    if count == 1:
        return Trained(param, grad, name, [Piece(param, grad, 0, 0, name)])
    pieces = []
    for block, (first, rows) in enumerate(zip(firsts, heights, strict=True)):
        merged = block_name(name, block, count)
        mine = _declare(program, block_name(param.name, block, count), param, rows)
        pieces.append(Piece(mine, _declare(program, merged + suffix, grad, rows), block, first, merged))
    return Trained(param, grad, name, pieces)


def _declare(program: Program, name: str, like: Variable, rows: int) -> Variable:
    shape = [rows, *like.shape[1:]]
    return program.global_block().create_var(
        name=name, persistable=False, dtype=like.dtype, type=like.type, shape=shape
    )


def _rename(program: Program, new: Mapping[str, str]) -> None:
    """Rename variables in block 0 and in its operators, including ``op_role_var``, as Paddle does."""
    block = program.global_block()
    block.vars = {new.get(name, name): var for name, var in block.vars.items()}
    for var in block.vars.values():
        var.name = new.get(var.name, var.name)
    for op in block.ops:
        for slots in (op.inputs, op.outputs):
            for slot, names in slots.items():
                slots[slot] = [new.get(name, name) for name in names]
        if op.attrs.get("op_role_var"):
            op.attrs["op_role_var"] = [new.get(name, name) for name in op.attrs["op_role_var"]]
    program._note_change()


def _sending_order(trained: list[Trained], job: Job, seed: int) -> list[Trained]:
    """Return the order of sending: uncut variables are shuffled, to mix weights and biases on each server.

    As in Fluid, numpy shuffles with the program's seed; numpy's global generator is not used.
    """
    order = list(range(len(trained)))
    if not job.config.slice_var_up:
        np.random.RandomState(seed).shuffle(order)
    return [trained[i] for i in order]


def _place_pieces(plan: Plan) -> None:
    dispatcher = plan.job.dispatcher(list(plan.job.endpoints))
    for one in plan.sending:
        endpoints = dispatcher.dispatch(one.param_pieces)
        unknown = sorted(set(endpoints) - set(plan.job.endpoints))
        if len(endpoints) != len(one.pieces) or unknown or len(set(endpoints)) < len(endpoints):
            raise GraphError(
                f"{plan.job.dispatcher.__name__} placed the {len(one.pieces)} blocks of {one.param.name!r} "
                f"on {endpoints}, expected different servers among {list(plan.job.endpoints)}"
            )
        for piece, endpoint in zip(one.pieces, endpoints, strict=True):
            piece.endpoint = endpoint


def make_control_variable(program: Program) -> Variable:
    """Return a new variable without a value, which orders operators.

    As in Paddle, its description has no tensor, so it lacks dtype and shape.
    """
    block = program.global_block()
    variable = block.create_var(name=f"__control_var@{len(block.vars)}")
    encoded = messages().VarDesc(name=variable.name, persistable=False)
    encoded.type.type = VarType.LOD_TENSOR
    variable.encoded = encoded
    return variable
