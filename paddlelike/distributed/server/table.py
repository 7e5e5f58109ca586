"""What one server takes and gives: the table by which it and its trainers number variables on the wire.

The server reads it off its own program, so that any program can be served, also one parsed from bytes. A
trainer asks for it before anything else and compares the names and shapes in its own program with it.
Entry ``i`` travels as array ``2 i``; the row numbers of selected rows travel as array ``2 i + 1``.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.errors import FormatError, GraphError
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program
from paddlelike.framework.passes.views import collect_reads, collect_writes

__all__ = ["Entry", "Role", "Served", "Table", "base_name", "rows_at", "values_at"]

_VALUES = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS)
_OF_TRAINER = re.compile(r"\.trainer_\d+(\.pserver_\d+)?$")


def values_at(index: int) -> int:
    """The number on the wire of the values of entry ``index``."""
    return 2 * index


def rows_at(index: int) -> int:
    """The number on the wire of the row numbers of entry ``index``."""
    return 2 * index + 1


def base_name(name: str) -> str:
    """A gradient's name without the trainer it comes from.

    >>> base_name("fc_0.w_0@GRAD.block1.trainer_0"), base_name("emb@GRAD.trainer_1.pserver_0")
    ('fc_0.w_0@GRAD.block1', 'emb@GRAD')
    """
    return _OF_TRAINER.sub("", name)


class Role(StrEnum):
    """What an entry is good for."""

    GRADIENT = "gradient"  # trainers push it
    PARAMETER = "parameter"  # comes back after every round
    REMOTE = "remote"  # a table in blocks of rows: trainers fetch single rows
    TABLE = "table"  # a table sharded by id (SelectedRows): trainers fetch single rows
    STATE = "state"  # optimizer state, schedules
    COUNTER = "counter"  # of a schedule, to which trainers that go by themselves add


@dataclass(frozen=True, slots=True)
class Entry:
    """One variable of a server."""

    index: int
    name: str
    role: Role
    shape: tuple[int, ...]
    dtype: VarType

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The element type."""
        return numpy_dtype(self.dtype)

    @property
    def row_bytes(self) -> int:
        """The size of one row."""
        return math.prod(self.shape[1:]) * self.numpy_dtype.itemsize


