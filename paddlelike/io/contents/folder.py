"""The values of several files in one format, such as the files of ``fluid.save``, for a load."""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.core import LoDTensor, VarType
from paddlelike.formats.base import FolderFormat, Value
from paddlelike.formats.sources import Folder
from paddlelike.io.contents.interface import Held, Reading, Unreadable, Want


class FolderContents:
    """The files of a folder that one format describes.

    Raises
    ------
    FormatError
        A file is damaged or of another format.
    """

    unnamed = None

    def __init__(self, where: str, folder: Folder, format: FolderFormat) -> None:  # noqa: A002
        self.where = where
        self._folder = folder
        self._format = format
        self._entries = {entry.name: entry for entry in format.entries(folder)}

    def names(self) -> list[str]:
        """Return the names of all values, in the order of the format."""
        return list(self._entries)

    def look(self, name: str, kind: VarType) -> Held | Unreadable | None:
        """Return the header of a value, or None if there is no such value."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        if (entry.kind == VarType.SELECTED_ROWS) != (kind == VarType.SELECTED_ROWS):
            return Unreadable(name, f"{entry.kind.name}, the program wants {kind.name}")
        return Held(name, entry)

    def read(self, wants: Sequence[Want], *, lazily: bool = False) -> Reading:
        """Read values one by one.

        Raises
        ------
        FormatError
            The elements of one are damaged.
        """
        return Reading([self._read(want) for want in wants], [])

    def _read(self, want: Want) -> Value:
        entry = self._entries[want.held.name]
        if want.rows is None:
            return self._format.read(self._folder, entry)
        return LoDTensor(self._format.read_slice(self._folder, entry, *want.rows))
