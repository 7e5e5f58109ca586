"""The interface of a source of values: its names, the header of each, and reading several values at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from paddlelike.core import Array, VarType
from paddlelike.formats.base import Value
from paddlelike.formats.entry import Entry

__all__ = ["Contents", "Held", "Positional", "Reading", "Unreadable", "Value", "Want"]


class Held(NamedTuple):
    """One value that a source contains.

    Attributes
    ----------
    header
        The type of the value and the place of its elements; its name is an index if the source stores no
        names.
    value
        The value itself, if the source was small enough to be read with its header.
    size
        The size of its file, if it has its own file.
    """

    name: str
    header: Entry
    value: Value | None = None
    size: int = 0


class Unreadable(NamedTuple):
    """The reason why a value cannot be read from a source."""

    name: str
    what: str
    hint: str | None = None
    is_missing: bool = False  # the source has no file ``name``, a name derived from the requested one


class Want(NamedTuple):
    """A value to read, or some of its rows.

    Attributes
    ----------
    target
        An array that is filled with the value, if it has its type and shape.
    """

    held: Held
    rows: tuple[int, int] | None = None
    target: Array | None = None


class Reading(NamedTuple):
    """The values that were read, in the order of the wants.

    Attributes
    ----------
    bad
        A line for every file that differs from the manifest.
    mapped
        The number of values that are views of their files.
    unaligned
        The number of these views that will be copied at their first use.
    notes
        Lines for the report.
    """

    values: list[Value]
    bad: list[str]
    mapped: int = 0
    unaligned: int = 0
    notes: tuple[str, ...] = ()


class Positional(Protocol):
    """Values that are known only by their position, until they get names."""

    where: str

    @property
    def headers(self) -> Sequence[Entry]:
        """The headers in the source's order."""

    @property
    def saved_names(self) -> list[str] | None:
        """The names that the manifest records for the values, or None without such a record."""

    def assign_names(self, names: Sequence[str]) -> None:
        """Set the names of the values, in their order."""


class Contents(Protocol):
    """A source of values."""

    where: str

    @property
    def unnamed(self) -> Positional | None:
        """The values that still need names, where the format stores none; else None."""

    def names(self) -> list[str]:
        """Return the names of all values, in the source's order."""

    def look(self, name: str, kind: VarType) -> Held | Unreadable | None:
        """Return the header of a value, or None if there is no such value. ``kind`` is SELECTED_ROWS or
        dense.
        """

    def read(self, wants: Sequence[Want], *, lazily: bool = False) -> Reading:
        """Read values into new memory or the targets of the wants.

        With ``lazily``, large ones become views of their mapped files.

        Raises
        ------
        FormatError, StorageError
            A file cannot be read, or was replaced after its header was read.
        """
