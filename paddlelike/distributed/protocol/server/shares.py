"""Texts that trainers give to each other through one server, all at the same place of their training."""

from __future__ import annotations

from typing import Final

_KEPT: Final = 2  # the last exchanges: a slow trainer may still ask for the one before the last


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
        """Take the text of a trainer for an exchange; one that is repeated changes nothing."""
        self._texts.setdefault(number, {}).setdefault(trainer, text)
        for old in [old for old in self._texts if old <= number - _KEPT]:
            del self._texts[old]

    def find_missing(self, number: int, trainers: range) -> tuple[int, ...]:
        """Return the trainers whose text an exchange lacks."""
        known = self._texts.get(number, {})
        return tuple(trainer for trainer in trainers if trainer not in known)

    def collect(self, number: int) -> dict[int, bytes]:
        """Return the texts of an exchange."""
        return dict(sorted(self._texts.get(number, {}).items()))
