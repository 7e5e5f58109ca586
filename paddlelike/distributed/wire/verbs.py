"""What a server answers: one object per verb."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from paddlelike.distributed.wire.frames import Header
from paddlelike.distributed.wire.parts import Part, Receiver

__all__ = ["Refused", "Verb"]


class Refused(Exception):  # noqa: N818  (an answer, not a failure)
    """Raised by a verb to answer with this header alone; nothing more of the call is read."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.header = header


class Verb(Protocol):
    """One verb of a server. Its methods run in the threads of the server, many at the same time."""

    def begin(self, head: Header, /) -> Receiver | None:
        """Look at the header of a call, before its records are read; say where they go (None: it has none).

        May raise Refused. Where the call breaks off, ``end`` is never called.
        """

    def end(self, head: Header, receiver: Any, /) -> tuple[Header, Iterable[Part]]:
        """Do it, once all records are in place; the header and the parts of the answer.

        The parts are read while they are sent. May raise Refused.
        """
