"""The interface between operators of distributed programs and the client that carries them out.

The operators are declared in :mod:`paddlelike.ops`; a higher floor implements their work over the network. A
kernel gets it from its context: ``find_remote(ctx).send(ctx, values)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from paddlelike.core import SelectedRows
from paddlelike.errors import UnsupportedError
from paddlelike.framework.opdef import Array, Context

#: Values that workers reduce.
Reduced = TypeVar("Reduced", Array, SelectedRows)


class Remote(Protocol):
    """The servers and workers as operators use them. Attributes and names come from ``ctx.op``."""

    def send(self, ctx: Context, values: list[Any]) -> None:
        """Send values (arrays or SelectedRows), one for each variable in ``X``."""

    def send_barrier(self, ctx: Context) -> None:
        """End the sending of a step: push the gradients to every server, then request that the round is
        applied.
        """

    def recv(self, ctx: Context) -> list[Array]:
        """Return the variables in ``Out``."""

    def fetch_barrier(self, ctx: Context) -> None:
        """Report to the servers that this step has received all values."""

    def prefetch(self, ctx: Context, ids: list[Array]) -> list[Array]:
        """Return, for the ids of each endpoint (n, 1), their rows (n, width)."""

    def lookup(self, ctx: Context, ids: list[Array]) -> list[Array]:
        """Return, for each array of ids, the rows of a table whose blocks are on several servers."""

    def look_up_growing(self, ctx: Context, ids: Array) -> tuple[Array, Array]:
        """Return the rows of distinct ids in a growing table, or the initial rows of new ids.

        Return also the number of shows of each id so far, -1 for ids with rows.
        """

    def serve(self, ctx: Context) -> None:
        """Serve until every trainer has left."""

    def recv_save(self, ctx: Context) -> None:
        """Gather the slices of a variable into a file."""

    def checkpoint_notify(self, ctx: Context) -> None:
        """Let every server save its shard of a table."""

    def close(self) -> None:
        """Report to the servers that this trainer has finished."""


class Workers(Protocol):
    """The workers of a job that trains by collectives, including this process."""

    def join(self, endpoints: Sequence[str], rank: int) -> None:
        """Join the job at these endpoints as worker ``rank``."""

    def check(self, count: int, rank: int) -> None:
        """Raise an error unless this process is worker ``rank`` of ``count``."""

    def refuse_threads(self) -> None:
        """Raise the error for collectives between threads of one process."""

    def reduce(self, ctx: Context, value: Reduced, how: str) -> Reduced:
        """Return the "sum", "max", "min" or "prod" over the workers; sums are there after ``wait``."""

    def broadcast(self, ctx: Context, value: Array, root: int) -> Array:
        """Return the value of worker ``root``."""

    def gather(self, ctx: Context, value: Array, count: int) -> Array:
        """Return the rows of all ``count`` workers."""

    def scatter(self, ctx: Context, value: Array, count: int) -> Array:
        """Return this worker's rows of the sum."""

    def reduce_to_owners(self, values: list[Array], owners: list[int]) -> list[Array]:
        """Replace each value that this worker owns by its sum over all workers; other values are
        unchanged.
        """

    def gather_from_owners(self, values: list[Array], owners: list[int]) -> list[Array]:
        """Return each value as the worker that owns it holds it."""

    def wait(self) -> None:
        """Wait until every array that ``reduce`` returned holds its sum."""


class Switch(Protocol):
    """The service ``"remote"`` that an executor provides to its runs."""

    def open(self) -> Remote:
        """Return the remote operators, connected at the first use."""

    def find_workers(self) -> Workers:
        """Return the workers of the job that this process is in, or joins."""


def find_remote(ctx: Context) -> Remote:
    """Return the remote operators of a run. Raises UnsupportedError when the run has none."""
    return _find_switch(ctx).open()


def find_workers(ctx: Context) -> Workers:
    """Return the workers that a run trains with. Raises UnsupportedError when the run has no connection."""
    return _find_switch(ctx).find_workers()


def _find_switch(ctx: Context) -> Switch:
    switch: Switch | None = ctx.service("remote")
    if switch is None:
        raise UnsupportedError(
            f"operator {ctx.op.type!r} works between processes, and this run is not connected to any",
            hint="run it by fluid.Executor",
        )
    return switch
