"""One server's rows of one variable, and the file of a saved directory that has them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.distributed.placement.kinds import Kind
from paddlelike.io.partition import TABLE_FOLDER

__all__ = ["TABLE_FOLDER", "Slice", "shard_name"]

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
    """Rows ``first_row``, ``first_row + stride``, ... of the variable ``origin``, as one server keeps them.

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
    stride: int = 1  #: distance between rows; of a table sharded by id the count of servers

    @property
    def is_slice(self) -> bool:
        """Whether this is less than the whole variable."""
        return self.shape != self.whole or self.stride > 1

    @property
    def is_selected_rows(self) -> bool:
        """Whether the server keeps it as SelectedRows, which hold only rows met so far."""
        return self.kind == Kind.TABLE

    @property
    def like(self) -> dict[str, Any]:
        """Shape and element type of the whole variable."""
        return {"shape": self.whole, "dtype": self.dtype}

    @property
    def rows(self) -> int:
        """The count of rows."""
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
        """The file of a saved directory that holds these rows."""
        return shard_name(self.origin, self.first_row) if self.is_selected_rows else self.origin

    @property
    def vtype(self) -> str | None:
        """Fluid's name of the kind: Param, RemotePrefetch, Optimizer; None if its table leaves it out."""
        return _VTYPES.get(self.kind)
