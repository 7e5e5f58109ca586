"""fleet's methods for growing tables: shrink, count, clear, save and load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from paddlelike.core import Scope, global_scope, scope_guard
from paddlelike.distributed import growing_tables
from paddlelike.distributed.fleet.base import Fleet
from paddlelike.errors import GraphError
from paddlelike.executor import Executor
from paddlelike.framework import Program

Answer = TypeVar("Answer")

#: By ``mode`` of Paddle's saves: a whole save, a base of chains of deltas, a delta.
DELTAS: dict[int, dict[str, Any]] = {0: {}, 1: {"delta": "base"}, 2: {"delta": True}}


class TableFleet(Fleet):
    """A fleet whose servers work on growing tables, given by name or index.

    Every trainer calls these methods at the same place. Trainer 0 calls the servers; the others wait for it.
    """

    main_program: Program | None
    _executor: Executor
    _scope: Scope | None = None  # of the training; None: the global one

    def _join_trainers(self, program: Program) -> None:
        """Let the role maker's barriers and reductions run through the servers."""
        from paddlelike.distributed.client.trainers import find_client, find_trainer_id  # late: needs a wire

        block = program.global_block()
        self._role._exchange_texts = lambda text: find_client(
            self._scope or global_scope(), find_trainer_id(block), block
        ).exchange(text)

    def shrink(self, threshold: float | None = None, **how: Any) -> dict[str, int]:
        """End a day: see :func:`paddlelike.distributed.growing_tables.shrink`."""
        return self._together(lambda program: growing_tables.shrink(threshold, program, **how)) or {}

    def clear_model(self) -> None:
        """Forget all rows of all tables."""
        self._together(growing_tables.clear)

    def print_table_stat(self, table: int | str) -> dict[str, float]:
        """Print and return the statistics of a table on the servers."""
        name = self._name(table)
        found = self._together(lambda program: growing_tables.print_table_stat(program, name))
        return (found or {}).get(name, {})

    def save_one_table(self, table: int | str, path: str, mode: int = 0) -> None:
        """Save a table with its counters and its state."""
        save = growing_tables.save_one_table
        self._together(lambda program: save(self._executor, self._name(table), path, program, **DELTAS[mode]))

    def load_one_table(self, table: int | str, path: str, mode: int = 0) -> None:
        """Let the servers load a table that ``save_one_table`` or ``save_persistables`` saved."""
        load = growing_tables.load_one_table
        self._together(lambda program: load(self._executor, self._name(table), path, program))

    def _together(self, ask: Callable[[Program], Answer]) -> Answer | None:
        """Return the servers' answer to trainer 0; the other trainers wait and get None."""
        if self.main_program is None:
            raise GraphError(
                "fleet has no programs yet", hint="fleet.distributed_optimizer(...).minimize(loss) makes them"
            )
        self.barrier_worker()
        try:
            return self._ask(ask) if self.is_first_worker() else None
        finally:
            self.barrier_worker()

    def _ask(self, ask: Callable[[Program], Answer]) -> Answer:
        assert self.main_program is not None
        with scope_guard(self._scope or global_scope()):
            return ask(self.main_program)

    def _name(self, table: int | str) -> str:
        assert self.main_program is not None
        return growing_tables.find_name(table, self.main_program)
