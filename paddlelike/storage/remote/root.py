"""Where a directory behind a URL is, and what its markers say."""

from __future__ import annotations

from paddlelike.storage.names import is_manifest
from paddlelike.storage.remote import marker
from paddlelike.storage.remote.base import Info, Store
from paddlelike.storage.remote.marker import Marker


class RemoteRoot:
    """Where a remote directory is: its store, its path in it, and its markers.

    Parameters
    ----------
    base
        The path that the names of the files begin with, where these are only some of the directory's.
    """

    def __init__(self, store: Store, url: str, root: str, base: str | None = None) -> None:
        self.path = url.rstrip("/")
        self.store = store
        self.root = root
        self.base = root if base is None else base  # what the names of markers begin with

    @property
    def is_prefix(self) -> bool:
        """Whether the files are only those whose names begin with ``base``."""
        return self.base != self.root

    @property
    def copy(self) -> str:
        """The path of the manifest inside the directory."""
        return marker.make_copy_path(self.base, is_prefix=self.is_prefix)

    def read_marker(self) -> Marker:
        """Return the newest marker.

        Raises
        ------
        FormatError
            It is damaged.
        """
        found = marker.read(self.store, self.base, is_prefix=self.is_prefix)
        if found.manifest is not None and found.manifest.is_prefix != self.is_prefix:
            return Marker(found.number)  # of files with a prefix that is also the name of this directory
        return found

    def present(self) -> dict[str, Info]:
        """Return the files at their plain names, without the manifest."""
        if not self.is_prefix:
            found = self.store.find(self.root).items()
            return {name: info for name, info in found if not is_manifest(name)}
        named = self.store.list_prefix(self.base).items()
        helpers = (marker.make_path(self.base).rpartition("/")[2], self.copy.rpartition("/")[2])
        return {name: info for name, info in named if info is not None and not name.startswith(helpers)}
