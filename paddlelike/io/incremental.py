"""The ledger: for each directory, the values that variables had when they were saved, so that a save writes
only changes.

A variable counts as saved in a directory after a save there or a load from there. The ledger keeps the number
of its writes, the array and the record of the file. A file that was replaced or changed since differs from
its record and is written again. The ledger ends with the process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeVar
from weakref import WeakKeyDictionary, ref

from paddlelike.core import LoDTensor, ScopeVariable
from paddlelike.errors import StorageError
from paddlelike.foundation.locks import Lock
from paddlelike.storage.manifest import Manifest, Record

T = TypeVar("T")

_MOST: Final = 200_000  # values remembered for all directories; the last directory's always are


class Location(Protocol):
    """The directory of a save or load, in the form that the ledger uses."""

    @property
    def key(self) -> str:
        """A text that is equal for all spellings of the directory."""

    def stamp(self) -> object:
        """Return a value that changes when files of the directory are replaced, or None if unknown."""

    def manifest(self) -> Manifest | None:
        """Return the manifest, or None without a trusted one."""


class State(NamedTuple):
    """The state of a variable: the number of writes so far, and its array, here or on a device."""

    version: int
    array: ref[Any]

    def is_of(self, holder: ScopeVariable) -> bool:
        """Return whether the variable still has this value."""
        if holder.version != self.version:
            return False
        held, value = self.array(), holder.value
        if held is None or (isinstance(value, LoDTensor) and held is value.find_on_device()):
            return held is not None
        return held is get_array(value)


def get_state(holder: ScopeVariable) -> State:
    """Return the state of a variable that holds a tensor.

    If another thread may write, get the state before the value. An old state only causes one more write.
    """
    version = holder.version
    return State(version, ref(get_array(holder.value)))


def get_array(value: Any) -> Any:
    """Return the array of a value without copying it, also if it is a view of a mapped file."""
    return value._array if isinstance(value, LoDTensor) else getattr(value, "held_array", None)


class _Loaded(NamedTuple):
    stamp: object
    states: WeakKeyDictionary[ScopeVariable, State]


Saves = WeakKeyDictionary[ScopeVariable, tuple[State, Record]]


class Known:
    """The part of the ledger for one location."""

    def __init__(self, saves: Saves, loaded: _Loaded | None, location: Location) -> None:
        self._saves = saves
        self._loaded = loaded
        self._location = location
        self._files: Mapping[str, Record] | None = None  # records of a load, looked up when needed

    def __bool__(self) -> bool:
        """Return whether the ledger knows anything about the location."""
        return bool(self._saves or self._loaded)

    def find_saved(self, holder: ScopeVariable) -> Record | None:
        """Return the record of the file into which this value of the variable was saved, or None if it was
        not saved.
        """
        saved = self._saves.get(holder)
        return saved[1] if saved is not None and saved[0].is_of(holder) else None

    def find_state(self, holder: ScopeVariable, record: Record) -> State | None:
        """Return the state of a variable when it equalled the chain that ends with ``record``, or None if
        unknown. The variable may have changed since.
        """
        saved = self._saves.get(holder)
        if saved is not None and _is_same_link(saved[1], record):
            return saved[0]
        if self._loaded is None or self._location.stamp() != self._loaded.stamp:
            return None
        return self._loaded.states.get(holder)

    def find_loaded(self, holder: ScopeVariable, name: str) -> Record | None:
        """Return the record of the file that this value was loaded from, or None without one. Its shape may
        differ.
        """
        state = None if self._loaded is None else self._loaded.states.get(holder)
        if state is None or not state.is_of(holder) or "/" in name:  # the stamp is of the top folder only
            return None
        return self._loaded_files().get(name)

    def _loaded_files(self) -> Mapping[str, Record]:
        if self._files is None:
            assert self._loaded is not None
            manifest = None
            with contextlib.suppress(StorageError):  # then nothing is known, and all files are written
                if self._location.stamp() == self._loaded.stamp:
                    manifest = self._location.manifest()
            self._files = {} if manifest is None else manifest.files
        return self._files


def _is_same_link(saved: Record, record: Record) -> bool:
    facts = saved.facts.get("link")
    return facts is not None and facts == record.facts.get("link") and saved.checksum == record.checksum


class Ledger:
    """The last save and load of each directory in this process. It does not keep variables alive."""

    def __init__(self) -> None:
        self._saves: dict[tuple[str, str | None], Saves] = {}
        self._loaded: dict[str, _Loaded] = {}
        self._lock = Lock()  # saves may end in other threads

    def known(self, location: Location, filename: str | None = None) -> Known:
        """Return the entry of a directory, or of one combined file in it."""
        with self._lock.hold():
            saves: Saves = self._saves.get((location.key, filename), WeakKeyDictionary())
            return Known(saves, self._loaded.get(location.key) if filename is None else None, location)

    def note_saved(
        self, location: Location, filename: str | None, saved: Iterable[tuple[ScopeVariable, State, Record]]
    ) -> None:
        """Record that these values are saved in these files."""
        with self._lock.hold():
            where = location.key, filename
            saves = WeakKeyDictionary(self._saves.pop(where, {}))
            for holder, state, record in saved:
                saves[holder] = state, record
            self._saves[where] = saves
            self._loaded.pop(location.key, None)  # its stamp is out of date
            _shorten(self._saves, len)

    def note_loaded(self, location: Location, stamp: object, states: Mapping[ScopeVariable, State]) -> None:
        """Record that variables in these states had the values of the files with their names.

        ``stamp`` is the value of ``location.stamp()`` before the files were read.
        """
        if stamp is None:
            return
        with self._lock.hold():
            self._loaded.pop(location.key, None)
            self._loaded[location.key] = _Loaded(stamp, WeakKeyDictionary(states))
            _shorten(self._loaded, lambda loaded: len(loaded.states))

    def forget_location(self, key: str) -> None:
        """Forget a directory that was removed; ``key`` is the key of its location."""
        with self._lock.hold():
            for where in [where for where in self._saves if where[0] == key]:
                del self._saves[where]
            self._loaded.pop(key, None)

    def forget(self) -> None:
        """Forget everything: the next save into any directory writes all files."""
        with self._lock.hold():
            self._saves.clear()
            self._loaded.clear()


def _shorten(remembered: dict[Any, T], size: Callable[[T], int]) -> None:
    """Forget directories, the oldest first, until the ledger is small enough."""
    total = sum(map(size, remembered.values()))
    for where in list(remembered)[:-1]:
        if total <= _MOST:
            return
        total -= size(remembered.pop(where))


ledger: Final = Ledger()


def _renew_lock() -> None:
    """Replace the lock in a forked process, where the thread that held it does not exist."""
    ledger._lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
