"""The paths that a save uses besides its files: one hidden entry beside the directory, while the save runs.

Everything temporary is inside ``.NAME.saving-directory`` (for ``fluid.save``: ``.NAME.saving-prefix``), which
the next save or load clears up after a kill::

    lock       held by the process that saves
    new/       the new version of the directory, before it is swapped in; then the old one
    staged     the token of the new version, and the files that the old one held
    spare/     the version before, with ``keep_generation``; the only thing that stays after a save
    old/       what a commit in several steps replaces
    journal    a commit in several steps that has begun

Without flock, ``new/`` and ``old/`` are in a folder of the process that saves, the attribute ``work``
(:mod:`.filesystem.lock_file`).

If the parent cannot be written, as for a mounted volume, the entry is ``DIR/.saving-directory``.
"""

from __future__ import annotations

import os
from typing import Final

from paddlelike.errors import StorageError
from paddlelike.storage.names import MANIFEST
from paddlelike.storage.problems import explain, is_directory, is_there

INSIDE: Final = ".saving-directory"  # the hidden entry inside the directory
_LONGEST: Final = 255  # bytes of a name in most file systems


class Layout:
    """The paths of a save into ``base``, a directory or the common prefix of a few files.

    >>> Layout("/data/model", is_prefix=False).journal
    '/data/.model.saving-directory/journal'
    >>> Layout("/data/net", is_prefix=True).manifest
    '/data/net.pdmanifest'
    """

    __slots__ = (
        "base", "earlier_manifest", "is_inside", "is_prefix", "journal", "lock", "manifest", "parent",
        "staging", "work",
    )  # fmt: skip

    def __init__(self, base: str, *, is_prefix: bool, is_inside: bool = False) -> None:
        self.base = base
        self.is_prefix = is_prefix
        self.is_inside = is_inside
        self.parent, name = os.path.split(base)
        self.parent = self.parent or "."
        suffix = ".saving-prefix" if is_prefix else ".saving-directory"
        if len(os.fsencode(name)) + len(suffix) >= _LONGEST:
            import hashlib  # late: it takes long

            name = hashlib.sha256(os.fsencode(name)).hexdigest()
        self.staging = os.path.join(self.parent, f".{name}{suffix}")
        if is_inside:
            self.parent, self.staging = base, os.path.join(base, INSIDE)
        self.work = self.staging
        self.lock = os.path.join(self.staging, "lock")
        self.journal = os.path.join(self.staging, "journal")
        self.manifest = f"{base}.pdmanifest" if is_prefix else os.path.join(base, MANIFEST)
        self.earlier_manifest = f"{base}.manifest.json"  # the place of earlier versions

    def get_inside(self) -> Layout | None:
        """Return the layout of a save that could not write beside the directory, if it left files.

        Raises
        ------
        StorageError
            The system refuses to look.
        """
        if self.is_prefix or self.is_inside or not is_there(os.path.join(self.base, INSIDE)):
            return None
        return Layout(self.base, is_prefix=False, is_inside=True)

    @property
    def directory(self) -> str:
        """The directory of the files."""
        return self.parent if self.is_prefix else self.base

    @property
    def manifest_name(self) -> str:
        """The name of the manifest in the directory of the files."""
        return os.path.basename(self.manifest)

    def owns(self, path: str) -> bool:
        """Return whether a path in the directory can be a file of this save.

        >>> Layout("/data/net", is_prefix=True).owns("net.pdparams")
        True
        >>> Layout("/data/net", is_prefix=True).owns("other")
        False
        """
        return not self.is_prefix or ("/" not in path and path.startswith(os.path.basename(self.base)))

    @classmethod
    def of(cls, path: str | os.PathLike[str], *, is_prefix: bool | None = None) -> Layout:
        """Return the layout of a path with its links resolved, except a link with the name of a prefix.

        Without ``is_prefix``, a path that is not a directory but has a manifest of ``fluid.save`` is a
        prefix.

        Raises
        ------
        StorageError
            See :func:`resolve`.
        """
        if is_prefix is False:
            return cls(resolve(path), is_prefix=False)
        parent, name = os.path.split(os.fspath(path))
        prefix = os.path.join(resolve(parent), name)
        if is_prefix is None:
            manifests = (f"{prefix}.pdmanifest", f"{prefix}.manifest.json")
            is_prefix = not is_directory(prefix) and any(map(is_there, manifests))
        return cls(prefix if is_prefix else resolve(path), is_prefix=is_prefix)


def resolve(path: str | os.PathLike[str]) -> str:
    """Return the absolute form of a path, without links.

    Raises
    ------
    StorageError
        It is not a path, or the system does not let its links be read.
    """
    try:
        return os.path.realpath(os.fspath(path) or ".")
    except OSError as error:
        raise explain(StorageError, f"{os.fspath(path)} cannot be looked up", error) from error
    except ValueError as error:  # a NUL character
        raise StorageError(f"{os.fspath(path)!r} is not a path: {error}") from error
