"""Which rows of which variable live on which parameter server.

The transpiler decides it once; trainers, servers, saving and loading all read the same table. A variable is
cut along its first dim into blocks of consecutive rows; of a table that is sharded by id, server j of n keeps
the rows j, j + n, j + 2n, ... Optimizer state is cut as the parameter it belongs to; scalars (powers of beta,
the learning rate, counters) are whole on every server that needs them.

Sources: ``VarsDistributed`` is what Fluid calls this table (``program._parameters_on_pservers``).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.errors import GraphError

__all__ = ["Kind", "Placement", "Slice"]


class Kind(StrEnum):
    """What a variable on a server is to training, and so how it travels and who saves it."""

    PARAMETER = "parameter"  # trainers receive it after every round
    REMOTE = "remote"  # a table in blocks of rows; trainers fetch the rows they look up
    TABLE = "table"  # a table sharded by id; trainers fetch the rows they look up
    OPTIMIZER = "optimizer"  # state of an optimizer: stays on the servers
    AVERAGE = "average"  # means of parameters, updated beside them: stay on the servers
    SCHEDULE = "schedule"  # learning rates and their counters: the same on every server

    @property
    def is_trained(self) -> bool:
        """Whether trainers send gradients for it."""
        return self in (Kind.PARAMETER, Kind.REMOTE, Kind.TABLE)


#: Fluid's names (``vtype``) of the kinds that its table holds.
_VTYPES = {Kind.PARAMETER: "Param", Kind.REMOTE: "RemotePrefetch", Kind.OPTIMIZER: "Optimizer"}


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
    block: int  #: number of this slice among those of ``origin``
    first_row: int
    shape: tuple[int, ...]
    whole: tuple[int, ...]  #: shape of ``origin``
    dtype: VarType
    kind: Kind
    gradient: str = ""  #: what the server calls the gradient of a trained slice
    owner: str = ""  #: the parameter whose optimizer state this is
    stride: int = 1  #: distance between rows; of a table sharded by id the number of servers

    @property
    def is_slice(self) -> bool:
        """Whether this is less than the whole variable."""
        return self.shape != self.whole or self.stride > 1

    @property
    def is_selected_rows(self) -> bool:
        """Whether the server keeps it as SelectedRows, which hold only rows met so far."""
        return self.kind == Kind.TABLE

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.shape[0] if self.shape else 1

    @property
    def offset(self) -> int:
        """Where the slice begins in the whole variable, in elements."""
        return self.first_row * math.prod(self.whole[1:])

    @property
    def nbytes(self) -> int:
        """The size of its values in bytes."""
        return math.prod(self.shape) * numpy_dtype(self.dtype).itemsize

    @property
    def vtype(self) -> str | None:
        """Fluid's name of the kind: Param, RemotePrefetch, Optimizer; None for what its table leaves out."""
        return _VTYPES.get(self.kind)


