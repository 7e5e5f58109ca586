"""What lies beside a saved directory: the names that saving gives to its helpers.

Nothing of this is ever inside the directory, because Paddle's loaders read every file that they find there.
"""

from __future__ import annotations

import os

__all__ = ["Siblings"]


class Siblings:
    """The paths beside ``base``, which is a directory, or the common front of a few files' names.

    >>> Siblings("/data/model").journal
    '/data/model.journal'
    """

    __slots__ = ("base", "journal", "lock", "manifest", "next", "staging")

    def __init__(self, base: str) -> None:
        self.base = base
        self.lock = base + ".lock"  # held by the one who saves
        self.staging = base + ".saving"  # a directory: what is going to be, or what has been
        self.journal = base + ".journal"  # a commit in several steps, which has begun
        self.manifest = base + ".manifest.json"
        self.next = self.manifest + ".next"  # the manifest of what is going to be

    @property
    def parent(self) -> str:
        """The directory they all lie in."""
        return os.path.dirname(self.base) or "."

    def is_beside(self, path: str) -> bool:
        """Whether a path in ``parent`` is a file whose name begins as ``base`` does.

        >>> Siblings("/data/net").is_beside("net.pdparams"), Siblings("/data/net").is_beside("other")
        (True, False)
        """
        return "/" not in path and path.startswith(os.path.basename(self.base))

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Siblings:
        """The siblings of a path, through links: they lie beside the directory itself."""
        return cls(os.path.realpath(os.fspath(path) or "."))
