"""The fingerprint of a program: what a manifest says of the network that was saved."""

from __future__ import annotations

import hashlib
from typing import Final
from weakref import WeakKeyDictionary

from paddlelike.errors import GraphError
from paddlelike.framework.codec.encode import encode_program
from paddlelike.framework.graph.program import Program

__all__ = ["fingerprint"]

_made: Final[WeakKeyDictionary[Program, tuple[int, str | None]]] = WeakKeyDictionary()


def fingerprint(program: Program) -> str | None:
    """The sha256 of a program's encoding; None when it holds what cannot be encoded.

    >>> fingerprint(Program()) == fingerprint(Program())
    True
    """
    version, text = _made.get(program, (-1, None))
    if version != program._version:
        try:
            text = hashlib.sha256(encode_program(program)).hexdigest()
        except (GraphError, TypeError, ValueError):
            text = None
        _made[program] = program._version, text
    return text
