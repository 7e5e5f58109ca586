"""The processes that train one model together, as the trainer sees them."""

from __future__ import annotations

import json
from typing import Any, Final, Protocol

from paddlelike.executor.run import Executor
from paddlelike.framework.graph.program import Program
from paddlelike.hooks import Hook

_connect_workers: Final[Hook[[Program, Executor], Workers]] = Hook("connect_workers")


class Workers(Protocol):
    """The trainers of a job. Every one of them calls :meth:`exchange` at the same place of the training."""

    rank: int
    size: int

    def exchange(self, text: str) -> list[str]:
        """Give a text to all trainers; return those of all, by rank, when every trainer has come here.

        Raises
        ------
        FaultError
            A trainer or a server does not answer in time; names it.
        """


class Alone:
    """One process."""

    rank = 0
    size = 1

    def exchange(self, text: str) -> list[str]:
        """Return its own text."""
        return [text]


def find_workers(program: Program, executor: Executor) -> Workers:
    """Return the trainers of a program: those that share its parameter servers, or this process alone."""
    found = _connect_workers.function(program, executor) if program._is_distributed else None
    return Alone() if found is None else found


def exchange_values(workers: Workers, value: object) -> list[Any]:
    """Exchange values of JSON."""
    return [json.loads(text) for text in workers.exchange(json.dumps(value))]
