"""The kind of a variable on a server, the rows on one server, and their saved file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from paddlelike.core import VarType, numpy_dtype
from paddlelike.io.partition import TABLE_FOLDER

__all__ = ["TABLE_FOLDER", "Slice", "shard_name"]


class Kind(StrEnum):
    """The kind of a variable on a server, which decides how the variable is sent and who saves it.

    A placement has every kind but ``GRADIENT`` and ``COUNTER``. A server reads kinds off its own program and
    has all of them.
    """

    PARAMETER = "parameter"  # trainers receive it after every round
    REMOTE = "remote"  # a table in blocks of rows; trainers fetch the rows they look up
    TABLE = "table"  # a table sharded by id (SelectedRows); trainers fetch the rows they look up
    GROWING = "growing"  # a growing table, its counts or its state (SelectedRows), by id on all servers
    OPTIMIZER = "optimizer"  # state of an optimizer: stays on the servers
    AVERAGE = "average"  # means of parameters, updated beside them: stay on the servers
    SCHEDULE = "schedule"  # the state of a schedule, such as its counter: the same on every server
    RATE = "rate"  # a learning rate that no operator changes: every server takes the script's
    COUNTER = "counter"  # the step counter of a schedule to which asynchronous trainers add
    GRADIENT = "gradient"  # trainers push it

    @property
    def is_trained(self) -> bool:
        """Whether trainers send gradients for variables of this kind."""
        return self in (Kind.PARAMETER, Kind.REMOTE, Kind.TABLE, Kind.GROWING)

    @property
    def is_pushed(self) -> bool:
        """Whether trainers send variables of this kind: gradients, and the step counter of a schedule."""
        return self in (Kind.GRADIENT, Kind.COUNTER)


#: Fluid's names (``vtype``) of the kinds that its table holds.
_VTYPES = {Kind.PARAMETER: "Param", Kind.REMOTE: "RemotePrefetch", Kind.OPTIMIZER: "Optimizer"}


def shard_name(table: str, server: int) -> str:
    """Return the file of the shard that server ``server`` (an index) keeps, as Fluid calls it.

    >>> shard_name("emb", 1)
    '__lookup_table__/emb_1'
    """
    return f"{TABLE_FOLDER}/{table}_{server}"


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows ``first_row``, ``first_row + stride``, ... of the variable ``origin`` on one server.

    >>> half = Slice("w", "w.block1", "127.0.0.1:6174", 1, 67, (67, 130), (201, 130), VarType.FP32,
    ...              Kind.PARAMETER, gradient="w@GRAD.block1")
    >>> half.offset, half.is_slice, half.nbytes
    (8710, True, 34840)
    """

    origin: str  #: the variable as the user's program calls it
    name: str  #: the variable on the server: ``w.block1``, or the origin's own name
    endpoint: str
    block: int  #: index of this slice among those of ``origin``
    first_row: int
    shape: tuple[int, ...]
    whole: tuple[int, ...]  #: shape of ``origin``
    dtype: VarType
    kind: Kind
    gradient: str = ""  #: name of the gradient of a trained slice on the server
    owner: str = ""  #: the parameter whose optimizer state this is
    stride: int = 1  #: distance between rows; of a table sharded by id the number of servers

    @property
    def is_slice(self) -> bool:
        """Whether this is less than the whole variable."""
        return self.shape != self.whole or self.stride > 1

    @property
    def is_selected_rows(self) -> bool:
        """Whether the server keeps the slice as SelectedRows, which hold only rows that were looked up."""
        return self.kind == Kind.TABLE

    @property
    def like(self) -> dict[str, Any]:
        """The shape and element type of the whole variable."""
        return {"shape": self.whole, "dtype": self.dtype}

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.shape[0] if self.shape else 1

    @property
    def offset(self) -> int:
        """The first element of the slice in the whole variable."""
        return self.first_row * math.prod(self.whole[1:])

    @property
    def nbytes(self) -> int:
        """The size of its values in bytes."""
        return math.prod(self.shape) * numpy_dtype(self.dtype).itemsize

    @property
    def file_name(self) -> str:
        """The file of a saved directory that contains these rows."""
        return shard_name(self.origin, self.first_row) if self.is_selected_rows else self.origin

    @property
    def vtype(self) -> str | None:
        """Fluid's name of the kind: Param, RemotePrefetch, Optimizer; None if its table leaves it out."""
        return _VTYPES.get(self.kind)
