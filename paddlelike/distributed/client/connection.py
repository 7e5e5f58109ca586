"""What operators do between processes: the remote end that an executor lends to its runs."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from paddlelike.core.scope import Scope, global_scope
from paddlelike.core.tensor import SelectedRows
from paddlelike.distributed.checkpoint import operators
from paddlelike.distributed.checkpoint.programs import placement_of
from paddlelike.distributed.client.exits import exit_by_code
from paddlelike.distributed.client.trainer import Trainer
from paddlelike.distributed.server.server import Service
from paddlelike.distributed.server.table import Role
from paddlelike.distributed.settings import Settings
from paddlelike.errors import (
    EnforceNotMet,
    GraphError,
    NotInitializedError,
    OperatorError,
    PaddlelikeError,
)
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.program import Program
from paddlelike.framework.opdef import Context

__all__ = ["Connection", "leave_jobs", "resumable_steps", "trainer_number", "trainer_of"]

Array = np.ndarray[Any, Any]

#: Operators that know whose program they are in.
_SPEAKS: Final = (
    "send_barrier", "fetch_barrier", "recv", "distributed_lookup_table", "prefetch", "recv_save",
    "checkpoint_notify", "send",
)  # fmt: skip

#: The trainers of this process: a scope's parameters belong to one job, whoever runs its programs.
_trainers: weakref.WeakKeyDictionary[Scope, dict[int, Trainer]] = weakref.WeakKeyDictionary()


def trainer_of(scope: Scope, number: int, block: Block) -> Trainer:
    """The trainer ``number`` whose parameters are in ``scope``; connects to the servers in ``block``."""
    mine = _trainers.setdefault(_root(scope), {})
    if number not in mine:
        mine[number] = Trainer(number, _endpoints(block))
    return mine[number]


def resumable_steps(steps: int, scope: Scope | None = None) -> Iterator[int]:
    """See :func:`paddlelike.distributed.resumable_steps`."""
    trainers = _trainers.get(_root(global_scope() if scope is None else scope), {})
    if not trainers:
        yield from range(steps)
        return
    (trainer,) = trainers.values()
    trainer.follows = True
    try:
        while (step := trainer.round) < steps:
            trainer.is_adrift = trainer.is_behind  # a step that does nothing but receive
            yield step
    finally:
        trainer.follows = False


def leave_jobs() -> None:
    """Close every trainer of this process, whichever executor ran it."""
    for trainers in list(_trainers.values()):
        while trainers:
            trainers.popitem()[1].close()


def _endpoints(block: Block) -> list[str]:
    """Every server that the operators of a program name; in the order of its barriers, if it has any."""

    def named() -> Iterator[str]:
        for op in block.ops:
            if op.type in ("send_barrier", "fetch_barrier"):
                yield from op.attrs["endpoints"]
        for op in block.ops:
            if op.type in ("send", "recv", "prefetch", "checkpoint_notify"):
                yield from op.attrs["epmap"]
            elif op.type in ("distributed_lookup_table", "recv_save"):
                yield from op.attrs["endpoints"]

    return list(dict.fromkeys(named()))


def trainer_number(block: Block) -> int:
    """The id of the trainer whose program this is; real Fluid writes 0 into every ``send``."""
    says = {op.type: op.attrs["trainer_id"] for op in block.ops if op.type in _SPEAKS}
    return next((says[name] for name in _SPEAKS if name in says), 0)


class Connection:
    """Carries out the operators of one executor; see :class:`paddlelike.framework.opdef.remote.Remote`."""

    def __init__(self) -> None:
        exit_by_code()
        self._used: list[tuple[Scope, int]] = []
        self._service: Service | None = None
        self._numbers: weakref.WeakKeyDictionary[Program, int] = weakref.WeakKeyDictionary()

    def _trainer(self, ctx: Context) -> Trainer:
        return self.trainer(ctx.scope, ctx.op.block)  # type: ignore[attr-defined]

    def trainer(self, scope: Scope, block: Block) -> Trainer:
        """The trainer whose program has ``block`` and whose parameters are in ``scope``."""
        number = self._numbers.get(block.program)
        if number is None:
            number = self._numbers[block.program] = trainer_number(block)
        trainer = trainer_of(scope, number, block)
        key = _root(scope), number
        if key not in self._used:
            self._used.append(key)
        return trainer

    def send(self, ctx: Context, values: list[Any]) -> None:
        """Put values into the next push, cut into blocks where the operator says so."""
        trainer = self._trainer(ctx)
        names, endpoints = ctx.op.input("X"), ctx.op.attrs["epmap"]
        sent_as = ctx.op.attrs.get("send_varnames") or names
        if len(values) == 1 and len(sent_as) > 1:
            values = _cut(values[0], ctx.op.attrs["sections"])
        if len(values) == 1 and len(endpoints) > 1:  # a counter: the same to every server
            values, sent_as = values * len(endpoints), list(sent_as) * len(endpoints)
        for name, endpoint, value in zip(sent_as, endpoints, values, strict=True):
            trainer.send(endpoint, name, value)

    def send_barrier(self, ctx: Context) -> None:
        """Push and commit the round."""
        self._trainer(ctx).barrier()

    def recv(self, ctx: Context) -> list[Array]:
        """The parameters in ``Out``, put together where the operator says so."""
        trainer = self._trainer(ctx)
        outs, endpoints = ctx.op.output("Out"), ctx.op.attrs["epmap"]
        names = ctx.op.attrs.get("recv_varnames") or ctx.op.attrs.get("varnames") or outs
        found = [trainer.receive(endpoint, name) for name, endpoint in zip(names, endpoints, strict=True)]
        if len(outs) == 1 and len(found) > 1:
            found = [np.concatenate(found)]
        for out, value in zip(outs, found, strict=True):
            _check_shape(ctx, out, value)
        return found

    def fetch_barrier(self, ctx: Context) -> None:
        """Nothing is left to wait for: every recv has its values."""

    def prefetch(self, ctx: Context, ids: list[Array]) -> list[Array]:
        """Rows of the one table of each server that is sharded by id."""
        trainer = self._trainer(ctx)
        wanted = []
        for endpoint, one in zip(ctx.op.attrs["epmap"], ids, strict=True):
            tables = trainer.tables[trainer.endpoints.index(endpoint)].having(Role.TABLE)
            if len(tables) != 1:
                raise EnforceNotMet(f"prefetch: the server at {endpoint} has {len(tables)} tables, not one")
            wanted.append((endpoint, tables[0].name, one.reshape(-1)))
        return trainer.lookup(wanted)

    def lookup(self, ctx: Context, ids: list[Array]) -> list[Array]:
        """Rows of a table whose blocks lie on several servers; each row comes once."""
        trainer = self._trainer(ctx)
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
                f"distributed_lookup_table: Ids hold {bad}; {ctx.op.input('W')[0]!r} has {ends[-1]} rows"
            )
        of = np.searchsorted(ends, asked, side="right")
        starts = ends - np.asarray(attrs["height_sections"])
        servers = list(zip(attrs["endpoints"], attrs["table_names"], strict=True))
        found = trainer.lookup([(*server, asked[of == j] - starts[j]) for j, server in enumerate(servers)])
        rows = np.concatenate(found)[where.reshape(-1)]  # asked is sorted, so blocks follow each other
        if padding != -1:
            rows[flat == padding] = 0
        return _shaped(ctx, ids, rows)

    def serve(self, ctx: Context) -> None:
        """Be a server until every trainer has left, a signal comes, or :meth:`close` is called."""
        try:
            self._service = Service(ctx, Settings.from_environment())
            self._service.run()
        except (OperatorError, NotInitializedError):
            raise
        except PaddlelikeError as error:
            where = ctx.op.attrs["endpoint"]
            raise OperatorError(f"the server at {where}: {error.message}", hint=error.hint) from error
        finally:
            self._service = None

    def recv_save(self, ctx: Context) -> None:
        """Gather the slices of a variable into a file."""
        operators.recv_save(self._trainer(ctx), ctx.op.attrs)

    def checkpoint_notify(self, ctx: Context) -> None:
        """Write every server's shard of a table."""
        placement = placement_of(ctx.op.block.program)  # type: ignore[attr-defined]
        operators.checkpoint_notify(self._trainer(ctx), ctx.op.attrs, placement)

    def close(self) -> None:
        """Close the trainers that this executor ran; end its server."""
        if self._service is not None:
            self._service.stop()
        for scope, number in self._used:
            trainer = _trainers.get(scope, {}).pop(number, None)
            if trainer is not None:
                trainer.close()
        self._used.clear()


