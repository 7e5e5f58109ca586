"""Parameter servers: programs for trainers and servers, what travels between them, and who keeps what."""

from __future__ import annotations

from paddlelike.executor.remote import provide_remote
from paddlelike.framework.remote import Remote

__all__: list[str] = []


def _connect() -> Remote:
    from paddlelike.distributed.runtime import Connection  # with the wire: only for who needs it

    return Connection()


provide_remote(_connect)