class Table:
    """All entries of a server by number and by name.

    >>> table = Table([("w", Role.PARAMETER, (2, 3), VarType.FP32)])
    >>> Table.from_bytes(table.to_bytes()).digest == table.digest, table["w"].row_bytes
    (True, 12)
    """

    def __init__(self, rows: Iterable[tuple[str, Role, tuple[int, ...], VarType]]) -> None:
        self.entries = tuple(Entry(i, *row) for i, row in enumerate(rows))
        self._by_name = {entry.name: entry for entry in self.entries}

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __getitem__(self, name: str) -> Entry:
        return self._by_name[name]

    def get(self, name: str) -> Entry | None:
        """The entry of that name, or None."""
        return self._by_name.get(name)

    def having(self, *roles: Role) -> list[Entry]:
        """The entries of these roles, in order."""
        return [entry for entry in self.entries if entry.role in roles]

    def to_bytes(self) -> bytes:
        """The table as JSON text; equal tables give equal bytes."""
        rows = [[e.name, e.role.value, list(e.shape), int(e.dtype)] for e in self.entries]
        return json.dumps(rows, separators=(",", ":")).encode()

    @cached_property
    def digest(self) -> str:
        """The sha256 of :meth:`to_bytes`: whoever names it means these numbers."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    @classmethod
    def from_bytes(cls, data: bytes) -> Table:
        """The table in JSON text. Raises FormatError for anything that is none."""
        try:
            rows = [
                (str(name), Role(role), tuple(int(dim) for dim in shape), VarType(dtype))
                for name, role, shape, dtype in json.loads(data.decode())
            ]
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise FormatError(f"what the server says of its variables is no table: {error}") from None
        return cls(rows)


class Served:
    """What a ``listen_and_serv`` operator says: its table, and which block takes which gradient."""

    def __init__(self, op: Operator) -> None:
        program: Program = op.block.program
        self.op = op
        self.endpoint: str = op.attrs["endpoint"]
        self.trainers: int = op.attrs["Fanin"]
        pairs = [text.rsplit(":", 1) for text in op.attrs.get("grad_to_block_id", ())]
        #: By gradient, the block that applies it, and how each trainer's contribution is called there.
        self.blocks = {name: int(block) for name, block in pairs}
        self.inputs = {name: _inputs(program, name, block) for name, block in self.blocks.items()}
        self.schedule = int(op.attrs.get("lr_decay_block_id", -1))
        #: By counter, how each trainer's steps are called in the schedule's block.
        self.counters = {name: _inputs(program, name, self.schedule) for name in _counters(op, self.schedule)}
        #: By table, the block that looks rows up, and what ids and rows are called there.
        self.lookups = _lookups(op)
        self.parameters = _parameters(program, self.blocks)
        self.table = Table(self._rows())

    @property
    def is_synchronous(self) -> bool:
        """Whether trainers go round by round.

        A program that real Fluid made for trainers without barriers says so too, but takes one name from all.
        """
        rounds = not self.op.attrs.get("distributed_mode", 0)
        return rounds and (not self.inputs or any(self.inputs.values()))

    @property
    def made_by_blocks(self) -> set[str]:
        """What the schedule and the updates compute on their way: no block reads it before it is written."""
        read: set[str] = set()
        made: set[str] = set()
        updates = [index for index in self.op.attrs["optimize_blocks"] if index != self.schedule]
        scheduled: set[str] = set()
        for index in ([self.schedule] if self.schedule > 0 else []) + updates:
            mine = set(scheduled)
            for op in self.op.block.program.blocks[index].ops:
                read |= collect_reads(op) - mine
                mine |= collect_writes(op)
            made |= mine
            if index == self.schedule:
                scheduled = mine
        return made - read

    @property
    def sparse(self) -> set[int]:
        """The numbers of the gradients of tables, which come as selected rows."""
        tables = {entry.name for entry in self.table.having(Role.REMOTE, Role.TABLE)}
        return {self.table[gradient].index for gradient, name in self.parameters.items() if name in tables}

    def contribution(self, gradient: str, trainer: int) -> str:
        """What the program calls the gradient that comes from a trainer."""
        names = self.inputs[gradient]
        return names.get(trainer, gradient)

    def _rows(self) -> Iterator[tuple[str, Role, tuple[int, ...], VarType]]:
        block = self.op.block
        for gradient in sorted(self.blocks):
            parameter = block._var_recursive(self.parameters[gradient])
            variable = block._find_var_recursive(gradient) or parameter
            is_table = parameter.type == VarType.SELECTED_ROWS
            shape = variable.shape if is_table else parameter.shape
            yield gradient, Role.GRADIENT, tuple(shape), parameter.dtype
        sparse = {pair.split(":")[1] for pair in self.op.attrs.get("sparse_grad_to_param", ())}
        trained = set(self.parameters.values())
        gradients = {*self.blocks, *(n for names in self.inputs.values() for n in names.values())}
        for name in sorted(block.vars):
            variable = block.vars[name]
            if not variable.persistable or variable.type not in _VALUES or name in gradients:
                continue
            if variable.type == VarType.SELECTED_ROWS:
                role = Role.TABLE
            elif name in sparse:
                role = Role.REMOTE
            elif name in self.counters:
                role = Role.COUNTER
            else:
                role = Role.PARAMETER if name in trained else Role.STATE
            yield name, role, tuple(variable.shape), variable.dtype


def _inputs(program: Program, gradient: str, index: int) -> dict[int, str]:
    """By trainer, the variable that holds its contribution; {} where all use the gradient's own name."""
    found = {}
    for op in program.blocks[index].ops:
        for name in op.input_arg_names:
            match = _OF_TRAINER.search(name)
            if match and base_name(name) == gradient:
                found[int(match.group().split("_")[1].split(".")[0])] = name
    return found


def _counters(op: Operator, schedule: int) -> set[str]:
    """What a schedule's block sums over trainers."""
    if schedule <= 0:
        return set()
    names = {name for one in op.block.program.blocks[schedule].ops for name in one.input_arg_names}
    return {base_name(name) for name in names if _OF_TRAINER.search(name)}


def _parameters(program: Program, blocks: dict[str, int]) -> dict[str, str]:
    """By gradient the parameter that its block updates."""
    found = {}
    for gradient, index in blocks.items():
        names = [name for op in program.blocks[index].ops for name in op.input("Param")]
        if len(names) != 1:
            raise GraphError(
                f"block {index} takes gradient {gradient!r} and updates {names}, not one parameter"
            )
        found[gradient] = names[0]
    return found


@dataclass(frozen=True, slots=True)
class Lookup:
    """A block that looks up rows of a table."""

    block: int
    ids: str
    rows: str


def _lookups(op: Operator) -> dict[str, Lookup]:
    found = {}
    for text in op.attrs.get("prefetch_var_name_to_block_id", ()):
        name, block = text.rsplit(":", 1)
        for inner in op.block.program.blocks[int(block)].ops:
            if inner.type == "lookup_sparse_table":
                found[inner.input("W")[0]] = Lookup(int(block), name, inner.output("Out")[0])
    return found
