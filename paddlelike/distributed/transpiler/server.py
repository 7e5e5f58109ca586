"""The program of one server: listen_and_serv, and a block of update operators for each piece."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from paddlelike.core import VarType
from paddlelike.distributed.transpiler.config import DistributedMode, thread_counts
from paddlelike.distributed.transpiler.schedule import add_schedule
from paddlelike.distributed.transpiler.slicing import shape_on_server, yield_state
from paddlelike.distributed.transpiler.split_plan import Growing, Piece, Plan
from paddlelike.distributed.transpiler.table_server import TableBlocks, add_table
from paddlelike.distributed.transpiler.training import Training, find_target, is_update, own_attrs
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Block, Operator, Program, Variable

#: In the name of the sum of a sparse gradient and its decay.
_NEW_GRAD = "@NEWGRAD@"


def make_server_program(source: Program, training: Training, plan: Plan, endpoint: str) -> Program:
    """Return the program of the server at ``endpoint``.

    ``source`` is the network with its updates, ``training`` its training operators; neither is changed.
    """
    server = Server(source, training, plan, endpoint)
    server.declare()
    schedule = add_schedule(server.program, source)
    parent = server.program.num_blocks - 1
    blocks = [] if schedule is None else [schedule]
    blocks += server.add_updates(parent)
    table = None
    if plan.table is not None:
        table = add_table(server.program, source, training, plan, endpoint, parent)
        server.gradient_blocks.append(f"{table.gradient}:{table.update.idx}")
        blocks.append(table.update)
    if not blocks:
        warn_user(f"server {endpoint} keeps no variable: there are fewer blocks than servers")
        blocks.append(server.program._create_block(server.program.num_blocks - 1))
    server.listen(blocks, schedule, table)
    return server.program


class Server:
    """The program of one server during its construction."""

    def __init__(self, source: Program, training: Training, plan: Plan, endpoint: str) -> None:
        self.program = Program()
        self.program.random_seed = source.random_seed
        self.block, self.source = self.program.global_block(), source.global_block()
        self.training, self.plan, self.endpoint = training, plan, endpoint
        self.pieces = plan.pieces_on(endpoint)
        self.here: dict[str, str] = {}  # by name in the network: parameters and gradients on this server
        self.of_param: dict[str, Piece] = {}
        for one in (*plan.trained, *(half for table in plan.growing for half in (table.counts, table.table))):
            for piece in one.pieces:
                if piece.endpoint == endpoint:
                    self.of_param[one.param.name] = piece
                    self.here[one.param.name] = piece.param.name
                    self.here[one.grad_name] = self.here[one.grad.name] = piece.merged
        self.received: list[str] = []
        self.gradient_blocks: list[str] = []
        self.sparse: list[str] = []

    # Block 0

    def declare(self) -> None:
        """Declare the pieces, and the gradients that arrive for them."""
        for piece in self.pieces:
            self._variable(piece.param.name, piece.param, persistable=True)
        for piece in self.pieces:
            self._variable(piece.merged, piece.grad, persistable=True)
            for name in self._arriving(piece):
                if name != piece.merged:
                    self._variable(name, piece.grad, persistable=False)
                self.received.append(name)

    def _arriving(self, piece: Piece) -> list[str]:
        """Return the variables for an arriving gradient: one per trainer if the gradients are summed."""
        job = self.plan.job
        if not job.merges:
            return [piece.merged]
        return [f"{piece.merged}.trainer_{i}" for i in range(job.trainers)]

    def _variable(self, name: str, like: Variable, *, persistable: bool) -> Variable:
        return self.block.create_var(
            name=name, persistable=persistable, type=like.type, dtype=like.dtype, shape=like.shape
        )

    def listen(
        self,
        blocks: list[Block],
        schedule: Block | None,
        table: TableBlocks | None,
        *,
        mode: DistributedMode | None = None,
    ) -> None:
        """Append the operator listen_and_serv."""
        config = self.plan.job.config
        attrs: dict[str, Any] = {
            "optimize_blocks": blocks,
            "endpoint": self.endpoint,
            "pserver_id": self.plan.job.endpoints.index(self.endpoint),
            "Fanin": self.plan.job.trainers,
            "distributed_mode": config._distributed_mode if mode is None else mode,
            "grad_to_block_id": self.gradient_blocks,
            "sparse_grad_to_param": self.sparse,
            "lr_decay_block_id": -1 if schedule is None else schedule.idx,
            **thread_counts(),
        }
        if table is not None:
            attrs["checkpint_block_id"] = table.save.idx
            attrs["prefetch_var_name_to_block_id"] = [f"{table.asked}:{table.lookup.idx}"]
        self.program.current_block_idx = 0
        self.block.append_op("listen_and_serv", {"X": self.received}, {}, attrs)

    # A block for each update

    def add_updates(self, parent: int) -> list[Block]:
        """Add the blocks that update the pieces of this server, and return them."""
        by_target: dict[str, list[Operator]] = {}
        for op in self.training.ops:
            by_target.setdefault(find_target(op), []).append(op)
        create = self.program._create_block
        blocks = [self._add_count(create(parent), one) for one in self.plan.growing]  # rows, then updates
        for op in self.training.ops:
            if is_update(op) and op.input("Param")[0] in self.of_param:
                target = find_target(op)
                block = self.program._create_block(parent)
                self._add_update(block, by_target[target], self.of_param[target])
                blocks.append(block)
        return blocks

    def _add_count(self, block: Block, one: Growing) -> Block:
        """Append operators that count the ids seen by trainers, and make rows for admitted ids."""
        counts, seen = one.counts.param.name, one.counts.pieces[0].merged
        self.gradient_blocks.append(f"{seen}:{block.idx}")
        if self.plan.job.merges:
            block.append_op("sum", {"X": self._arriving(one.counts.pieces[0])}, {"Out": seen})
        inputs = {"Param": counts, "Table": one.table.param.name, "Grad": seen}
        outputs = {"ParamOut": counts, "TableOut": one.table.param.name}
        block.append_op("count_sparse_table", inputs, outputs, {"entry": one.entry})
        return block

    def _add_update(self, block: Block, ops: Iterable[Operator], piece: Piece) -> None:
        self.gradient_blocks.append(f"{piece.merged}:{block.idx}")
        if self.plan.job.merges:
            block.append_op("sum", {"X": self._arriving(piece)}, {"Out": piece.merged})
            mean = {"scale": 1.0 / self.plan.job.trainers}
            block.append_op("scale", {"X": piece.merged}, {"Out": piece.merged}, mean)
        for op in ops:
            if is_update(op):
                self._copy_update(block, op, piece)
            else:
                self._cut_averages(op, piece)
                self._copy(block, op)

    def _cut_averages(self, op: Operator, piece: Piece) -> None:
        """Declare state that is cut like the parameter that it belongs to."""
        for name in op.input_arg_names:
            if name not in self.here and not self.block.has_var(name):
                like = self.source.var(name)
                if like.persistable and like.shape == self.source.var(find_target(op)).shape:
                    self._variable(name, like, persistable=True).shape = piece.param.shape

    def _copy(self, block: Block, op: Operator) -> None:
        """Copy an operator beside the updates (decay, powers of beta), applied to this server's variables."""
        inputs = {slot: [self._local_name(name) for name in names] for slot, names in op.inputs.items()}
        outputs = {slot: [self._local_name(name) for name in names] for slot, names in op.outputs.items()}
        block.append_op(op.type, inputs, outputs, own_attrs(op))

    def _local_name(self, name: str) -> str:
        """Return the name that a variable of the network has on this server; declare it if necessary."""
        if name in self.here:
            return self.here[name]
        if not self.block.has_var(name):
            self.block._clone_variable(self.source.var(name))
        return name

    def _copy_update(self, block: Block, op: Operator, piece: Piece) -> None:
        inputs: dict[str, Any] = {"Param": piece.param.name, "Grad": self._find_gradient(op, piece)}
        if op.input("LearningRate"):
            inputs["LearningRate"] = self._learning_rate(op.input("LearningRate")[0])
        for slot, whole in yield_state(op, self.source):
            shape = shape_on_server(op, slot, whole, piece.param.shape)
            self.block.create_var(
                name=whole.name,
                persistable=whole.persistable,
                dtype=whole.dtype,
                shape=shape,
                type=whole.type,
            )
            inputs[slot] = whole.name
        for slot, names in op.inputs.items():
            if slot not in inputs and names:  # betas that are variables
                inputs[slot] = [self._local_name(name) for name in names]
        outputs = {**op.outputs, "ParamOut": piece.param.name}
        block.append_op(op.type, inputs, outputs, own_attrs(op))
        grad = self.block.var(inputs["Grad"])
        if grad.type == VarType.SELECTED_ROWS:
            self.sparse.append(f"{grad.name}:{piece.param.name}")

    def _find_gradient(self, op: Operator, piece: Piece) -> str:
        """Return the gradient; if it is sparse, its sum with the decay."""
        name = op.input("Grad")[0]
        return name if _NEW_GRAD in name and self.block.has_var(name) else piece.merged

    def _learning_rate(self, name: str) -> str:
        if not self.block.has_var(name):
            like = self.source.var(name)
            self.block.create_var(name=name, persistable=like.persistable, dtype=like.dtype, shape=like.shape)
        return name
