"""Calls of a trainer outside its steps: read values of servers, save on servers, exchange texts with
trainers.
"""

from __future__ import annotations

import functools
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.core import Array, memory
from paddlelike.distributed.client.calls import Exchange
from paddlelike.distributed.client.driver import Driver
from paddlelike.distributed.client.outbox import SAME_NETWORK
from paddlelike.distributed.client.receivers import Pieces
from paddlelike.distributed.placement import Entry, values_at
from paddlelike.distributed.protocol.messages import Pull, Share
from paddlelike.distributed.settings import Settings
from paddlelike.distributed.wire import Into, Part, Receiver
from paddlelike.errors import GraphError

_MOST_IDS = 1 << 34  # bytes of the row ids of a table
_MOST_TEXT = 1 << 32  # bytes of the texts of all trainers in one exchange


class Transfers(ABC):
    """Transfers of a trainer outside of its steps, which :class:`.Client` makes."""

    def __init__(self, trainer: int, endpoints: Sequence[str], settings: Settings | None = None) -> None:
        self.trainer = trainer
        self.endpoints = tuple(endpoints)
        settings = Settings.from_environment() if settings is None else settings
        self.driver = Driver(trainer, endpoints, settings)

    def _join(self) -> None:
        """Join the job. Raises FaultError."""
        self.driver.join()
        self.tables = self.driver.tables
        self.mode = self.driver.mode

    @property
    def round(self) -> int:
        """The next round (asynchronous: the next update of this process)."""
        return self.driver.round

    def find_entry(self, endpoint: str, name: str) -> tuple[int, Entry]:
        """Return the index of a server and its entry of a name. Raises GraphError if there is none."""
        if endpoint not in self.endpoints:
            raise GraphError(
                f"{endpoint!r} is not one of this trainer's servers: {', '.join(self.endpoints)}"
            )
        server = self.endpoints.index(endpoint)
        table = self.tables[server]
        entry = table.get(name)
        if entry is None:
            raise GraphError(
                f"the server at {endpoint} has no variable {name!r}; it has "
                f"{', '.join(e.name for e in list(table)[:8])}{', ...' if len(table) > 8 else ''}",
                hint=SAME_NETWORK,
            )
        return server, entry

    def pull(self, wanted: Sequence[tuple[str, str]]) -> list[Array]:
        """Pull variables of any kind, given as (endpoint, name), into arrays of their own."""
        places = [self.find_entry(endpoint, name) for endpoint, name in wanted]
        slices: list[dict[int, Array]] = [{} for _ in self.endpoints]
        for server, entry in places:
            slices[server].setdefault(entry.index, memory.empty(entry.shape, entry.numpy_dtype))
        receivers = [functools.partial(_into, arrays) for arrays in slices]
        self._pull([tuple(arrays) for arrays in slices], receivers)
        return [slices[server][entry.index] for server, entry in places]

    def stream(self, wanted: tuple[str, str], receiver: Callable[[], Receiver]) -> None:
        """Pull the bytes of one variable into a receiver; a repeated call uses a new receiver."""
        server, entry = self.find_entry(*wanted)
        self._pull_one(server, entry.index, receiver)

    def row_ids(self, wanted: tuple[str, str]) -> Array:
        """Pull the ids in a server's shard of a table, (n,) int64, in the order of its rows."""
        server, entry = self.find_entry(*wanted)
        pieces: list[Pieces] = []

        def receiver() -> Receiver:
            pieces.append(Pieces(_MOST_IDS))
            return pieces[-1]

        self._pull_one(server, len(self.tables[server]) + entry.index, receiver)
        return np.frombuffer(pieces[-1].join_pieces(), np.int64)

    def save(self, directory: str, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Have every server write its rows of these files; return their answers by endpoint."""
        return dict(zip(self.endpoints, self._ask(directory, {"names": list(names)}), strict=True))

    def edit_tables(self, do: str, only: str | None = None, **how: Any) -> list[dict[str, Any]]:
        """Have every server edit its growing tables, or one of them, once; return the answers."""
        return [one["tables"] for one in self._ask("", {"tables": {"do": do, "only": only, **how}})]

    def find_touched(self, since: Sequence[int]) -> list[tuple[int, dict[str, list[int]]]]:
        """Return, for each server, the number of its last geo-SGD update and the rows changed after
        ``since``.
        """
        return [one["touched"] for one in self._ask("", {"touched": list(since)})]

    def load_table(self, directory: str, names: Sequence[str] | None) -> None:
        """Let every server load its rows of some variables, or of all."""
        self._ask(directory, {"load": None if names is None else list(names)})

    def exchange(self, text: str) -> list[str]:
        """Exchange a text: every trainer must call this. Return all texts by trainer id."""
        data = text.encode()
        pieces: list[Pieces] = []

        def exchange(server: int, request: Share, is_direct: bool) -> Exchange:
            pieces.append(Pieces(_MOST_TEXT))
            return Exchange(request, [Part(0, 0, memoryview(data))], pieces[-1])

        self.flush()
        self._check(self.driver.reach(lambda state, now: state.share(now, len(data)), exchange))
        texts: list[str] = json.loads(pieces[-1].join_pieces())
        return texts

    def _ask(self, directory: str, options: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Have every server carry out a request once, between two rounds; return the answers."""
        self.flush()
        self._check(self.driver.reach(lambda state, now: state.save(now, directory, options)))
        return list(self.driver.state.manifests)

    def _pull(self, indexes: Sequence[tuple[int, ...]], receivers: Sequence[Callable[[], Receiver]]) -> None:
        def exchange(server: int, request: Pull, is_direct: bool) -> Exchange:
            return Exchange(request, receiver=receivers[server]())

        self.flush()
        self._check(self.driver.reach(lambda state, now: state.pull(now, indexes), exchange))

    def _pull_one(self, server: int, index: int, receiver: Callable[[], Receiver]) -> None:
        indexes: list[tuple[int, ...]] = [() for _ in self.endpoints]
        indexes[server] = (index,)
        self._pull(indexes, [receiver for _ in self.endpoints])

    @abstractmethod
    def flush(self) -> None:
        """Wait until the servers have the gradients that a thread pushes."""

    @abstractmethod
    def _check(self, reached: bool, *, in_step: bool = False) -> None:
        """Raise RoundRolledBack unless a goal was reached; inside a step, discard the rest of the step
        instead.
        """


def _into(arrays: Mapping[int, Array]) -> Into:
    return Into({values_at(index): array for index, array in arrays.items()})
