"""The state of a ``listen_and_serv`` operator: its variables, and the block that applies each gradient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from paddlelike.core import VarType
from paddlelike.distributed.placement import DELTA, TRAINER_SUFFIX, Kind, ServerTable, base_name
from paddlelike.errors import GraphError
from paddlelike.framework import Block, Operator, Program
from paddlelike.framework.passes.views import collect_reads, collect_writes
from paddlelike.ops.kernels.growing_rows import ANY_ID

_VALUES = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS)
_RATES = ("LearningRate", "Beta1Tensor", "Beta2Tensor")


class Served:
    """The variables of a server and the blocks of its program, read from its ``listen_and_serv`` operator.

    Raises
    ------
    GraphError
        A block takes a gradient and updates no parameter, or several.
    """

    def __init__(self, op: Operator) -> None:
        program: Program = op.block.program
        self.op = op
        self.endpoint: str = op.attrs["endpoint"]
        self.trainers: int = op.attrs["Fanin"]
        pairs = [text.rsplit(":", 1) for text in op.attrs.get("grad_to_block_id", ())]
        #: By gradient, the block that applies it, and the name of each trainer's contribution there.
        self.blocks = {name: int(block) for name, block in pairs}
        self.inputs = {name: _inputs(program, name, block) for name, block in self.blocks.items()}
        self.schedule = int(op.attrs.get("lr_decay_block_id", -1))
        #: By counter, the name of each trainer's steps in the schedule's block.
        self.counters = {name: _inputs(program, name, self.schedule) for name in _counters(op, self.schedule)}
        #: By table, the block that looks rows up, and the names of ids and rows there.
        self.lookups = _lookups(op)
        self.parameters = _parameters(program, self.blocks)
        #: By growing table, its counts and its state.
        self.growing = _growing(program, self.blocks.values())
        self.table = ServerTable(self._rows())
        self.parameter_indexes = [entry.index for entry in self.table.having(Kind.PARAMETER)]

    @property
    def is_synchronous(self) -> bool:
        """Whether trainers proceed round by round.

        Programs that real Fluid made for trainers without barriers have the same attribute; in them the
        gradients of all trainers have one name.
        """
        rounds = not self.op.attrs.get("distributed_mode", 0)
        return rounds and (not self.inputs or any(self.inputs.values()))

    @property
    def computed(self) -> set[str]:
        """The variables that the schedule and the updates write before any block reads them."""
        read: set[str] = set()
        written: set[str] = set()
        updates = [index for index in self.op.attrs["optimize_blocks"] if index != self.schedule]
        scheduled: set[str] = set()
        for index in ([self.schedule] if self.schedule > 0 else []) + updates:
            mine = set(scheduled)
            for op in self.op.block.program.blocks[index].ops:
                read |= collect_reads(op) - mine
                mine |= collect_writes(op)
            written |= mine
            if index == self.schedule:
                scheduled = mine
        return written - read

    @property
    def sparse(self) -> set[int]:
        """The indexes of the gradients of tables, which arrive as selected rows."""
        tables = {entry.name for entry in self.table.having(Kind.REMOTE, Kind.TABLE, Kind.GROWING)}
        return {self.table[gradient].index for gradient, name in self.parameters.items() if name in tables}

    def contribution(self, gradient: str, trainer: int) -> str:
        """Return the program's name for the gradient that a trainer sends."""
        names = self.inputs[gradient]
        return names.get(trainer, gradient)

    def _rows(self) -> Iterator[tuple[str, Kind, tuple[int, ...], VarType]]:
        block = self.op.block
        growing = {*self.growing, *(name for names in self.growing.values() for name in names)}
        for gradient in sorted(self.blocks):
            parameter = block._var_recursive(self.parameters[gradient])
            found = block._find_var_recursive(gradient)
            variable = parameter if found is None else found
            is_table = parameter.type == VarType.SELECTED_ROWS
            shape = variable.shape if is_table else parameter.shape
            if parameter.name in growing:
                shape = (ANY_ID, *shape[1:])
            yield gradient, Kind.GRADIENT, tuple(shape), parameter.dtype
        kinds = self._kinds(block)
        gradients = {*self.blocks, *(n for names in self.inputs.values() for n in names.values())}
        for name in sorted(block.vars):
            variable = block.vars[name]
            if variable.persistable and variable.type in _VALUES and name not in gradients:
                if name in growing:
                    yield name, Kind.GROWING, (ANY_ID, *variable.shape[1:]), variable.dtype
                    continue
                kind = (
                    Kind.TABLE if variable.type == VarType.SELECTED_ROWS else kinds.get(name, Kind.SCHEDULE)
                )
                yield name, kind, tuple(variable.shape), variable.dtype

    def _kinds(self, block: Block) -> Mapping[str, Kind]:
        """Return the kinds of the variables that blocks update; the rest are constants of the schedule."""
        blocks = block.program.blocks
        kinds: dict[str, Kind] = {}
        for index in self.op.attrs["optimize_blocks"]:
            for op in blocks[index].ops:
                kinds |= dict.fromkeys(collect_writes(op) - kinds.keys(), Kind.AVERAGE)
                if op.input("Param"):
                    kinds |= dict.fromkeys(op.input_arg_names, Kind.OPTIMIZER)
        rates = {name for one in blocks for op in one.ops for slot in _RATES for name in op.input(slot)}
        if self.schedule > 0:
            rates |= {
                name for op in blocks[self.schedule].ops for name in (*collect_reads(op), *collect_writes(op))
            }
        kinds |= dict.fromkeys(rates, Kind.SCHEDULE)
        constants = {name for one in blocks for op in one.ops for name in op.input("LearningRate")}
        constants -= {name for one in blocks for op in one.ops for name in collect_writes(op)}
        kinds |= dict.fromkeys(constants, Kind.RATE)
        kinds |= dict.fromkeys(self.counters, Kind.COUNTER)
        kinds |= dict.fromkeys(self.parameters.values(), Kind.PARAMETER)
        sparse = (pair.split(":")[1] for pair in self.op.attrs.get("sparse_grad_to_param", ()))
        return kinds | dict.fromkeys(sparse, Kind.REMOTE)


