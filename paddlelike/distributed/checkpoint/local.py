"""Ordinary programs in place of distributed ones: loads of servers' saves, and local lookups."""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.core import VarType
from paddlelike.distributed.checkpoint.shards import Shards
from paddlelike.distributed.placement import TABLE_FOLDER, shard_name
from paddlelike.errors import SaveError
from paddlelike.framework import Block, Operator, OpRole, Program, Variable
from paddlelike.framework.passes import clone as passes
from paddlelike.io.contents.interface import Contents, Held, Positional, Reading, Unreadable, Want
from paddlelike.io.partition import LoadShare, WholePartition
from paddlelike.storage.location import locate


class LocalPartition(WholePartition):
    """The partition of an ordinary program: all variables are in this process; a saved table may be in
    shards.
    """

    def plan_load(self, chosen: list[Variable], where: str) -> LoadShare:
        shapes = {v.name: tuple(v.shape) for v in chosen if v.type == VarType.LOD_TENSOR}
        ops = self._program.global_block().ops
        for_training = any(op.attrs.get("op_role", 0) & OpRole.Optimize for op in ops)
        return LoadShare(chosen, lambda contents: _Joined(contents, shapes, for_training=for_training))


class _Joined:
    """The contents of a directory whose sharded tables are read as whole variables."""

    def __init__(self, contents: Contents, shapes: dict[str, tuple[int, ...]], *, for_training: bool) -> None:
        self.where = contents.where
        self._contents = contents
        self._shapes = shapes
        where = locate(self.where)
        manifest = where.manifest()
        listed = {*contents.names(), *(manifest.files if manifest is not None else ())}
        self._shard_names = [name for name in listed if name.startswith(TABLE_FOLDER + "/")]
        self._shards = Shards(where, contents, manifest, for_training=for_training)

    @property
    def unnamed(self) -> Positional | None:
        return self._contents.unnamed

    def names(self) -> list[str]:
        return [name for name in self._contents.names() if not name.startswith(TABLE_FOLDER + "/")]

    def look(self, name: str, kind: VarType) -> Held | Unreadable | None:
        found = self._contents.look(name, kind)
        begin = shard_name(name, 0)[:-1]
        if name not in self._shapes or not any(one.startswith(begin) for one in self._shard_names):
            return found
        return self._shards.look_whole(name, self._shapes[name], found)

    def read(self, wants: Sequence[Want], *, lazily: bool = False) -> Reading:
        return self._shards.read(wants, lazily=lazily)


def with_local_lookups(program: Program) -> Program:
    """Return a copy of a trainer's program that predicts without servers; operators that train are unchanged.

    Raises
    ------
    SaveError
        The program looks up rows of a table that it does not name.
    """
    clone = passes.copy(program)
    table = program._distributed_lookup_table
    clone._is_distributed = clone._is_chief = False
    clone._parameters_on_pservers = clone._ps_endpoint = clone._distributed_lookup_table = None
    block = clone.global_block()
    for index in reversed(range(len(block.ops))):
        op = block.ops[index]
        if op.type == "distributed_lookup_table":
            _replace(block, index, op.attrs["lookup_table_version"], op.input("W")[0], "Outputs")
        elif op.type == "distributed_sparse_embedding":
            inputs = op.inputs
            attrs = {name: op.attrs[name] for name in ("padding_idx", "is_test", "entry")}
            block._remove_op(index)
            block._insert_op(index, "sparse_embedding", inputs, {"Out": op.output("Out")}, attrs)
        elif op.type == "merge_ids":
            if table is None:
                raise SaveError(
                    "the program looks up rows by prefetch and does not name the table",
                    hint="save with the program of DistributeTranspiler.get_trainer_program()",
                )
            _replace(block, index, "lookup_table", table, "Out")
        elif op.type in ("split_ids", "prefetch"):
            block._remove_op(index)
    return clone


def _replace(block: Block, index: int, kind: str, table: str, slot: str) -> None:
    """Replace a lookup on servers by local lookups."""
    op: Operator = block.ops[index]
    pairs = list(zip(op.input("Ids"), op.output(slot), strict=True))
    padding = op.attrs.get("padding_idx", -1)
    block._remove_op(index)
    for ids, out in pairs:
        inputs = {"W": [table], "Ids": [ids]}
        block._insert_op(index, kind, inputs, {"Out": [out]}, {"padding_idx": padding})
