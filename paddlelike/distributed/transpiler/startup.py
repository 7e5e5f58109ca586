"""The startup programs: trainers receive the servers' values, each server initializes its rows."""

from __future__ import annotations

from paddlelike.distributed.transpiler.split_plan import Plan, make_control_variable
from paddlelike.distributed.transpiler.training import own_attrs
from paddlelike.errors import GraphError
from paddlelike.framework import Block, Operator, OpRole, Program

#: Initializers that can fill a slice: they depend on the whole shape only by their bounds, which are
#: attributes.
_SHAPED = ("fill_constant", "gaussian_random", "truncated_gaussian_random", "uniform_random")
_TRAFFIC = ("recv", "fetch_barrier", "concat", "fake_init")


def check_startup(startup: Program, plan: Plan) -> None:
    """Raise GraphError unless every trained variable is initialized, and every table by one operator."""
    block = startup.global_block()
    writers: dict[str, list[Operator]] = {}
    for op in block.ops:
        for name in op.output_arg_names:
            writers.setdefault(name, []).append(op)
    hint = "transpile() takes the startup program of the network as startup_program="
    for one in plan.trained:
        if one.param.name not in writers:
            raise GraphError(f"the startup program does not initialize {one.param.name!r}", hint=hint)
    for table in _tables(plan):
        found = writers.get(table, [])
        if len(found) != 1 or not found[0].attrs.get("shape"):
            raise GraphError(
                f"table {table!r} is initialized by {[op.type for op in found]}, expected one operator that "
                "has a shape",
                hint=hint,
            )


def _tables(plan: Plan) -> list[str]:
    """Return the names of the tables whose values trainers do not hold."""
    tables = [one.param.name for one in plan.trained if one.remote]
    return sorted(tables if plan.table is None else [*tables, plan.table])


def receive_initial_values(startup: Program, main: Program, plan: Plan) -> None:
    """Let a trainer's startup program receive the initial values of all parameters from the servers."""
    block, job = startup.global_block(), plan.job
    dense = [one for one in plan.trained if not one.remote or job.is_geo]
    for one in dense:
        for piece in one.param_pieces:
            if not block.has_var(piece.name):
                block._clone_variable(piece, force_persistable=False)
        attrs = {"epmap": one.endpoints, "trainer_id": job.trainer_id, "op_role": OpRole.RPC}
        block.append_op("recv", {"X": []}, {"Out": [piece.name for piece in one.param_pieces]}, attrs)
    block.append_op(
        "fetch_barrier",
        {},
        {"Out": make_control_variable(startup)},
        {"endpoints": list(job.endpoints), "trainer_id": job.trainer_id, "op_role": OpRole.RPC},
    )
    for one in dense:
        if one.is_cut:
            if not block.has_var(one.param.name):
                block._clone_variable(main.global_block().var(one.param.name), force_persistable=True)
            pieces = [piece.name for piece in one.param_pieces]
            block.append_op("concat", {"X": pieces}, {"Out": [one.param.name]}, {"axis": 0})


def fake_tables(startup: Program, plan: Plan) -> None:
    """Replace the initializers of tables by ``fake_init`` in a trainer's startup program; idempotent."""
    block = startup.global_block()
    for table in _tables(plan):
        writer = next(op for op in block.ops if table in op.output_arg_names)
        if writer.type != "fake_init":
            block.append_op("fake_init", {}, {"Out": table}, {"shape": writer.attrs["shape"]})
            block._remove_op(writer.idx)


def make_server_startup(startup: Program, server: Program, plan: Plan, endpoint: str) -> Program:
    """Return the startup program of one server: the initializers of its variables in their shapes.

    ``startup`` is the startup program of the network, ``server`` the program of that server.
    """
    program = Program()
    program.random_seed = startup.random_seed
    block, kept = program.global_block(), server.global_block().vars
    for var in kept.values():
        block._clone_variable(var)
    pieces = {
        one.param.name: piece
        for one in plan.trained
        for piece in one.pieces
        if piece.endpoint == endpoint and one.is_cut
    }
    whole = _Whole(startup.global_block(), block)
    for op in startup.global_block().ops:
        if op.type in _TRAFFIC:
            continue
        outputs = {slot: names[0] for slot, names in op.outputs.items() if names}
        mine = {slot: pieces[n].param.name if n in pieces else n for slot, n in outputs.items()}
        if not any(name in kept for name in mine.values()):
            continue
        if op.type in _SHAPED and not op.input_arg_names:
            attrs = {**own_attrs(op), "shape": list(block.var(mine["Out"]).shape)}
            block.append_op(op.type, op.inputs, mine, attrs)
        elif not any(name in pieces for name in outputs.values()):
            whole.compute(op)
        else:
            whole.compute(op)
            piece = pieces[outputs["Out"]]
            rows = {"axes": [0], "starts": [piece.first_row], "ends": [piece.first_row + piece.rows]}
            block.append_op("slice", {"Input": outputs["Out"]}, {"Out": mine["Out"]}, rows)
    return program


class _Whole:
    """Computes whole initial values on a server, with the operators that the network's startup program
    has.
    """

    def __init__(self, source: Block, target: Block) -> None:
        self._source, self._target = source, target
        self._done: set[int] = set()

    def compute(self, op: Operator) -> None:
        """Append an operator after those that compute its inputs."""
        if id(op) in self._done:
            return
        self._done.add(id(op))
        have = {name for other in self._target.ops for name in other.output_arg_names}
        for name in op.input_arg_names:
            if name not in have:
                for writer in self._source.ops:
                    if name in writer.output_arg_names and writer.type not in _TRAFFIC:
                        self.compute(writer)
        for name in (*op.input_arg_names, *op.output_arg_names):
            if not self._target.has_var(name):
                self._target._clone_variable(self._source.var(name), force_persistable=False)
        self._target.append_op(op.type, op.inputs, op.outputs, own_attrs(op))
