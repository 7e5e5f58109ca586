"""The operators that work between processes, carried out by clients and servers for one executor."""

from __future__ import annotations

import functools
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from paddlelike.core import Array, Scope, SelectedRows
from paddlelike.distributed.checkpoint import operators
from paddlelike.distributed.checkpoint.partitions import find_placement
from paddlelike.distributed.client.client import Client
from paddlelike.distributed.client.geo import exchanges
from paddlelike.distributed.client.heartbeat import exit_by_code
from paddlelike.distributed.client.outbox import SAME_NETWORK
from paddlelike.distributed.client.trainers import close_client, find_client, find_trainer_id, root_scope
from paddlelike.distributed.placement import Entry, Kind, base_name
from paddlelike.distributed.server.serve import serve
from paddlelike.distributed.server.service import Service
from paddlelike.distributed.settings import Settings
from paddlelike.errors import (
    EnforceNotMet,
    FaultError,
    GraphError,
    NotInitializedError,
    OperatorError,
    PaddlelikeError,
)
from paddlelike.framework import Block, Operator, Program
from paddlelike.framework.opdef import Context


@dataclass(slots=True)
class _Route:
    """The server and the entry of each variable of one send or recv."""

    program: weakref.ref[Program]
    scope: weakref.ref[Scope]
    version: int  # of the program, which may be changed
    client: Client
    names: list[str]
    places: list[tuple[int, Entry]]
    is_cut: bool  # into blocks of rows
    is_checked: bool = False


