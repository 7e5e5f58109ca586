"""The roles of processes, and the base of role makers."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.foundation.warn import warn_user

if TYPE_CHECKING:
    from paddlelike.core import Array

_REDUCTIONS: Final[Mapping[str, Callable[..., Any]]] = {"sum": np.sum, "max": np.max, "min": np.min}


class Role(IntEnum):
    """The roles of processes."""

    WORKER = 1
    SERVER = 2


class RoleMakerBase:
    """The base of role makers; subclasses determine the role in ``generate_role``.

    It sets ``_role``, ``_current_id``, ``_server_endpoints``, ``_worker_endpoints`` and ``_trainers_num``.
    """

    def __init__(self) -> None:
        self._role: Role | None = None
        self._current_id = -1
        self._server_endpoints: list[str] = []
        self._worker_endpoints: list[str] = []
        self._trainers_num = 0
        self._role_is_generated = False
        self._exchange_texts: Callable[[str], list[str]] | None = None  # set by fleet, for its trainers

    def generate_role(self) -> None:
        """Determine the role; called once, by ``fleet.init`` or by the first query.

        Raises NotImplementedError where a subclass does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no generate_role()")

    def _generated(self) -> RoleMakerBase:
        if not self._role_is_generated:
            self.generate_role()
            self._role_is_generated = True
        return self

    def is_worker(self) -> bool:
        """Return whether this process is a trainer."""
        return self._generated()._role == Role.WORKER

    def is_server(self) -> bool:
        """Return whether this process is a server."""
        return self._generated()._role == Role.SERVER

    def is_first_worker(self) -> bool:
        """Return whether this process is trainer 0, which saves."""
        return self.is_worker() and self._current_id == 0

    def worker_index(self) -> int:
        """Return the id of this trainer; on a server, its index."""
        return self._generated()._current_id

    def server_index(self) -> int:
        """Return the index of this server; on a trainer, its id."""
        return self._generated()._current_id

    def worker_num(self) -> int:
        """Return the number of trainers."""
        return self._generated()._trainers_num

    def server_num(self) -> int:
        """Return the number of servers."""
        return len(self._generated()._server_endpoints)

    def get_trainer_endpoints(self) -> list[str]:
        """Return the trainers' endpoints, if the job names them."""
        return self._generated()._worker_endpoints

    def get_pserver_endpoints(self) -> list[str]:
        """Return the servers' endpoints."""
        return self._generated()._server_endpoints

    def to_string(self) -> str:
        """Return the role as text, in Fluid's form."""
        return (
            f"role: {self._role}, current_id: {self._current_id}, "
            f"worker_endpoints: {self._worker_endpoints}, server_endpoints: {self._server_endpoints}"
        )

    def barrier_worker(self) -> None:
        """Wait until every trainer calls this. Servers do nothing; without a fleet it only warns."""
        self._exchange("barrier_worker", "")

    def barrier_all(self) -> None:
        """Wait as :meth:`barrier_worker` does: servers serve until all trainers have left."""
        self._exchange("barrier_all", "")

    def all_gather(self, input: Any) -> list[Any] | None:  # noqa: A002  (Fluid's name)
        """Return the numbers or texts of all trainers, by trainer id. Waits as :meth:`barrier_worker`
        does.
        """
        found = self._exchange("all_gather", json.dumps(input))
        return None if found is None else [json.loads(one) for one in found]

    def all_reduce_worker(self, input: Array, output: Array, mode: str = "sum") -> None:  # noqa: A002
        """Put the sum, max or min of all trainers' arrays into ``output``. Waits for all trainers, as
        :meth:`barrier_worker` does.

        Raises ValueError for any other ``mode``.
        """
        if mode not in _REDUCTIONS:
            raise ValueError(f"all_reduce_worker: mode is sum, max or min, not {mode!r}")
        mine = np.ascontiguousarray(input)
        found = self._exchange("all_reduce_worker", base64.b64encode(mine.tobytes()).decode())
        if found is not None:
            arrays = [np.frombuffer(base64.b64decode(one), mine.dtype).reshape(mine.shape) for one in found]
            output[:] = _REDUCTIONS[mode](arrays, axis=0)

    # By the names of 1.8.5's own callers, which scripts use as well.

    def _barrier_worker(self) -> None:
        self.barrier_worker()

    def _barrier_all(self) -> None:
        self.barrier_all()

    def _all_gather(self, input: Any) -> list[Any] | None:  # noqa: A002
        return self.all_gather(input)

    def _all_reduce(self, input: Array, output: Array, mode: str = "sum") -> None:  # noqa: A002
        self.all_reduce_worker(input, output, mode)

    def _exchange(self, name: str, text: str) -> list[str] | None:
        """Return the texts of all trainers, by trainer id; None where there are none, with a warning."""
        if not self.is_worker():
            return None
        if self.worker_num() == 1:
            return [text]
        if self._exchange_texts is None:
            self._warn_no_effect(name)
            return None
        return self._exchange_texts(text)

    def _warn_no_effect(self, name: str) -> None:
        warn_user(
            f"{type(self).__name__}.{name}() has no effect: processes synchronize at the "
            "parameter servers only"
        )
