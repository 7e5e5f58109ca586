"""The work that the protocol gives to the thread that owns a server's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from paddlelike.distributed.protocol.messages import Save


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply one synchronous round, or one update of one trainer (async).

    ``round`` is the round, or the count of updates before this one. ``contributions`` are (trainer,
    contribution) in the order of trainer ids: sum them in this order. Those that were merged are not among
    them.
    """

    round: int
    contributions: tuple[tuple[int, Any], ...]


@dataclass(frozen=True, slots=True)
class Merge:
    """Add the committed contribution ``other`` to ``into``, both (trainer, contribution), of ``owner``.

    They follow one another in the order of trainer ids, and ``into`` is the sum of all before, so that the
    order of additions is that of :class:`Apply`.
    """

    owner: Any
    into: tuple[int, Any]
    other: tuple[int, Any]


@dataclass(frozen=True, slots=True)
class Restore:
    """Set every variable to its value at the beginning of ``round`` (0: the start values)."""

    round: int


@dataclass(frozen=True, slots=True)
class Write:
    """Write the rows this server owns as the request says."""

    request: Save


Work: TypeAlias = Apply | Restore | Write  #: see also Merge, which may be left out
