"""How an executor gets to the network: a higher floor says once how, each executor connects when it must."""

from __future__ import annotations

from collections.abc import Callable

from paddlelike.errors import UnsupportedError
from paddlelike.framework.opdef.remote import Remote

__all__ = ["RemoteSwitch", "provide_remote"]

_connect: Callable[[], Remote] | None = None


def provide_remote(connect: Callable[[], Remote]) -> None:
    """Let executors of this process connect by ``connect``, called once for each that needs it."""
    global _connect
    _connect = connect


class RemoteSwitch:
    """The remote end of one executor, connected by the first operator that needs it."""

    def __init__(self) -> None:
        self._remote: Remote | None = None

    def open(self) -> Remote:
        """The remote end. Raises UnsupportedError where nothing provides one."""
        if self._remote is None:
            if _connect is None:
                raise UnsupportedError(
                    "this program works between processes, and nothing here connects them",
                    hint="import paddlelike.distributed",
                )
            self._remote = _connect()
        return self._remote

    def close(self) -> None:
        """Leave the job, if this executor ever took part in one."""
        remote, self._remote = self._remote, None
        if remote is not None:
            remote.close()