class Placement(Sequence[Slice]):
    """The table: every slice once, in one order that depends on nothing but the slices.

    By endpoint as given, then trained variables, optimizer state, schedules; then by name and block.

    Parameters
    ----------
    endpoints
        All servers, also those that hold nothing.
    trainers
        How many trainers send gradients.

    >>> slices = [
    ...     Slice("w", f"w.block{i}", f"127.0.0.1:617{4 + i}", i, 2 * i, (2, 3), (4, 3), VarType.FP32,
    ...           Kind.PARAMETER)
    ...     for i in range(2)
    ... ]
    >>> table = Placement(slices, endpoints=["127.0.0.1:6174", "127.0.0.1:6175"], trainers=2)
    >>> [s.name for s in table.served("127.0.0.1:6175")]
    ['w.block1']
    >>> table.endpoint_of("w", row=3)
    '127.0.0.1:6175'
    >>> Placement.from_json(table.to_json()).digest == table.digest
    True
    """

    def __init__(self, slices: Iterable[Slice], *, endpoints: Sequence[str], trainers: int = 1) -> None:
        self.endpoints = tuple(endpoints)
        self.trainers = trainers
        order = {endpoint: number for number, endpoint in enumerate(self.endpoints)}
        given = list(slices)
        for one in given:
            if one.endpoint not in order:
                raise GraphError(f"slice {one.name!r} lives on {one.endpoint}, which is none of {endpoints}")
        kinds = list(Kind)
        trained = kinds[0]

        def key(one: Slice) -> tuple[Any, ...]:
            kind = trained if one.kind.is_trained else one.kind
            return order[one.endpoint], kinds.index(kind), one.origin, one.block, one.name

        self._slices = tuple(sorted(given, key=key))

    # What a sequence offers

    def __len__(self) -> int:
        return len(self._slices)

    def __iter__(self) -> Iterator[Slice]:
        return iter(self._slices)

    def __getitem__(self, index: Any) -> Any:
        return self._slices[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Placement) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<Placement of {len(self._slices)} slices on {len(self.endpoints)} servers>"

    # Parts of it

    def on(self, endpoint: str, *kinds: Kind) -> list[Slice]:
        """What a server keeps, of these kinds or of all. Raises GraphError for an unknown endpoint."""
        self._check(endpoint)
        return [s for s in self._by_endpoint.get(endpoint, ()) if not kinds or s.kind in kinds]

    def served(self, endpoint: str) -> list[Slice]:
        """What trainers send gradients for to a server. On the wire a slice is its number in this list."""
        return [s for s in self.on(endpoint) if s.kind.is_trained]

    def of(self, origin: str) -> list[Slice]:
        """The slices of a variable by block; of what is whole on several servers, one for each of them."""
        return sorted(self._by_origin.get(origin, ()), key=lambda s: s.block)

    def origins(self, *kinds: Kind) -> list[str]:
        """The variables by name, of these kinds or of all."""
        return sorted({s.origin for s in self._slices if not kinds or s.kind in kinds})

    def find(self, endpoint: str, name: str) -> Slice | None:
        """The slice that a server calls ``name``, or None."""
        return self._by_name.get((endpoint, name))

    def endpoint_of(self, origin: str, *, row: int) -> str:
        """The server that keeps a row. Raises GraphError when none does."""
        for one in self.of(origin):
            distance = row - one.first_row
            if distance >= 0 and distance % one.stride == 0 and distance // one.stride < one.rows:
                return one.endpoint
        raise GraphError(f"no server keeps row {row} of {origin!r}")

    @cached_property
    def _by_endpoint(self) -> dict[str, list[Slice]]:
        return _grouped(self._slices, lambda s: s.endpoint)

    @cached_property
    def _by_origin(self) -> dict[str, list[Slice]]:
        return _grouped(self._slices, lambda s: s.origin)

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Slice]:
        return {(s.endpoint, s.name): s for s in self._slices}

    def _check(self, endpoint: str) -> None:
        if endpoint not in self.endpoints:
            raise GraphError(
                f"{endpoint!r} is none of the parameter servers {', '.join(self.endpoints)}",
                hint="an endpoint is written exactly as in the list of servers given to transpile()",
            )

    # Forms

    def digest_of(self, endpoint: str) -> str:
        """A fingerprint of what one server serves: names, shapes and element types.

        A program says no more than this of itself, so both ends of a connection can compute it.
        """
        served = [[s.name, list(s.shape), int(s.dtype)] for s in self.served(endpoint)]
        return hashlib.sha256(_canonical([endpoint, served])).hexdigest()

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the whole table."""
        return hashlib.sha256(_canonical(self.to_json())).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The table as plain values."""
        slices = [
            asdict(s) | {"dtype": int(s.dtype), "shape": list(s.shape), "whole": list(s.whole)}
            for s in self._slices
        ]
        return {"endpoints": list(self.endpoints), "trainers": self.trainers, "slices": slices}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Placement:
        """The table out of :meth:`to_json`."""
        slices = [
            Slice(
                **one
                | {
                    "shape": tuple(one["shape"]),
                    "whole": tuple(one["whole"]),
                    "dtype": VarType(one["dtype"]),
                    "kind": Kind(one["kind"]),
                }
            )
            for one in value["slices"]
        ]
        return cls(slices, endpoints=value["endpoints"], trainers=value["trainers"])


def _grouped(slices: Iterable[Slice], key: Callable[[Slice], str]) -> dict[str, list[Slice]]:
    groups: dict[str, list[Slice]] = {}
    for one in slices:
        groups.setdefault(key(one), []).append(one)
    return groups


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
