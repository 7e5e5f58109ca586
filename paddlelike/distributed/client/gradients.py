"""The gradients of one step, which travel to the servers while further ones are computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from paddlelike.core import SelectedRows
from paddlelike.distributed.client.outbox import Outbox, Value, row_counts, value_parts
from paddlelike.distributed.placement import Kind, ServerTable
from paddlelike.distributed.wire import FLUSH, Item, Note
from paddlelike.errors import EnforceNotMet
from paddlelike.foundation.locks import Condition, Lock

#: From this many bytes for one server on, gradients are sent before the step is over. Each send costs two
#: threads some 50 microseconds, so small gradients wait for others, or for the barrier.
EARLY: Final = 1 << 20
_ALIVE: Final = 10.0  # seconds without a gradient after which the server hears that more will come


class Abandoned(Exception):  # noqa: N818  (ends the calls of a step; nobody else sees it)
    """The step ended before its push was complete."""


class Gradients:
    """The gradients of one step by server, and the push that sends them.

    One thread adds gradients; a thread for each server sends them. Gradients are kept until the step is over,
    so that a failed call can be repeated from the beginning.

    Parameters
    ----------
    tables
        The variables that each server serves.
    """

    def __init__(self, tables: Sequence[ServerTable]) -> None:
        self._tables = tables
        self.outboxes: list[Outbox] = [{} for _ in tables]
        self._lock = Lock()
        self._changed = [Condition(self._lock) for _ in tables]  # each wakes one thread
        self._sizes = [0 for _ in tables]  # bytes put so far
        self._taken = [0 for _ in tables]  # those that a push has begun to send
        self._is_open = True
        self._is_abandoned = False
        self.has_begun = False  # a push has begun to send them

    @property
    def is_sending(self) -> bool:
        """Whether a push is sending the gradients: it has begun, and no other goal has ended it."""
        return self.has_begun and not self._is_abandoned

    def __bool__(self) -> bool:
        return any(self.outboxes)

    def is_at_most(self, size: int) -> bool:
        """Return whether there are at most ``size`` bytes for any server."""
        return max(self._sizes, default=0) <= size

    def put(self, server: int, index: int, value: Value) -> bool:
        """Add a gradient for a server. Return whether there is enough data to send some now."""
        array = value.held_array if isinstance(value, SelectedRows) else value
        size = 0 if array is None else array.nbytes
        if not self.has_begun:
            self.outboxes[server][index] = value
            self._sizes[server] += size
            return self._sizes[server] >= EARLY
        with self._lock.hold():
            self.outboxes[server][index] = value
            self._sizes[server] += size
            if self._has_enough(server):  # waking a thread for less costs more than sending it later
                self._changed[server].notify_all()
        return True

    def check_whole(self, endpoints: Sequence[str]) -> None:
        """Raise EnforceNotMet unless every gradient that a server waits for was put."""
        for endpoint, table, outbox in zip(endpoints, self._tables, self.outboxes, strict=True):
            missing = [e.name for e in table.having(Kind.GRADIENT) if e.index not in outbox]
            if missing:
                raise EnforceNotMet(
                    f"this step does not send {', '.join(missing[:5])} to the server at {endpoint}, which "
                    "waits for it",
                    hint="every run of the trainer's program must compute and send every gradient",
                )

    def receiving_servers(self) -> list[int]:
        """Return the indexes of the servers that receive gradients."""
        return [i for i, table in enumerate(self._tables) if table.having(Kind.GRADIENT)]

    def close(self) -> None:
        """Record that no further gradients will follow."""
        with self._lock.hold():
            self._is_open = False
            self._notify()

    def abandon(self) -> None:
        """End the calls that send gradients; the step is not completed."""
        with self._lock.hold():
            self._is_abandoned = True
            self._notify()

    def wait_until_closed(self, server: int) -> None:
        """Wait until no further gradients will follow. Raises Abandoned."""
        with self._lock.hold():
            self._changed[server].wait_for(lambda: not self._is_open or self._is_abandoned)
            self._check()

    def start(self, server: int) -> tuple[tuple[tuple[int, int], ...], Iterator[Item]]:
        """Return the row counts known now, for the header of a push, and everything that it sends."""
        with self._lock.hold():
            self._taken[server] = 0
            rows = row_counts(self.outboxes[server])
        return rows, self._yield_items(server, {index for index, _ in rows})

    def _yield_items(self, server: int, announced: set[int]) -> Iterator[Item]:
        """Yield the gradients for a server as they come. Raises Abandoned.

        If the header does not contain the number of selected rows, a note with their count precedes them.
        """
        outbox = self.outboxes[server]
        count = 0
        while True:
            with self._lock.hold():
                self._check()
                new = list(islice(outbox.items(), count, None))
                self._taken[server], is_open = self._sizes[server], self._is_open
            for index, value in new:
                if isinstance(value, SelectedRows) and index not in announced:
                    yield Note({"rows": [[index, len(value.row_array)]]})
                yield from value_parts(index, value)
            count += len(new)
            if not is_open:
                return
            yield FLUSH
            while not self._wait_for_more(server):
                yield FLUSH  # the server hears that this call is alive

    def _wait_for_more(self, server: int) -> bool:
        """Wait for enough data or the last part; return False if none came for some seconds. Raises
        Abandoned.
        """
        with self._lock.hold():
            found = self._changed[server].wait_for(
                lambda: self._has_enough(server) or not self._is_open or self._is_abandoned, _ALIVE
            )
            self._check()
            return found

    def _has_enough(self, server: int) -> bool:
        return self._sizes[server] - self._taken[server] >= EARLY

    def _notify(self) -> None:
        for changed in self._changed:
            changed.notify_all()

    def _check(self) -> None:
        if self._is_abandoned:
            raise Abandoned
