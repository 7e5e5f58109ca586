"""The variables of one server, indexed as they travel between the server and its trainers.

A server reads the table off its own program, so that any program can be served, even one parsed from bytes. A
trainer first requests the table and compares it with the names and shapes in its own program. Entry ``i``
travels as array ``2 i``; the row ids of selected rows travel as array ``2 i + 1``.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from paddlelike.core import VarType, numpy_dtype
from paddlelike.distributed.placement.slices import Kind
from paddlelike.errors import FormatError

#: The suffix of a gradient's name for the trainer that sends it.
TRAINER_SUFFIX: Final = re.compile(r"\.trainer_(\d+)(\.pserver_\d+)?$")


#: The suffix of a parameter's name for its difference, which geo-SGD sends.
DELTA: Final = ".delta"
#: The suffix of the name of a table's counts, for the ids that trainers have seen.
SEEN: Final = "@SEEN"


def values_at(index: int) -> int:
    """Return the index on the wire of the values of entry ``index``."""
    return 2 * index


def rows_at(index: int) -> int:
    """Return the index on the wire of the row ids of entry ``index``."""
    return 2 * index + 1


def base_name(name: str) -> str:
    """Return a gradient's name without the trainer that sends it.

    >>> base_name("fc_0.w_0@GRAD.block1.trainer_0"), base_name("emb@GRAD.trainer_1.pserver_0")
    ('fc_0.w_0@GRAD.block1', 'emb@GRAD')
    """
    return TRAINER_SUFFIX.sub("", name)


@dataclass(frozen=True, slots=True)
class Entry:
    """One variable of a server."""

    index: int
    name: str
    kind: Kind
    shape: tuple[int, ...]
    dtype: VarType

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The element type."""
        return numpy_dtype(self.dtype)

    @property
    def row_bytes(self) -> int:
        """The size of one row in bytes."""
        return math.prod(self.shape[1:]) * self.numpy_dtype.itemsize


class ServerTable:
    """All variables of a server, by index and by name.

    >>> table = ServerTable([("w", Kind.PARAMETER, (2, 3), VarType.FP32)])
    >>> ServerTable.from_bytes(table.to_bytes()).digest == table.digest, table["w"].row_bytes
    (True, 12)
    """

    def __init__(self, rows: Iterable[tuple[str, Kind, tuple[int, ...], VarType]]) -> None:
        self.entries = tuple(Entry(index, *row) for index, row in enumerate(rows))
        self._by_name = {entry.name: entry for entry in self.entries}

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __getitem__(self, name: str) -> Entry:
        return self._by_name[name]

    def get(self, name: str) -> Entry | None:
        """Return the entry of that name, or None without one."""
        return self._by_name.get(name)

    def having(self, *kinds: Kind) -> list[Entry]:
        """Return the entries of the given kinds, in order."""
        return [entry for entry in self.entries if entry.kind in kinds]

    def to_bytes(self) -> bytes:
        """Return the table as JSON text; equal tables give equal bytes."""
        rows = [[e.name, e.kind.value, list(e.shape), int(e.dtype)] for e in self.entries]
        return json.dumps(rows, separators=(",", ":")).encode()

    @cached_property
    def digest(self) -> str:
        """Return the sha256 of :meth:`to_bytes`. Processes with the same digest use the same indexes."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    @classmethod
    def from_bytes(cls, data: bytes) -> ServerTable:
        """Return the table in JSON text. Raises FormatError for anything else."""
        try:
            rows = [
                (str(name), Kind(kind), tuple(int(dim) for dim in shape), VarType(dtype))
                for name, kind, shape, dtype in json.loads(data.decode())
            ]
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise FormatError(
                f"the server's list of its variables is malformed: {error}",
                hint="run the same version of paddlelike on every trainer and server",
            ) from None
        return cls(rows)
