"""The connections of an executor to parameter servers and to workers, which hooks open."""

from __future__ import annotations

from typing import Final

from paddlelike.framework.opdef.remote import Remote, Workers
from paddlelike.hooks import Hook

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