class RemoteOperators:
    """The remote operators of one executor; see :class:`paddlelike.framework.opdef.remote.Remote`.

    Every method raises the errors of the method of :class:`Client` that it calls.
    """

    def __init__(self) -> None:
        exit_by_code()
        self._used: list[tuple[Scope, int]] = []
        self._service: Service | None = None
        self._routes: dict[int, _Route] = {}  # by id of the operator
        self._trainer_ids: weakref.WeakKeyDictionary[Program, int] = weakref.WeakKeyDictionary()

    def client(self, scope: Scope, block: Block) -> Client:
        """Return the client of the trainer whose program has ``block`` and whose scope is ``scope``."""
        trainer = self._trainer_ids.get(block.program)
        if trainer is None:
            trainer = self._trainer_ids[block.program] = find_trainer_id(block)
        client = find_client(scope, trainer, block)
        key = root_scope(scope), trainer
        if key not in self._used:
            self._used.append(key)
        return client

    def send(self, ctx: Context, values: list[Any]) -> None:
        """Stage values for the next push, cut into blocks if the operator says so."""
        placement = find_placement(ctx.op.block.program)  # type: ignore[attr-defined]
        if placement is not None and placement.is_geo:
            self._note_step(ctx, values)
            return
        route = self._find_route(ctx)
        if len(values) == 1 and len(route.names) > 1:
            sections = ctx.op.attrs["sections"]
            if route.is_cut:
                values = _cut(values[0], sections) if sections else _cut_by_id(values[0], len(route.names))
            else:
                values *= len(route.names)
        for (server, entry), name, value in zip(route.places, route.names, values, strict=True):
            route.client.stage_entry(server, entry, name, value)

    def _note_step(self, ctx: Context, values: list[Any]) -> None:
        """Begin geo-SGD after the startup program, and count each step."""
        geo = exchanges.get(self._client(ctx))
        if geo is None:
            return
        names = ctx.op.attrs["send_varnames"]
        if list(names) == ["param_init"]:
            geo.begin(ctx.scope)
            return
        looked_up: dict[str, list[Array]] = {}
        for name, ids in zip(names, values, strict=True):
            looked_up.setdefault(name, []).append(ids)
        geo.step(ctx.scope, looked_up)

    def send_barrier(self, ctx: Context) -> None:
        """Push staged gradients, and in synchronous training commit the round."""
        self._client(ctx).push()

    def recv(self, ctx: Context) -> list[Array]:
        """Return the parameters in ``Out``, joined from blocks if the operator says so.

        Raises
        ------
        GraphError
            The trainer's program declares another shape.
        """
        route = self._find_route(ctx)
        outs = ctx.op.output("Out")
        found = [route.client.find_values(server, entry) for server, entry in route.places]
        if len(outs) == 1 and len(found) > 1:
            found = [np.concatenate(found)]
        if not route.is_checked:
            for out, value in zip(outs, found, strict=True):
                _check_shape(ctx, out, value)
            route.is_checked = True
        return found

    def fetch_barrier(self, ctx: Context) -> None:
        """Do nothing: every recv already has its values."""

    def prefetch(self, ctx: Context, ids: list[Array]) -> list[Array]:
        """Return rows of the table that is sharded by id over the servers.

        Raises
        ------
        EnforceNotMet
            A server has no such table, or several.
        """
        client = self._client(ctx)
        wanted = []
        for endpoint, one in zip(ctx.op.attrs["epmap"], ids, strict=True):
            tables = client.tables[client.endpoints.index(endpoint)].having(Kind.TABLE)
            if len(tables) != 1:
                raise EnforceNotMet(
                    f"prefetch: expected one table that is sharded by id on the server at {endpoint}, "
                    f"it has {len(tables)}"
                )
            wanted.append((endpoint, tables[0].name, one.reshape(-1)))
        return client.prefetch(wanted)

    def lookup(self, ctx: Context, ids: list[Array]) -> list[Array]:
        """Return rows of a table whose blocks are on several servers; each row is fetched once.

        Raises
        ------
        EnforceNotMet
            An id is outside of the table.
        """
        attrs = ctx.op.attrs
        ends = np.cumsum(attrs["height_sections"])
        padding = attrs["padding_idx"]
        flat = np.concatenate([one.reshape(-1) for one in ids])
        asked, where = np.unique(flat, return_inverse=True)
        if padding != -1:
            asked = np.where(asked == padding, max(padding, 0), asked)
        if asked.size and not (asked.min() >= 0 and asked.max() < ends[-1]):
            bad = asked[(asked < 0) | (asked >= ends[-1])][0]
            raise EnforceNotMet(
                f"distributed_lookup_table: Ids hold {bad}; {ctx.op.input('W')[0]!r} has {ends[-1]} rows",
                hint=f"ids go from 0 to {ends[-1] - 1}; is the size of the embedding right?",
            )
        of = np.searchsorted(ends, asked, side="right")
        starts = ends - np.asarray(attrs["height_sections"])
        servers = list(zip(attrs["endpoints"], attrs["table_names"], strict=True))
        wanted = [(*server, asked[of == j] - starts[j]) for j, server in enumerate(servers)]
        found = self._client(ctx).prefetch(wanted)
        rows = np.concatenate(found)[where.reshape(-1)]  # ``asked`` is sorted, so blocks follow each other
        if padding != -1:
            rows[flat == padding] = 0
        return _split(ctx, ids, rows)

    def look_up_growing(self, ctx: Context, ids: Array) -> tuple[Array, Array]:
        """Return the rows of distinct ids in a growing table, or the initial rows of new ids.

        Return also the number of shows of each id so far, -1 for ids with rows.
        """
        name, endpoints = ctx.op.input("W")[0], ctx.op.attrs["endpoints"]
        of = ids % len(endpoints)
        wanted = [(endpoint, name, ids[of == j]) for j, endpoint in enumerate(endpoints)]
        found = self._client(ctx).prefetch(wanted)
        rows = np.empty((len(ids), found[0].shape[1]), found[0].dtype)
        for j, part in enumerate(found):
            rows[of == j] = part
        return rows[:, :-1], rows[:, -1]

    def serve(self, ctx: Context) -> None:
        """Serve until every trainer has left, a signal comes, or :meth:`close` is called.

        Raises
        ------
        NotInitializedError
            A variable has no value.
        FaultError
            The trainers have been gone too long.
        OperatorError
            Anything else that ended the server. All name the endpoint.
        """
        try:
            self._service = Service(ctx, Settings.from_environment())
            serve(self._service)
        except (FaultError, OperatorError, NotInitializedError):
            raise
        except PaddlelikeError as error:
            where = ctx.op.attrs["endpoint"]
            raise OperatorError(f"the server at {where}: {error.message}", hint=error.hint) from error
        finally:
            self._service = None

    def recv_save(self, ctx: Context) -> None:
        """Gather the slices of a variable into a file."""
        operators.recv_save(self._client(ctx), ctx.op.attrs)

    def checkpoint_notify(self, ctx: Context) -> None:
        """Make every server write its shard of a table."""
        placement = find_placement(ctx.op.block.program)  # type: ignore[attr-defined]
        operators.checkpoint_notify(self._client(ctx), ctx.op.attrs, placement)

    def close(self) -> None:
        """Close the clients that this executor ran; end its server."""
        if self._service is not None:
            self._service.stop()
        for scope, trainer in self._used:
            close_client(scope, trainer)
        self._used.clear()

    def _find_route(self, ctx: Context) -> _Route:
        """Return the servers of the variables of a send or recv; computed once per operator and scope."""
        op: Operator = ctx.op  # type: ignore[assignment]
        program, key = op.block.program, id(op)
        route = self._routes.get(key)  # an operator lives as long as the version of its program
        if (
            route is not None
            and route.program() is program
            and route.version == program._version
            and route.scope() is ctx.scope
            and not route.client.is_closed
        ):
            return route
        client = self._client(ctx)
        endpoints, is_cut = op.attrs["epmap"], False
        if op.type == "send":
            names = list(op.attrs.get("send_varnames") or op.input("X"))
            is_cut = len(names) > 1
            if len(names) == 1 and len(endpoints) > 1:  # a counter: the same to every server
                names *= len(endpoints)
        else:
            names = list(op.attrs.get("recv_varnames") or op.attrs.get("varnames") or op.output("Out"))
        places = [
            client.find_entry(endpoint, base_name(name) if op.type == "send" else name)
            for name, endpoint in zip(names, endpoints, strict=True)
        ]
        forget = functools.partial(self._forget_route, weakref.ref(self), key)
        at = weakref.ref(program, forget), weakref.ref(ctx.scope), program._version
        self._routes[key] = route = _Route(*at, client, names, places, is_cut)
        return route

    @staticmethod
    def _forget_route(me: weakref.ref[RemoteOperators], key: int, program: weakref.ref[Program]) -> None:
        """Drop the route of an operator whose program is gone."""
        mine = me()
        route = None if mine is None else mine._routes.get(key)
        if mine is not None and route is not None and route.program is program:
            del mine._routes[key]

    def _client(self, ctx: Context) -> Client:
        return self.client(ctx.scope, ctx.op.block)  # type: ignore[attr-defined]


