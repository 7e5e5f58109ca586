"""The table of operators by type; look-ups load the modules that define them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from paddlelike.errors import GraphError
from paddlelike.foundation.locks import RLock, make_keys

Entry = TypeVar("Entry")


class OperatorTable(Generic[Entry]):
    """Entries by operator type; threads may look up and register at the same time."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._found: dict[str, Entry] = {}  # complete entries by type
        self._imports: list[bool] = []  # an item for each look-up under way, in all threads
        self._begin_import = make_keys(self._imports.append, self._imports.pop)
        self._load: Callable[[], object] | None = None
        self._load_one: Callable[[str], bool] = _know_nothing
        self._loading = False
        self._lock = RLock()

    def provide(self, load: Callable[[], object], load_one: Callable[[str], bool] | None = None) -> None:
        """Set the function that registers operators when one is looked up.

        ``load_one`` registers the operator of a type; it returns False for an unknown type. In that case, or
        without ``load_one``, ``load`` is called once and registers all operators.
        """
        with self._lock.hold():
            self._load, self._load_one = load, load_one or _know_nothing
            self._found.clear()

    def register(self, type: str, entry: Entry) -> None:
        """Add the operator called ``type``; raise GraphError when there is one already."""
        with self._lock.hold():
            if type in self._entries:
                raise GraphError(f"operator {type!r} is registered twice: {self._entries[type]}, {entry}")
            self._entries[type] = entry

    def get(self, type: str) -> Entry | None:
        """Return the operator called ``type``, or None without one."""
        entry = self._found.get(type)
        return self._look_up(type) if entry is None else entry

    def _look_up(self, type: str) -> Entry | None:
        if self._load is not None and not self._import(type):
            self._ensure_loaded()
        entry = self._entries.get(type)
        if entry is not None and not self._imports and not self._loading:
            self._found[type] = entry
        return entry

    def _import(self, type: str) -> bool:
        """Import the module of one operator. Look-ups during the import may find incomplete entries."""
        with self._begin_import():
            return self._load_one(type)  # without the lock: modules have their own

    def all(self) -> dict[str, Entry]:
        """Return every operator by type (a copy, sorted)."""
        self._ensure_loaded()
        with self._lock.hold():
            return dict(sorted(self._entries.items()))

    def _ensure_loaded(self) -> None:
        """Call the loader unless it was called before; other threads wait for it.

        A look-up by the loader itself finds the operators registered so far. After a failure, the next
        look-up calls the loader again.
        """
        if self._load is None:
            return
        with self._lock.hold():
            load = self._load
            if load is None or self._loading:
                return
            try:
                self._loading = True
                load()
                self._load = None
            finally:
                self._loading = False


def _know_nothing(type: str) -> bool:
    return False
