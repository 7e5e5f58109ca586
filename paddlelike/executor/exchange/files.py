"""The resources of a run: its files, in one transaction, and the connections to servers and workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from paddlelike.core import Scope
from paddlelike.executor.plans.run_plan import Plan
from paddlelike.framework.opdef.remote import Remote, Workers
from paddlelike.hooks import Hook

_open_files: Final[Hook[..., Any]] = Hook("open_files")


@contextmanager
def provide_files(plan: Plan, scope: Scope, services: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the services of a run, files included; commit these at the end unless the caller gave them."""
    if not plan.uses_files or "files" in services:
        yield dict(services)
        return
    files = _open_files.function(plan.file_ops, alone=plan.is_batch)
    yield {**services, "files": files}
    files.commit()


_connect_remote: Final[Hook[[], Remote]] = Hook("connect_remote")
_find_workers: Final[Hook[[], Workers]] = Hook("find_workers")


class RemoteSwitch:
    """The connection of one executor, opened by the first operator that needs it."""

    def __init__(self) -> None:
        self._remote: Remote | None = None

    def open(self) -> Remote:
        """Return the connection."""
        if self._remote is None:
            self._remote = _connect_remote.function()
        return self._remote

    @staticmethod
    def find_workers() -> Workers:
        """Return the workers that train by collectives: one job for the process."""
        return _find_workers.function()

    def close(self) -> None:
        """Leave the job, if this executor is connected to one."""
        remote, self._remote = self._remote, None
        if remote is not None:
            remote.close()
