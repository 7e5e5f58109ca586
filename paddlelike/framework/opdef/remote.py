"""What operators between trainers and parameter servers ask of the run that they are part of.

The operators are declared in :mod:`paddlelike.ops`; what they do over the network is filled in by a higher
floor. A kernel finds it through its context: ``remote(ctx).send(ctx, values)``.
"""

from __future__ import annotations

from typing import Any, Protocol

from paddlelike.errors import UnsupportedError
from paddlelike.framework.opdef import Array, Context

__all__ = ["Remote", "Switch", "remote"]


class Remote(Protocol):
    """The other end of a distributed program. Attributes and names come from ``ctx.op``."""

    def send(self, ctx: Context, values: list[Any]) -> None:
        """Hand over values (arrays or SelectedRows), one for each variable in ``X``."""

    def send_barrier(self, ctx: Context) -> None:
        """All of this step was sent: push it to every server, then ask for the round to be applied."""

    def recv(self, ctx: Context) -> list[Array]:
        """The variables in ``Out``."""

    def fetch_barrier(self, ctx: Context) -> None:
        """All of this step was received."""

    def prefetch(self, ctx: Context, ids: list[Array]) -> list[Array]:
        """For ids of each endpoint (n, 1) their rows (n, width)."""

    def lookup(self, ctx: Context, ids: list[Array]) -> list[Array]:
        """For each array of ids the rows of a table that lies on servers in blocks."""

    def serve(self, ctx: Context) -> None:
        """Be a server until every trainer has left."""

    def recv_save(self, ctx: Context) -> None:
        """Gather the slices of a variable into a file."""

    def checkpoint_notify(self, ctx: Context) -> None:
        """Have every server save its shard of a table."""

    def close(self) -> None:
        """Tell the servers that this trainer has finished."""


class Switch(Protocol):
    """What an executor lends to its runs as the service ``"remote"``."""

    def open(self) -> Remote:
        """The remote end, set up at the first use."""


def remote(ctx: Context) -> Remote:
    """The remote end of the run of ``ctx``."""
    switch: Switch | None = ctx.service("remote")
    if switch is None:
        raise UnsupportedError(
            f"operator {ctx.op.type!r} works between processes, and this run is not connected to any",
            hint="run it by fluid.Executor",
        )
    return switch.open()
