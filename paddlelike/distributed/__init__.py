"""Parameter servers: programs for trainers and servers, what travels between them, and who keeps what."""

from __future__ import annotations

from paddlelike.executor.remote import provide_remote
from paddlelike.framework.program import Program
from paddlelike.framework.remote import Remote
from paddlelike.io.elsewhere import Elsewhere, provide_elsewhere

__all__: list[str] = []


def _connect() -> Remote:
    from paddlelike.distributed.runtime import Connection  # with the wire: only for who needs it

    return Connection()


def _part_of(program: Program) -> Elsewhere | None:
    from paddlelike.distributed.persist import part_of

    return part_of(program)


provide_remote(_connect)
provide_elsewhere(_part_of)
