"""The fingerprint of a program, by which a manifest identifies the network that was saved."""

from __future__ import annotations

from operator import attrgetter
from typing import Final
from weakref import WeakKeyDictionary

from paddlelike.errors import GraphError
from paddlelike.foundation.garbage import pause_collection
from paddlelike.framework.codec.encode import build_message
from paddlelike.framework.graph.program import Program

_known: Final[WeakKeyDictionary[Program, tuple[int, str | None]]] = WeakKeyDictionary()


@pause_collection
def fingerprint(program: Program) -> str | None:
    """Return the sha256 of a program's encoding; None when it holds something that cannot be encoded.

    A program and its copies have the same.

    >>> fingerprint(Program()) == fingerprint(Program().clone())
    True
    """
    import hashlib  # late: it takes long

    known, text = _known.get(program, (-1, None))
    version = program._version  # before it is read: another thread may build on
    if known != version:
        try:
            message = build_message(program, by_name=True)  # a copy has all of this in another order
            for block in message.blocks:
                for op in block.ops:
                    op.attrs.sort(key=attrgetter("name"))
                    op.inputs.sort(key=attrgetter("parameter"))
                    op.outputs.sort(key=attrgetter("parameter"))
            text = hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()
        except (GraphError, TypeError, ValueError):
            text = None
        _known[program] = version, text
    return text