def _check_shape(ctx: Context, name: str, value: Array) -> None:
    variable = ctx.op.block._find_var_recursive(name)  # type: ignore[attr-defined]
    if variable is not None and variable.shape != value.shape:
        raise GraphError(
            f"{name!r} is {list(variable.shape)} in this trainer's program, {list(value.shape)} on servers",
            hint="trainers and servers must be transpiled from the same network in the same way",
        )


def _root(scope: Scope) -> Scope:
    while scope.parent is not None:
        scope = scope.parent
    return scope


def _cut(value: Array | SelectedRows, sections: list[int]) -> list[Any]:
    """A gradient in blocks of rows; row numbers count from the start of each block."""
    ends = np.cumsum(sections)
    starts = ends - np.asarray(sections)
    if not isinstance(value, SelectedRows):
        return [value[start:end] for start, end in zip(starts, ends, strict=True)]
    rows, array = value.row_array, value.array
    assert array is not None
    of = np.searchsorted(ends, rows, side="right")
    return [SelectedRows(rows[of == j] - starts[j], n, array[of == j]) for j, n in enumerate(sections)]


def _shaped(ctx: Context, ids: list[Array], rows: Array) -> list[Array]:
    first_form = ctx.op.attrs["lookup_table_version"] == "lookup_table"
    outs, at = [], 0
    for number, one in enumerate(ids):
        shape = one.shape[:-1] if first_form else one.shape
        outs.append(rows[at : at + one.size].reshape(*shape, rows.shape[1]))
        at += one.size
        ctx.set_lod("Outputs", ctx.lod("Ids", number), number)
    return outs
