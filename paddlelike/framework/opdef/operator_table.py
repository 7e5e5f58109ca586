"""The table of operators by type, filled at the first look-up by the floor that defines them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from paddlelike.errors import GraphError

__all__ = ["OperatorTable"]

Entry = TypeVar("Entry")


class OperatorTable(Generic[Entry]):
    """Entries by operator type; threads may look up and register at the same time."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._load: Callable[[], object] | None = None
        self._loading = False
        self._lock = threading.RLock()

    def provide(self, load: Callable[[], object]) -> None:
        """Have ``load`` called once, before the next look-up; it registers operators."""
        with self._lock:
            self._load = load

    def register(self, type: str, entry: Entry) -> None:
        """Add the operator called ``type``; raise GraphError when there is one already."""
        with self._lock:
            if type in self._entries:
                raise GraphError(f"operator {type!r} is registered twice: {self._entries[type]}, {entry}")
            self._entries[type] = entry

    def get(self, type: str) -> Entry | None:
        """Return the operator called ``type``, or None."""
        self._ensure_loaded()
        return self._entries.get(type)

    def all(self) -> dict[str, Entry]:
        """Return every operator by type (a copy, sorted)."""
        self._ensure_loaded()
        with self._lock:
            return dict(sorted(self._entries.items()))

    def _ensure_loaded(self) -> None:
        """Call the loader unless it was called; other threads wait for it.

        A look-up that the loader itself makes finds what is registered so far. A loader that fails is
        called again by the next look-up.
        """
        if self._load is None:
            return
        with self._lock:
            load = self._load
            if load is None or self._loading:
                return
            self._loading = True
            try:
                load()
                self._load = None
            finally:
                self._loading = False
