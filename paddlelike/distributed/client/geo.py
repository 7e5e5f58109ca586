"""Geo-SGD of one trainer: the changes that it sends, and the changes of other trainers that it adds.

Every ``push_nums`` steps, a trainer sends its changes since the last exchange to the servers, divided by the
number of trainers. The servers add them up, and the trainer receives the sums of the others. For a table it
sends only the rows that were looked up, and receives only the rows that changed. Fluid exchanges in
background threads; here a step waits for the exchange, so that it is known which steps the servers have.

Source: ``GeoSgdCommunicator`` of Fluid 1.8.5, ``operators/distributed/communicator.cc``, which reads int64
ids as int32 and so sends half of the rows. Here all rows that were looked up are sent.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from paddlelike.core import Array, LoDTensor, Scope, SelectedRows
from paddlelike.core.rows import unique_rows
from paddlelike.distributed.client.client import Client
from paddlelike.distributed.placement import Kind, Placement, Slice
from paddlelike.errors import NotInitializedError


class Geo:
    """The exchanges of one trainer.

    Parameters
    ----------
    trainers
        Differences are divided by their count.
    push_nums
        Steps between two exchanges.
    """

    def __init__(self, client: Client, placement: Placement, *, trainers: int, push_nums: int) -> None:
        self._client: Client = weakref.proxy(client)  # the key of ``exchanges``
        self._trainers, self._push_nums = trainers, max(push_nums, 1)
        origins = placement.origins(Kind.PARAMETER, Kind.REMOTE)
        self._slices = {name: placement.of(name) for name in origins}
        self._old: dict[str, Array] = {}  # as of the last exchange
        self._ids: dict[str, list[Array]] = {name: [] for name in origins if self._is_sparse(name)}
        self._seen: dict[str, int] = {}  # by endpoint, the last update whose rows were received
        self._steps = 0
        self._pending = False  # whether there were steps since the last exchange

    def begin(self, scope: Scope) -> None:
        """Record the values of the parameters at the beginning of the training."""
        self._old = {name: self._find(scope, name).array.copy() for name in self._slices}

    def step(self, scope: Scope, looked_up: Mapping[str, list[Array]]) -> None:
        """Record the ids of a step by table, and exchange if an exchange is due."""
        for name, ids in looked_up.items():
            self._ids[name] += [unique_rows(one) for one in ids]
        self._steps += 1
        self._pending = True
        if self._steps % self._push_nums == 0:
            self.exchange(scope)

    def exchange_pending(self, scope: Scope) -> None:
        """Exchange if there were steps since the last exchange, without changing the time of the next one."""
        if self._pending:  # G4
            self.exchange(scope)

    def exchange(self, scope: Scope) -> None:
        """Send the differences of this trainer and add the differences of the others."""
        client = self._client
        if not self._old:
            self.begin(scope)
        for name, slices in self._slices.items():
            if name in self._ids:
                ids = unique_rows(np.concatenate([np.empty(0, np.int64), *self._ids[name]]))
                self._ids[name].clear()
                delta = self._subtract(name, self._find(scope, name).array[ids], ids)
                for one in slices:
                    mine = (ids >= one.first_row) & (ids < one.first_row + one.rows)
                    rows = SelectedRows(ids[mine] - one.first_row, one.rows, delta[mine])
                    client.stage(one.endpoint, one.gradient, rows)
                continue
            delta = self._subtract(name, self._find(scope, name).array)
            for one in slices:
                client.stage(one.endpoint, one.gradient, _rows_of(delta, one))
        client.push()
        self._take_dense(scope)
        if self._ids:
            self._take_rows(scope)
        self._pending = False

    def _subtract(self, name: str, new: Array, at: Any = slice(None)) -> Array:
        """Return this trainer's share of a difference, and count it as sent."""
        delta: Array = (new - self._old[name][at]) * new.dtype.type(1 / self._trainers)
        self._old[name][at] += delta  # G1
        return delta

    def _take_dense(self, scope: Scope) -> None:
        dense = [one for name, slices in self._slices.items() if name not in self._ids for one in slices]
        found = self._client.pull([(one.endpoint, one.name) for one in dense])
        for one, value in zip(dense, found, strict=True):
            tensor, old = self._find(scope, one.origin).tensor, _rows_of(self._old[one.origin], one)
            with tensor.writing() as array:
                _rows_of(array, one)[...] += value - old  # G2
            old[...] = value

    def _take_rows(self, scope: Scope) -> None:
        since = [self._seen.get(endpoint, 0) for endpoint in self._client.endpoints]
        for endpoint, (number, rows) in zip(
            self._client.endpoints, self._client.find_touched(since), strict=True
        ):
            self._seen[endpoint] = number  # G3
            for one in (one for name in self._ids for one in self._slices[name] if one.endpoint == endpoint):
                at = np.array(rows.get(one.name, ()), np.int64)
                (value,) = self._client.prefetch([(endpoint, one.name, at)])
                at += one.first_row
                with self._find(scope, one.origin).tensor.writing() as array:
                    array[at] += value - self._old[one.origin][at]
                self._old[one.origin][at] = value

    def _is_sparse(self, name: str) -> bool:
        return self._slices[name][0].kind == Kind.REMOTE

    def _find(self, scope: Scope, name: str) -> _Parameter:
        holder = scope.find_var(name)
        tensor = None if holder is None else holder.value
        if not isinstance(tensor, LoDTensor) or tensor.array is None:
            raise NotInitializedError(
                f"geo-SGD: {name!r} has no value in this trainer", hint="run the startup program first"
            )
        return _Parameter(tensor)


class _Parameter:
    """A parameter that this trainer updates itself, and its value at the last exchange."""

    def __init__(self, tensor: LoDTensor) -> None:
        self.tensor = tensor

    @property
    def array(self) -> Array:
        """The values of the parameter."""
        return np.asarray(self.tensor.array)


def _rows_of(array: Array, one: Slice) -> Array:
    """Return the part of a whole parameter that one server keeps."""
    return array[one.first_row : one.first_row + one.rows] if one.is_slice else array


#: The exchanges of the trainers of this process.
exchanges: weakref.WeakKeyDictionary[Client, Geo] = weakref.WeakKeyDictionary()
