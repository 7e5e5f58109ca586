"""The state that ``fluid.save`` writes: two state files and a program whose names share a prefix.

``PREFIX.pdparams`` holds the parameters, ``PREFIX.pdopt`` every other persistable variable of training, and
``PREFIX.pdmodel`` the program, which this format ignores. The format works on a :class:`PrefixedFolder`: the
files whose names begin with the prefix, called by the rest of their names.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Final

from paddlelike.core import Array, LoDTensor
from paddlelike.errors import FormatError
from paddlelike.formats.base import SNIFF_BYTES, Capabilities, FolderFormat, Value, Values
from paddlelike.formats.entry import Entry, LeftOut, Listing
from paddlelike.formats.sources import Buffer, Folder, Source
from paddlelike.formats.state.format import StateFile, decode, encode, list_entries, read_array, to_array
from paddlelike.lazy import dataclass

PARAMETER_FILE: Final = ".pdparams"
OPTIMIZER_FILE: Final = ".pdopt"


class PrefixedFolder:
    """The files of a folder with a common prefix, named by the rest of their names.

    Parameters
    ----------
    folder
        The folder with all files.
    prefix
        The beginning of the names, such as ``"net"`` of ``net.pdparams`` and ``net.pdopt``.
    """

    def __init__(self, folder: Folder, prefix: str) -> None:
        self._folder = folder
        self._prefix = prefix

    def list_names(self) -> list[str]:
        """Return the names of the files, without the prefix, sorted."""
        cut = len(self._prefix)
        return [name[cut:] for name in self._folder.list_names() if name.startswith(self._prefix)]

    def has(self, name: str) -> bool:
        """Return whether there is a file of that name, without the prefix."""
        return self._folder.has(self._prefix + name)

    def open_file(self, name: str) -> AbstractContextManager[Source]:
        """Open the file of that name, without the prefix."""
        return self._folder.open_file(self._prefix + name)


@dataclass(frozen=True)
class FluidSave(FolderFormat):
    """``.pdparams`` and ``.pdopt`` of one ``fluid.save``.

    Parameters
    ----------
    parameters
        The names that go into ``.pdparams`` when values are written. None means all of them.
    """

    name = "fluid_save"
    title = "the .pdparams and .pdopt of a fluid.save"
    suffixes = (PARAMETER_FILE, OPTIMIZER_FILE)
    advice = "open it with fluid.load or fluid.load_program_state, by the path without its suffix"
    holds = Capabilities()

    parameters: frozenset[str] | None = None

    def sniff(self, folder: Folder) -> bool:
        try:
            if not folder.has(PARAMETER_FILE):
                return False
            with folder.open_file(PARAMETER_FILE) as file:
                return StateFile().sniff(bytes(file.read_at(0, SNIFF_BYTES)), file.size)
        except FormatError:
            return False
        except OSError as error:
            if error.errno is not None:  # the system refuses to read it, which says nothing of its format
                raise
            return False

    def entries(self, source: Folder) -> list[Entry]:
        found: dict[str, Entry] = {}
        left_out: list[LeftOut] = []
        plain: dict[str, Any] = {}
        files = [file for file in (PARAMETER_FILE, OPTIMIZER_FILE) if source.has(file)]
        if not files:
            raise FormatError(f"there is neither {PARAMETER_FILE} nor {OPTIMIZER_FILE}")
        for file in files:
            with source.open_file(file) as opened:
                try:
                    contents = decode(opened.read_at(0, opened.size))
                except FormatError as error:
                    raise FormatError(f"the {file} file: {error.message}", hint=error.hint) from None
            listing = list_entries(contents, file)
            found |= {entry.name: entry for entry in listing}
            left_out += listing.left_out
            plain |= listing.plain
        return Listing(found.values(), left_out, plain)

    def read(self, source: Folder, entry: Entry, *, into: Array | None = None) -> Value:
        return LoDTensor(read_array(entry, into))

    def write(self, values: Values) -> dict[str, Iterable[Buffer]]:
        self.check(values)
        arrays = {name: to_array(value) for name, value in values.items()}
        chosen = arrays.keys() if self.parameters is None else self.parameters
        return {
            PARAMETER_FILE: encode({name: array for name, array in arrays.items() if name in chosen}),
            OPTIMIZER_FILE: encode({name: array for name, array in arrays.items() if name not in chosen}),
        }
