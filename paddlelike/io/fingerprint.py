"""The fingerprint of a program, by which a manifest identifies the network that was saved."""

from __future__ import annotations

import hashlib
from typing import Final
from weakref import WeakKeyDictionary

from paddlelike.errors import GraphError
from paddlelike.framework.codec.encode import encode_program
from paddlelike.framework.graph.program import Program

__all__ = ["fingerprint"]

_known: Final[WeakKeyDictionary[Program, tuple[int, str | None]]] = WeakKeyDictionary()


def fingerprint(program: Program) -> str | None:
    """Return the sha256 of a program's encoding; None when it holds something that cannot be encoded.

    >>> fingerprint(Program()) == fingerprint(Program())
    True
    """
    version, text = _known.get(program, (-1, None))
    if version != program._version:
        try:
            text = hashlib.sha256(encode_program(program)).hexdigest()
        except (GraphError, TypeError, ValueError):
            text = None
        _known[program] = program._version, text
    return text