def _inputs(program: Program, gradient: str, index: int) -> dict[int, str]:
    """Return the variable of each trainer's contribution, or {} if all trainers use the gradient's name."""
    found = {}
    for op in program.blocks[index].ops:
        for name in op.input_arg_names:
            match = TRAINER_SUFFIX.search(name)
            if match and base_name(name) == gradient:
                found[int(match.group(1))] = name
    return found


def _counters(op: Operator, schedule: int) -> set[str]:
    """Return the names that a schedule's block sums over trainers."""
    if schedule <= 0:
        return set()
    names = {name for one in op.block.program.blocks[schedule].ops for name in one.input_arg_names}
    return {base_name(name) for name in names if TRAINER_SUFFIX.search(name)}


def _parameters(program: Program, blocks: dict[str, int]) -> dict[str, str]:
    """Return for each gradient the parameter that its block updates. Raises GraphError unless there is
    one.
    """
    found = {}
    for gradient, index in blocks.items():
        names = [name for op in program.blocks[index].ops for name in op.input("Param")]
        if gradient.endswith(DELTA):  # geo-SGD: a sum of both
            names = [name for op in program.blocks[index].ops for name in op.output("Out")]
        if len(names) != 1:
            raise GraphError(
                f"block {index} takes gradient {gradient!r} and updates {names}, not one parameter"
            )
        found[gradient] = names[0]
    return found


def _growing(program: Program, blocks: Iterable[int]) -> dict[str, list[str]]:
    """Return for each growing table the names of its counts and its state, which grow with it."""
    ops = [op for index in blocks for op in program.blocks[index].ops]
    found = {op.input("Table")[0]: op.input("Param") for op in ops if op.type == "count_sparse_table"}
    for op in ops:
        table = op.input("Param")[0] if op.input("Param") else ""
        if table in found:
            written = [program.global_block().var(name) for name in sorted({*op.output_arg_names})]
            state = [one.name for one in written if one.type == VarType.SELECTED_ROWS and one.name != table]
            found[table] = [*found[table], *state]
    return found


@dataclass(frozen=True, slots=True)
class Lookup:
    """A block that looks up rows of a table."""

    table: str
    block: int
    ids: str
    rows: str


def _lookups(op: Operator) -> dict[str, Lookup]:
    found = {}
    for text in op.attrs.get("prefetch_var_name_to_block_id", ()):
        name, block = text.rsplit(":", 1)
        for inner in op.block.program.blocks[int(block)].ops:
            if inner.type == "lookup_sparse_table":
                table = inner.input("W")[0]
                found[table] = Lookup(table, int(block), name, inner.output("Out")[0])
    return found
