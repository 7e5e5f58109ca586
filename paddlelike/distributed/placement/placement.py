"""The placement of a job: the rows of each variable on each parameter server.

The transpiler decides it once; trainers, servers, saves and loads read the same table. A variable is cut
along its first dim into blocks of consecutive rows. A table sharded by id is different: server j of n keeps
its rows j, j + n, j + 2n, ... Optimizer state is cut like its parameter. Scalars (powers of beta, the
learning rate, counters) are whole on every server that needs them.

Fluid's name for this table is ``VarsDistributed`` (``program._parameters_on_pservers``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any, overload

from paddlelike.core import VarType
from paddlelike.distributed.placement.server_table import DELTA
from paddlelike.distributed.placement.slices import Kind, Slice
from paddlelike.errors import GraphError


class Placement(Sequence[Slice]):
    """Every slice of a job once, in an order that depends only on the slices.

    Slices are sorted by endpoint, in the given order; then by kind: trained variables, optimizer state,
    schedules; then by name and block.

    Parameters
    ----------
    endpoints
        All servers, also those that hold nothing.
    trainers
        The number of trainers that send gradients.

    Raises
    ------
    GraphError
        A slice is on an endpoint that is not among ``endpoints``.

    >>> slices = [
    ...     Slice("w", f"w.block{i}", f"127.0.0.1:617{4 + i}", i, 2 * i, (2, 3), (4, 3), VarType.FP32,
    ...           Kind.PARAMETER)
    ...     for i in range(2)
    ... ]
    >>> table = Placement(slices, endpoints=["127.0.0.1:6174", "127.0.0.1:6175"], trainers=2)
    >>> [s.name for s in table.on("127.0.0.1:6175")]
    ['w.block1']
    >>> table.find_endpoint("w", row=3)
    '127.0.0.1:6175'
    >>> Placement.from_json(table.to_json()) == table
    True
    """

    def __init__(self, slices: Iterable[Slice], *, endpoints: Sequence[str], trainers: int = 1) -> None:
        self.endpoints = tuple(endpoints)
        self.trainers = trainers
        order = {endpoint: index for index, endpoint in enumerate(self.endpoints)}
        given = list(slices)
        for one in given:
            if one.endpoint not in order:
                raise GraphError(
                    f"slice {one.name!r} is placed on {one.endpoint}, which is not one of {endpoints}"
                )
        kinds = list(Kind)
        trained = kinds[0]

        def key(one: Slice) -> tuple[Any, ...]:
            kind = trained if one.kind.is_trained else one.kind
            return order[one.endpoint], kinds.index(kind), one.origin, one.block, one.name

        self._slices = tuple(sorted(given, key=key))

    # As a sequence

    def __len__(self) -> int:
        return len(self._slices)

    def __iter__(self) -> Iterator[Slice]:
        return iter(self._slices)

    @overload
    def __getitem__(self, index: int) -> Slice: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Slice, ...]: ...
    def __getitem__(self, index: int | slice) -> Slice | tuple[Slice, ...]:
        return self._slices[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Placement) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_json(), sort_keys=True))

    def __repr__(self) -> str:
        return f"<Placement of {len(self._slices)} slices on {len(self.endpoints)} servers>"

    # Parts of it

    def on(self, endpoint: str, *kinds: Kind) -> list[Slice]:
        """Return the slices of a server, of all kinds or of the given ones.

        Raises
        ------
        GraphError
            There is no such server.
        """
        self._check(endpoint)
        return [s for s in self._by_endpoint.get(endpoint, ()) if not kinds or s.kind in kinds]

    def of(self, origin: str) -> list[Slice]:
        """Return the slices of a variable by block; for a whole variable on several servers, each copy."""
        return sorted(self._by_origin.get(origin, ()), key=lambda s: s.block)

    def origins(self, *kinds: Kind) -> list[str]:
        """Return the sorted names of the variables, of all kinds or of the given ones."""
        return sorted({s.origin for s in self._slices if not kinds or s.kind in kinds})

    def find(self, endpoint: str, name: str) -> Slice | None:
        """Return the slice that a server calls ``name``, or None without one."""
        return self._by_name.get((endpoint, name))

    def find_endpoint(self, origin: str, *, row: int) -> str:
        """Return the server that keeps a row. Raises GraphError when none does."""
        for one in self.of(origin):
            distance = row - one.first_row
            if distance >= 0 and distance % one.stride == 0 and distance // one.stride < one.rows:
                return one.endpoint
        raise GraphError(f"no server keeps row {row} of {origin!r}")

    @cached_property
    def is_geo(self) -> bool:
        """Whether trainers send differences of parameters that they update themselves."""
        return any(one.gradient.endswith(DELTA) for one in self._slices)

    @cached_property
    def _by_endpoint(self) -> dict[str, list[Slice]]:
        return _group(self._slices, lambda s: s.endpoint)

    @cached_property
    def _by_origin(self) -> dict[str, list[Slice]]:
        return _group(self._slices, lambda s: s.origin)

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Slice]:
        return {(s.endpoint, s.name): s for s in self._slices}

    def _check(self, endpoint: str) -> None:
        if endpoint not in self.endpoints:
            raise GraphError(
                f"{endpoint!r} is not one of the parameter servers {', '.join(self.endpoints)}",
                hint="write the endpoint exactly as in transpile(pservers=...)",
            )

    # Serialised

    def to_json(self) -> dict[str, Any]:
        """Return the placement as plain values."""
        slices = [
            asdict(s) | {"dtype": int(s.dtype), "shape": list(s.shape), "whole": list(s.whole)}
            for s in self._slices
        ]
        return {"endpoints": list(self.endpoints), "trainers": self.trainers, "slices": slices}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Placement:
        """Return the placement that :meth:`to_json` gave."""
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


def _group(slices: Iterable[Slice], key: Callable[[Slice], str]) -> dict[str, list[Slice]]:
    groups: dict[str, list[Slice]] = {}
    for one in slices:
        groups.setdefault(key(one), []).append(one)
    return groups