def _check_shape(ctx: Context, name: str, value: Array) -> None:
    variable = ctx.op.block._find_var_recursive(name)  # type: ignore[attr-defined]
    if variable is not None and variable.shape != value.shape:
        raise GraphError(
            f"{name!r} is {list(variable.shape)} in this trainer's program, {list(value.shape)} on servers",
            hint=SAME_NETWORK,
        )


def _cut(value: Array | SelectedRows, sections: list[int]) -> list[Any]:
    """Return a gradient in blocks of rows; row ids count from the start of each block."""
    ends = np.cumsum(sections)
    starts = ends - np.asarray(sections)
    if not isinstance(value, SelectedRows):
        return [value[start:end] for start, end in zip(starts, ends, strict=True)]
    rows, array = value.row_array, value.held_array
    assert array is not None
    of = np.searchsorted(ends, rows, side="right")
    return [SelectedRows(rows[of == j] - starts[j], n, array[of == j]) for j, n in enumerate(sections)]


def _cut_by_id(value: SelectedRows, count: int) -> list[Any]:
    """Return the rows of each server: the ids that equal its index modulo the number of servers."""
    assert value.held_array is not None
    of = value.row_array % count
    parts = [np.flatnonzero(of == j) for j in range(count)]
    return [SelectedRows(value.row_array[at], value.height(), value.held_array[at]) for at in parts]


def _split(ctx: Context, ids: list[Array], rows: Array) -> list[Array]:
    """Return the rows of each array of ids, in its shape and with its LoD."""
    first_version = ctx.op.attrs["lookup_table_version"] == "lookup_table"
    outs, at = [], 0
    for index, one in enumerate(ids):
        shape = one.shape[:-1] if first_version else one.shape
        outs.append(rows[at : at + one.size].reshape(*shape, rows.shape[1]))
        at += one.size
        ctx.set_lod("Outputs", ctx.lod("Ids", index), index)
    return outs
