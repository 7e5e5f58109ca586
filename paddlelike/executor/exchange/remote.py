"""The connection of an executor to parameter servers, which the hook ``connect_remote`` opens."""

from __future__ import annotations

from paddlelike.errors import UnsupportedError
from paddlelike.framework.opdef.remote import Remote
from paddlelike.hooks import find_provider

__all__ = ["RemoteSwitch"]


class RemoteSwitch:
    """The connection of one executor, opened by the first operator that needs it."""

    def __init__(self) -> None:
        self._remote: Remote | None = None

    def open(self) -> Remote:
        """Return the connection. Raises UnsupportedError when nothing provides one."""
        if self._remote is None:
            connect = find_provider("connect_remote")
            if connect is None:
                raise UnsupportedError(
                    "the program communicates with other processes, but no connection to them is provided",
                    hint="import paddlelike.distributed",
                )
            self._remote = connect()
        return self._remote

    def close(self) -> None:
        """Leave the job, if this executor is connected to one."""
        remote, self._remote = self._remote, None
        if remote is not None:
            remote.close()
