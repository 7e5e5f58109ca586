"""The interface between operators of distributed programs and the client that carries them out.

The operators are declared in :mod:`paddlelike.ops`; a higher floor implements what they do over the
network. A kernel finds it through its context: ``find_remote(ctx).send(ctx, values)``.
"""

from __future__ import annotations

from typing import Any, Protocol

from paddlelike.errors import UnsupportedError
from paddlelike.framework.opdef import Array, Context

__all__ = ["Remote", "Switch", "find_remote"]


class Remote(Protocol):
    """The other end of a distributed program. Attributes and names come from ``ctx.op``."""

    def send(self, ctx: Context, values: list[Any]) -> None:
        """Send values (arrays or SelectedRows), one for each variable in ``X``."""

    def send_barrier(self, ctx: Context) -> None:
        """End the sending of a step: push it to every server, then ask for the round to be applied."""

    def recv(self, ctx: Context) -> list[Array]:
        """Return the variables in ``Out``."""

    def fetch_barrier(self, ctx: Context) -> None:
        """End the receiving of a step."""

    def prefetch(self, ctx: Context, ids: list[Array]) -> list[Array]:
        """Return, for the ids of each endpoint (n, 1), their rows (n, width)."""

    def lookup(self, ctx: Context, ids: list[Array]) -> list[Array]:
        """Return, for each array of ids, the rows of a table whose blocks are on several servers."""

    def serve(self, ctx: Context) -> None:
        """Serve until every trainer has left."""

    def recv_save(self, ctx: Context) -> None:
        """Gather the slices of a variable into a file."""

    def checkpoint_notify(self, ctx: Context) -> None:
        """Have every server save its shard of a table."""

    def close(self) -> None:
        """Tell the servers that this trainer has finished."""


class Switch(Protocol):
    """The service ``"remote"`` that an executor provides to its runs."""

    def open(self) -> Remote:
        """Return the remote end, connected at the first use."""


def find_remote(ctx: Context) -> Remote:
    """Return the remote end of a run; raise UnsupportedError when the run has none."""
    switch: Switch | None = ctx.service("remote")
    if switch is None:
        raise UnsupportedError(
            f"operator {ctx.op.type!r} works between processes, and this run is not connected to any",
            hint="run it by fluid.Executor",
        )
    return switch.open()
