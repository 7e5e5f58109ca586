"""The client of the parameter servers: one trainer's verbs, named as in the protocol.

Gradients are staged one by one and pushed together, once per server and step. Parameters come back straight
into the arrays that :meth:`Client.parameter` returns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from paddlelike.distributed.client.background import Background
from paddlelike.distributed.client.calls import Exchange
from paddlelike.distributed.client.driver import SMALL
from paddlelike.distributed.client.gradients import Gradients
from paddlelike.distributed.client.outbox import Outbox, Value, fit_gradient, outbox_parts, row_counts
from paddlelike.distributed.client.transfers import Transfers
from paddlelike.distributed.placement import Entry, Kind, base_name
from paddlelike.distributed.protocol.messages import Prefetch, Push
from paddlelike.distributed.settings import Settings
from paddlelike.distributed.wire import Into, Part, as_bytes
from paddlelike.errors import RoundRolledBack

Array = np.ndarray[Any, Any]


class Client(Transfers):
    """One trainer of a job.

    Only one thread at a time may call its methods. Every method that calls servers raises FaultError if the
    job is lost, and RoundRolledBack if the servers went back to a save instead.

    Parameters
    ----------
    trainer
        The trainer's id.
    endpoints
        All servers of the job.
    before
        The interrupted client of the same trainer and process, which this client replaces.

    Attributes
    ----------
    follows_rollbacks
        Whether the training loop goes back when the servers do (:func:`resumable_steps`).
    step_discarded
        Whether the rest of the current step is discarded, because the servers went back.
    parameters_stale
        Whether the scope still holds parameters from before the servers went back.

    Raises
    ------
    FaultError
        A server does not answer in time; names its endpoint.
    """

    def __init__(
        self,
        trainer: int,
        endpoints: Sequence[str],
        settings: Settings | None = None,
        *,
        before: Client | None = None,
    ) -> None:
        super().__init__(trainer, endpoints, settings)
        self._received: set[tuple[int, int]] = set()  # parameters copied to the scope since the last pull
        self._background: Background | None = None
        self._has_left = False
        self.follows_rollbacks = False
        self.step_discarded = False
        self.parameters_stale = False
        try:
            self._join()
            state = self.driver.state
            self._continues = before is not None and before.driver.state.servers == state.servers
            self._gradients = Gradients(self.tables)
        except BaseException:  # such as Ctrl-C
            self.driver.disconnect()
            raise

    @property
    def is_closed(self) -> bool:
        """Whether this trainer has left, or an interrupt in a call made another client take its place."""
        return self._has_left or self.driver.was_interrupted

    # A training step

    def stage(self, endpoint: str, name: str, value: Value) -> None:
        """Add a gradient (or a block of its rows) to the next push to a server.

        A push begins as soon as there is enough data to send, and sends further gradients as they are staged.

        Raises
        ------
        GraphError
            The server does not know it, or expects another shape or element type.
        """
        server, entry = self.find_entry(endpoint, base_name(name))
        self.stage_entry(server, entry, name, value)

    def stage_entry(self, server: int, entry: Entry, name: str, value: Value) -> None:
        """Stage a gradient as :meth:`stage` does, for the result of :meth:`find_entry`."""
        if self.step_discarded:
            return
        if self.parameters_stale:
            raise self._make_rollback_error()
        value = fit_gradient(entry, name, value, self.endpoints[server])
        if self._background is not None:
            self._background.put(server, entry, value)
            return
        if entry.index in self._gradients.outboxes[server]:  # the previous step never reached its barrier
            self._clear_gradients() if self.mode == "sync" else self.push()
        if self._gradients.put(server, entry.index, value) and not self._gradients.has_begun:
            self._begin_push()

    def push(self) -> None:
        """Push the staged gradients; in synchronous training, end the step.

        A synchronous step pushes to all servers, commits the round and pulls its parameters.

        Raises
        ------
        EnforceNotMet
            A gradient that a server waits for was not staged.
        """
        if self.mode != "sync":
            if self._gradients:
                self._check(self._push_gradients())
                self._clear_gradients()
            return
        if not self.step_discarded:
            self._gradients.check_whole(self.endpoints)
            self._check(self._push_gradients(), in_step=True)
        self._clear_gradients()
        if not self.step_discarded:
            is_small = self.driver.has_small_values
            reached = self.driver.reach(lambda state, now: state.commit(now), is_small=is_small)
            self._check(reached, in_step=True)
            self._received.clear()

    def parameter(self, endpoint: str, name: str) -> Array:
        """Return the newest values of a parameter, in an array that later rounds overwrite."""
        return self.find_values(*self.find_entry(endpoint, name))

    def find_values(self, server: int, entry: Entry) -> Array:
        """Return a value as :meth:`parameter` does, for the result of :meth:`find_entry`."""
        key = server, entry.index
        if entry.index not in self.driver.values[server]:
            return self.pull([(self.endpoints[server], entry.name)])[0]
        if self._background is not None:
            self._background.end_step()
        elif not self.step_discarded and (self._gradients or key in self._received):
            self.pull_parameters()
        self._received.add(key)
        self.parameters_stale = False
        return self.driver.values[server][entry.index]

    def pull_parameters(self) -> None:
        """Push the staged gradients and pull all parameters."""
        if self._gradients:
            self.push()
            if self.mode == "sync":
                return
        self._check(self._pull_parameters())
        self._received.clear()

    def prefetch(self, wanted: Sequence[tuple[str, str, Array]]) -> list[Array]:
        """Fetch rows of tables: (endpoint, table, ids (n,)), at most one for a server -> (n, width) each."""
        tables: dict[int, str] = {}
        ids: dict[int, Array] = {}
        rows: dict[int, Array] = {}
        found = []
        for endpoint, name, asked in wanted:
            server, entry = self.find_entry(endpoint, name)
            width = entry.shape[1] + (entry.kind == Kind.GROWING)  # with a column of how often ids were shown
            found.append(np.zeros((len(asked), width), entry.numpy_dtype))
            if asked.size:
                assert server not in ids, "two tables of one server at once"
                tables[server], rows[server] = name, found[-1]
                ids[server] = np.ascontiguousarray(asked, np.int64)

        def exchange(server: int, request: Prefetch, is_direct: bool) -> Exchange:
            return Exchange(request, [Part(0, 0, as_bytes(ids[server]))], Into({0: rows[server]}))

        if not self.step_discarded:
            asks = [(tables[i], len(ids[i])) if i in ids else None for i in range(len(self.endpoints))]
            reached = self.driver.reach(lambda state, now: state.prefetch(now, asks), exchange)
            self._check(reached, in_step=True)
        return found

    def run_in_background(self, background: Background | None) -> None:
        """Start a thread that pushes gradients of many steps and pulls parameters. None ends the thread."""
        before, self._background = self._background, background
        if before is not None:
            before.stop()
        if background is not None:
            self.push()
            background.start(self._push_sums, self._pull_in_background, len(self.endpoints))

    def flush(self) -> None:
        if self._background is not None:
            self._background.flush()

    # Leaving

    def close(self) -> None:
        """Push staged gradients and tell every server that this trainer has finished, unless the job is lost.

        Raises
        ------
        RoundRolledBack
            The servers went back meanwhile: restart this process to train the steps again.
        """
        try:
            if not self.driver.is_lost:
                self.run_in_background(None)
                if self.mode != "sync":
                    self.push()
                self._check(self.driver.reach(lambda state, now: state.complete(now)))
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Leave without notifying the servers, like a killed process."""
        self._has_left = True
        if self._background is not None:
            self._background.abandon()
        self.driver.disconnect()

    # Goals of the protocol; each returns whether it was reached

    def _begin_push(self) -> None:
        """Start threads that push staged and later gradients: to all servers; in async mode, to some."""
        gradients, follows = self._gradients, self.follows_rollbacks or self._continues

        def exchange(server: int, request: Push, is_direct: bool) -> Exchange:
            if not is_direct:  # gRPC would end a call that pauses for long
                gradients.wait_until_closed(server)
            rows, items = gradients.start(server)
            return Exchange(dataclasses.replace(request, rows=rows), items)

        servers = None if self.mode == "sync" else gradients.receiving_servers()
        gradients.has_begun = True
        self.driver.begin(
            lambda state, now: state.push(now, servers, follows_servers=follows), exchange, gradients.abandon
        )

    def _push_gradients(self) -> bool:
        """Push all staged gradients that are not pushed yet."""
        if not self._gradients.is_sending:
            return self._push(self._gradients.outboxes, is_small=self._gradients.is_at_most(SMALL))
        self._gradients.close()
        return self.driver.finish()

    def _push(self, outboxes: Sequence[Outbox], *, is_small: bool = False) -> bool:
        """Push to all servers in synchronous training, otherwise to the servers that receive a gradient."""

        def exchange(server: int, request: Push, is_direct: bool) -> Exchange:
            request = dataclasses.replace(request, rows=row_counts(outboxes[server]))
            return Exchange(request, outbox_parts(outboxes[server]))

        servers = None if self.mode == "sync" else [i for i, outbox in enumerate(outboxes) if outbox]
        follows = self.follows_rollbacks or self._continues
        return servers == [] or self.driver.reach(
            lambda state, now: state.push(now, servers, follows_servers=follows), exchange, is_small=is_small
        )

    def _pull_parameters(self) -> bool:
        everything = [None for _ in self.endpoints]
        return self.driver.reach(lambda state, now: state.pull(now, everything))

    def _push_sums(self, outboxes: Sequence[Outbox]) -> None:
        """Push the sums of gradients in the background thread. Raises RoundRolledBack."""
        if not self._push(outboxes):
            raise self._make_rollback_error()

    def _pull_in_background(self) -> None:
        """Pull all parameters in the background thread. Raises RoundRolledBack."""
        if not self._pull_parameters():
            raise self._make_rollback_error()

    # Checks

    def _check(self, reached: bool, *, in_step: bool = False) -> None:
        """Record that the servers have rolled back to a save.

        Within a step (``in_step``) of a loop over :func:`resumable_steps`, discard the rest of the step.
        Elsewhere, as in a save, raise RoundRolledBack.
        """
        if reached:
            return
        self._clear_gradients()
        self._received.clear()
        self.parameters_stale = True
        if not (self.follows_rollbacks and in_step):
            raise self._make_rollback_error()
        self.step_discarded = True

    def _make_rollback_error(self) -> RoundRolledBack:
        return RoundRolledBack(
            f"the servers went back to step {self.round}",
            step=self.round,
            hint="a loop over resumable_steps continues from there; else run the startup program again first",
        )

    def _clear_gradients(self) -> None:
        if self._gradients.is_sending and not self.driver.withdraw():
            self.parameters_stale = True
        self._gradients = Gradients(self.tables)
