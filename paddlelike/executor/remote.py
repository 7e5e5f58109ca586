"""How an executor gets to the network: the hook ``connect_remote``, called when an operator needs it."""

from __future__ import annotations

from paddlelike.errors import UnsupportedError
from paddlelike.framework.opdef.remote import Remote
from paddlelike.hooks import find_provider

__all__ = ["RemoteSwitch"]


class RemoteSwitch:
    """The remote end of one executor, connected by the first operator that needs it."""

    def __init__(self) -> None:
        self._remote: Remote | None = None

    def open(self) -> Remote:
        """The remote end. Raises UnsupportedError where nothing provides one."""
        if self._remote is None:
            connect = find_provider("connect_remote")
            if connect is None:
                raise UnsupportedError(
                    "this program works between processes, and nothing here connects them",
                    hint="import paddlelike.distributed",
                )
            self._remote = connect()
        return self._remote

    def close(self) -> None:
        """Leave the job, if this executor ever took part in one."""
        remote, self._remote = self._remote, None
        if remote is not None:
            remote.close()
