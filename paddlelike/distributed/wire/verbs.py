"""The interface of a server's verbs: one object per verb."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from paddlelike.distributed.wire.frames import Header
from paddlelike.distributed.wire.parts import Part, Receiver


class Refused(Exception):  # noqa: N818  (an answer, not a failure)
    """Raised by a verb to answer with this header alone; the rest of the call is not read."""

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.header = header


class Verb(Protocol):
    """One verb of a server. Its methods run in the threads of the server, many at the same time."""

    def begin(self, head: Header, /) -> Receiver | None:
        """Check the header of a call before its records are read; return the receiver of the records, if any.

        Raises Refused to answer at once. Where the call breaks off, ``end`` is never called.
        """

    def end(self, head: Header, receiver: Any, /) -> tuple[Header, Iterable[Part]]:
        """Perform the call once its records are in place; return the header and the parts of the answer.

        The parts are read while they are sent. Raises Refused to answer with a header alone.
        """
