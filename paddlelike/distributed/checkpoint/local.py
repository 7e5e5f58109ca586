"""Loads of ordinary programs, which may continue from a directory that servers saved."""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.core.dtypes import VarType
from paddlelike.distributed.checkpoint.shards import Shards
from paddlelike.distributed.placement import TABLE_FOLDER, shard_name
from paddlelike.framework.graph.operator import OpRole
from paddlelike.framework.graph.variable import Variable
from paddlelike.io.contents.interface import Contents, Held, Positional, Reading, Unreadable, Want
from paddlelike.io.partition import LoadShare, WholePartition
from paddlelike.storage.location import locate


class LocalPartition(WholePartition):
    """The partition of an ordinary program: all its variables are here; a saved table may be in shards."""

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
