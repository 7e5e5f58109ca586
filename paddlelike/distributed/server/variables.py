"""The variables of a server: read for trainers, updated by the blocks of the server's program.

In synchronous training only the thread that runs the program writes them, and no thread reads meanwhile. In
asynchronous training several threads run the blocks of parameters; a lock for each parameter excludes readers
while its block runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from paddlelike.core import Array, LoDTensor, SelectedRows
from paddlelike.distributed.placement import DELTA, Entry, Kind
from paddlelike.distributed.server.fused_updates import FusedUpdate, find_fused_update
from paddlelike.distributed.server.grouped_updates import find_groups
from paddlelike.distributed.server.served import Lookup, Served
from paddlelike.distributed.server.staging import Contribution
from paddlelike.distributed.wire import as_bytes
from paddlelike.errors import EnforceNotMet, FrameError, NotInitializedError
from paddlelike.foundation.locks import Lock, RLock
from paddlelike.framework.opdef import Context
from paddlelike.framework.passes.views import collect_writes
from paddlelike.ops.kernels.growing_rows import GrowingRows, edit_table


class Variables:
    """The variables of one server in the scope of its run.

    Parameters
    ----------
    ctx
        The run of the server's ``listen_and_serv``.
    served
        The variables that the operator serves.

    Raises
    ------
    NotInitializedError
        A variable has no value; names the endpoint.
    """

    def __init__(self, ctx: Context, served: Served) -> None:
        self._ctx = ctx
        self._served = served
        self.guards = {} if served.is_synchronous else _guards(served)
        self._fused = _find_fused_updates(served) if served.is_synchronous else {}
        #: Parameters that are updated together; their gradients lie behind one another in the staging.
        self.groups = find_groups(served, self._fused)
        self._schedule = Lock()  # one block for all trainers
        self._updates = 0  # by geo-SGD
        self._touched: dict[str, Array] = {}  # by table, the number of the last update of each row
        self._finding = RLock()  # places in tables, in synchronous training
        self._bytes: dict[int, tuple[Array, memoryview]] = {}  # by index of the entry; rarely changes
        self._check_values()
        self._start_counters()

    # Reading

    def value(self, entry: Entry) -> Array:
        """Return the array of a variable, not a copy.

        Raises
        ------
        EnforceNotMet
            The value in the scope is not of the declared kind.
        """
        value = self._find_value(entry)
        if isinstance(value, np.ndarray) and value.shape == () and entry.shape == (1,):
            return value.reshape(1)  # as in Fluid, scripts may set a learning rate as a number without dims
        if not isinstance(value, np.ndarray) or tuple(value.shape) != entry.shape:
            found = f"shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
            raise EnforceNotMet(
                f"{entry.name!r} on the server at {self._served.endpoint}: expected shape {entry.shape}, "
                f"got {found}"
            )
        return value

    def bytes_of(self, entry: Entry) -> memoryview:
        """Return the bytes of :meth:`value`, as they are in memory."""
        array = self.value(entry)
        known = self._bytes.get(entry.index)
        if known is None or known[0] is not array:
            known = self._bytes[entry.index] = array, as_bytes(array)
        return known[1]

    def shard(self, entry: Entry) -> tuple[Array, Array]:
        """Return the known ids of a table sharded by id, and all its rows, including unused ones."""
        value = self._find_value(entry)
        assert isinstance(value, SelectedRows)
        with self.guard(entry.name) if entry.kind == Kind.GROWING else contextlib.nullcontext():
            whole = value.gather()
            assert whole.held_array is not None
            if whole is value and entry.kind == Kind.GROWING and self.guards:  # updates go on meanwhile
                return whole.row_array.copy(), whole.held_array.copy()
            return whole.row_array, whole.held_array

    def rows(self, table: str, ids: Array) -> Array:
        """Return the rows (n, width) of ids (n,) in a table that is cut into blocks of rows.

        Raises
        ------
        FrameError
            An id is outside of the table.
        """
        entry = self._served.table[table]
        if ids.size and not (ids.min() >= 0 and ids.max() < entry.shape[0]):
            raise FrameError(
                f"ids go from {ids.min()} to {ids.max()}; table {table!r} has {entry.shape[0]} rows"
            )
        with self._hold_guard(table):
            return self.value(entry)[ids]

    def find_growing(self, name: str) -> GrowingRows:
        """Return a growing table, its counts or its state."""
        value = self._find_value(self._served.table[name])
        if not isinstance(value, GrowingRows):
            raise EnforceNotMet(
                f"{name!r} on the server at {self._served.endpoint} is not a growing table",
                hint="run its startup program first: t.get_startup_program(endpoint, pserver_program)",
            )
        return value

    def _hold_guard(self, name: str) -> contextlib.AbstractContextManager[Any]:
        found = self.guards.get(name)
        return contextlib.nullcontext() if found is None else found.hold()

    def guard(self, name: str) -> contextlib.AbstractContextManager[Any]:
        """Return the lock of a growing table."""
        return self.guards.get(name, self._finding).hold()

    def grown(self, table: str, ids: Array) -> Array:
        """Return the rows of ids in a growing table, or the initial rows of new ids, and one column of its
        state.

        The column holds the number of shows of each id so far, -1 for ids with rows.
        """
        with self.guard(table):
            rows, counts = self.find_growing(table), self.find_growing(self._served.growing[table][0])
            places, known = rows.find_rows(ids), counts.find_rows(ids)
            held, counted = rows.held_array, counts.held_array
            assert held is not None
            assert counted is not None
            out = np.zeros((len(ids), held.shape[1] + 1), held.dtype)
            there = places >= 0
            out[known >= 0, -1] = counted[known[known >= 0], 0]
            out[there, :-1], out[there, -1] = held[places[there]], -1
            out[~there, :-1] = rows.make_rows(ids[~there])
            return out

    def find_touched(self, since: int) -> tuple[int, dict[str, list[int]]]:
        """Return the number of the last update by geo-SGD, and the rows updated after ``since``, by table."""
        with self._schedule.hold():
            found = {name: np.flatnonzero(numbers > since) for name, numbers in self._touched.items()}
            return self._updates, {name: rows.tolist() for name, rows in found.items() if len(rows)}

    def edit_tables(self, request: Mapping[str, Any]) -> dict[str, dict[str, float]]:
        """Shrink, clear, count or copy the growing tables, as ``request["do"]`` says.

        Return a number for each table; ``count`` returns several, by name.
        """
        answer: dict[str, dict[str, float]] = {}
        if request["do"] == "copy":
            target = request["to"]
            with self.guard(request["only"]):
                copied = self.find_growing(request["only"]).gather()
                ids, values = copied.row_array.copy(), np.array(copied.held_array)
            with self.guard(target):
                self.find_growing(target).adopt(ids, values)
                for state in self._served.growing[target][1:]:
                    self.find_growing(state).follow(self.find_growing(target))
            return answer
        how = {key: value for key, value in request.items() if key not in ("do", "only")}
        for name, others in self._served.growing.items():
            if request["only"] not in (None, name):
                continue
            with self.guard(name):
                table, counts, *states = map(self.find_growing, (name, *others))
                answer[name] = edit_table(request["do"], table, counts, states, **how)
        return answer

    def run_lookup(self, lookup: Lookup, ids: Array) -> Array:
        """Return the rows of ids in a table that is sharded by id, by running its block; new ids get rows."""
        with self._hold_guard(lookup.table):
            self._ctx.write(lookup.ids, ids.reshape(-1, 1))
            self._ctx.run_block(lookup.block)
            rows: Array = np.ascontiguousarray(self._ctx.read(lookup.rows))
        return rows

    # Updating

    def apply_round(self, contributions: Mapping[int, Contribution]) -> None:
        """Apply all gradients of all trainers: the schedule first, then every block of the program in order.

        Raises
        ------
        FrameError
            A contribution lacks a gradient.
        """
        served, ctx = self._served, self._ctx
        given = {trainer: one.finish(whole=True) for trainer, one in contributions.items()}
        ordered = [contributions[trainer] for trainer in sorted(contributions)]
        if served.schedule > 0:
            ctx.run_block(served.schedule)
        done = {block for group in self.groups if group.run(ctx, ordered) for block in group.blocks}
        merged = {key: value for one in ordered for key, value in one.others.items()}
        for entry in served.table.having(Kind.GRADIENT):
            if served.blocks[entry.name] in done:
                continue
            names = served.inputs[entry.name] or {0: entry.name}
            for trainer, name in names.items():  # None: a trainer that has left, or was merged, adds nothing
                ctx.write(
                    name,
                    given[trainer][entry.index] if trainer in given else merged.get((trainer, entry.index)),
                )
        sums = {block: name for name, block in served.blocks.items()}
        for index in served.op.attrs["optimize_blocks"]:
            if index == served.schedule or index in done:  # Fluid lists the schedule among them
                continue
            self._run_update(index)
            if index in sums:
                ctx.write(sums[index], None)  # its memory is the next sum's

    def _run_update(self, index: int) -> None:
        """Run the block of a parameter."""
        fused = self._fused.get(index)
        if fused is None or not fused.run(self._ctx):
            self._ctx.run_block(index)

    def apply_update(self, trainer: int, contribution: Contribution) -> None:
        """Apply one trainer's push: its step for the schedule, then each gradient by its own block.

        Several threads may do so at once; each parameter has a lock.

        Raises
        ------
        FrameError
            A gradient has come in part.
        """
        served, ctx = self._served, self._ctx
        given = contribution.finish(whole=False)
        if served.schedule > 0 and not served.counters:  # a parameter's own learning rate, without steps
            with self._schedule.hold():
                ctx.run_block(served.schedule)
        for entry in served.table.having(Kind.COUNTER):
            if entry.index in given:
                name = served.counters[entry.name][trainer]
                with self._schedule.hold():
                    ctx.write(name, ctx.read(name) + given[entry.index])
                    ctx.run_block(served.schedule)
        gradients = served.table.having(Kind.GRADIENT)
        for entry in sorted(gradients, key=lambda one: served.blocks[one.name]):  # rows, then their updates
            if entry.index in given:
                with self.guards[served.parameters[entry.name]].hold():
                    ctx.write(served.contribution(entry.name, trainer), given[entry.index])
                    ctx.run_block(served.blocks[entry.name])
                    rows = given[entry.index]
                    if entry.name.endswith(DELTA) and isinstance(rows, SelectedRows):
                        self._touch(served.parameters[entry.name], rows)

    def _touch(self, table: str, rows: SelectedRows) -> None:
        """Record which rows of a table a geo-SGD trainer has updated."""
        with self._schedule.hold():
            self._updates += 1
            if table not in self._touched:
                self._touched[table] = np.zeros(rows.height(), np.int64)
            self._touched[table][rows.row_array] = self._updates

    def reread(self) -> None:
        """Make the run use values that were set in its scope from outside."""
        for entry in self._served.table:
            value = self._find_value(entry)
            if entry.kind != Kind.GRADIENT and value is not None:
                self._ctx.write(entry.name, value)

    # Helpers

    def _find_value(self, entry: Entry) -> Array | SelectedRows | None:
        holder = self._ctx.scope.find_var(entry.name)
        value = None if holder is None else holder.value
        return value.held_array if isinstance(value, LoDTensor) else value

    def _check_values(self) -> None:
        computed = self._served.computed
        wanted = [e for e in self._served.table if e.kind != Kind.GRADIENT and e.name not in computed]
        missing = [e.name for e in wanted if self._find_value(e) is None]
        if missing:
            raise NotInitializedError(
                f"the server at {self._served.endpoint} has no values of {', '.join(missing[:5])}"
                f"{f' and {len(missing) - 5} others' if len(missing) > 5 else ''}",
                hint="run its startup program first: t.get_startup_program(endpoint, pserver_program)",
            )

    def _start_counters(self) -> None:
        """Let the steps of all trainers together continue from the saved counter.

        In a new job the first step is step 0, as in training without servers. (Fluid begins with the number
        of trainers, since each trainer's count starts at 1.)
        """
        for counter, names in self._served.counters.items():
            done = max(int(self._ctx.read(counter)[0]), -1)
            for trainer, name in names.items():
                counted = done if trainer == min(names) else 0
                self._ctx.write(name, np.full_like(self._ctx.read(name), counted))


def _guards(served: Served) -> dict[str, RLock]:
    """Return a lock for each variable; blocks that write the same variable share one lock."""
    guards: dict[str, RLock] = {}
    for gradient, index in served.blocks.items():
        names = {served.parameters[gradient], gradient, *served.inputs[gradient].values()}
        for op in served.op.block.program.blocks[index].ops:
            names |= collect_writes(op)
        shared = {guards[name] for name in names & guards.keys()}
        lock = RLock()
        guards |= dict.fromkeys([name for name, one in guards.items() if one in shared], lock)
        guards |= dict.fromkeys(names, lock)
    return guards


def _find_fused_updates(served: Served) -> dict[int, FusedUpdate]:
    """Return the blocks that can be run in one pass, with their updates."""
    blocks = served.op.block.program.blocks
    found = {index: find_fused_update(blocks[index]) for index in served.blocks.values()}
    return {index: one for index, one in found.items() if one is not None}
