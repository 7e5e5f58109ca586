"""Records of a server beside its parameters: last saves, texts that trainers share, work for its thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from paddlelike.distributed.protocol.messages import Save


@dataclass(frozen=True, slots=True)
class Saving:
    """A save. It is in progress until it has a manifest or an error."""

    request: Save
    manifest: Mapping[str, Any] | None = None
    error: str = ""

    @property
    def is_under_way(self) -> bool:
        """Whether the rows still have to be written."""
        return self.manifest is None and not self.error


class Saves:
    """The last save of each trainer, so that a repeated request finds its save."""

    def __init__(self) -> None:
        self._last: dict[int, Saving] = {}

    def begin(self, request: Save) -> Saving:
        """Return the save of a request, begun now if it is newer than the trainer's last one."""
        last = self._last.get(request.trainer)
        # D16
        if last is None or _key(last.request) < _key(request):
            last = self._last[request.trainer] = Saving(request)
        return last

    def end(self, request: Save, *, manifest: Mapping[str, Any] | None = None, error: str = "") -> None:
        """Record the result of a save, unless a newer one has taken its place."""
        last = self._last.get(request.trainer)
        if last is not None and last.request == request:
            self._last[request.trainer] = Saving(request, manifest, error)

    def next(self) -> Save | None:
        """Return a save that is in progress; None if there is none."""
        return next((one.request for _, one in sorted(self._last.items()) if one.is_under_way), None)


def _key(request: Save) -> tuple[int, int]:
    return request.process, request.number


_KEPT: Final = 2  # exchanges kept: a slow trainer may still request the one before the last


class Shares:
    """The texts of the last exchanges, by trainer.

    >>> shares = Shares()
    >>> shares.put(1, trainer=0, text=b"a")
    >>> shares.find_missing(1, range(2)), shares.put(1, trainer=1, text=b"b"), shares.collect(1)
    ((1,), None, {0: b'a', 1: b'b'})
    """

    def __init__(self) -> None:
        self._texts: dict[int, dict[int, bytes]] = {}  # by number of the exchange, then by trainer

    def put(self, number: int, *, trainer: int, text: bytes) -> None:
        """Store the text of a trainer for an exchange; repeating this changes nothing."""
        self._texts.setdefault(number, {}).setdefault(trainer, text)
        for old in [old for old in self._texts if old <= number - _KEPT]:
            del self._texts[old]

    def find_missing(self, number: int, trainers: range) -> tuple[int, ...]:
        """Return the trainers that have not sent their text to an exchange."""
        known = self._texts.get(number, {})
        return tuple(trainer for trainer in trainers if trainer not in known)

    def collect(self, number: int) -> dict[int, bytes]:
        """Return the texts of an exchange."""
        return dict(sorted(self._texts.get(number, {}).items()))


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply one synchronous round, or one update of one trainer (async).

    ``round`` is the round, or the number of updates before this one. ``contributions`` are (trainer,
    contribution) in the order of trainer ids: sum them in this order. Merged contributions are left out.
    """

    round: int
    contributions: tuple[tuple[int, Any], ...]


@dataclass(frozen=True, slots=True)
class Merge:
    """Add the committed contribution ``other`` to ``into``; both are pairs (trainer, contribution).

    ``other`` is next in the order of trainer ids, and ``into`` is the sum of all contributions before it, so
    numbers are added in the same order as by :class:`Apply`.
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


Work: TypeAlias = Apply | Restore | Write  #: Merge is optional work and not among these.
