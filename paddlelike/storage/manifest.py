"""The manifest of a saved directory: what each of its files is, beside the directory, in JSON.

``DIR.manifest.json``, written with every save and put in its place in the same step as the files::

    {"format": 1, "library": "0.1.0", "time": "2024-05-01T12:00:00Z", "program": "9f86d0...",
    "commit": [".", 5242],
    "files": {
    "fc_0.w_0": {"variable": "fc_0.w_0", "kind": "lod_tensor", "dtype": "FP32", "shape": [13, 1], "lod": [],
                 "size": 80, "sha256": "2c26b4...", "stamp": [5243, 1714564800000000000]}},
    "digest": "e3b0c4..."}

``stamp`` is the inode and the time of writing, by which a later save knows that a file is still the one
that was saved. ``commit`` is the path and inode by which a reader knows whether a save that was killed came
to its commit: ``DIR.manifest.json.next`` then is the manifest. ``digest`` is the sha256 of the text before it.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from paddlelike.errors import FormatError, StorageError
from paddlelike.storage import hashing
from paddlelike.storage.local import THREADS, File, Path, list_names
from paddlelike.storage.names import relative_path

__all__ = ["Manifest", "Record", "Verification", "encode", "path_of", "read", "stamp_of", "verify"]

FORMAT: Final = 1
_LIBRARY: Final = "paddlelike"
_MAX_BYTES: Final = 1 << 30


class Record(NamedTuple):
    """What was saved in one file."""

    size: int
    checksum: str | None  # "sha256:<hex>", "crc32:<hex>", or None: not taken
    stamp: tuple[int, int]  # inode, mtime in nanoseconds
    facts: Mapping[str, Any] = {}  # variable, kind, dtype, shape, lod: whatever the saver said

    def is_still(self, facts: os.stat_result) -> bool:
        """Whether a file of these facts is the one that was saved."""
        return stat.S_ISREG(facts.st_mode) and facts.st_size == self.size and stamp_of(facts) == self.stamp


@dataclass(frozen=True)
class Manifest:
    """A manifest that was read."""

    files: dict[str, Record]
    program: str | None = None
    library: str | None = None
    time: str | None = None
    commit: tuple[str, int] | None = None


@dataclass(frozen=True)
class Verification:
    """What a comparison of a directory with its manifest found; true when all is well.

    Attributes
    ----------
    good
        Files whose size and checksum are those of the manifest.
    missing, cut, changed, extra
        Files that are not there; of another size; of the same size with other bytes; not in the manifest.
    unchecked
        Files of the right size whose checksum was not taken when they were saved.
    problem
        Why nothing can be said: there is no manifest, or it cannot be trusted itself.
    """

    directory: str
    good: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    problem: str | None = None
    why: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return not (self.problem or self.missing or self.cut or self.changed or self.extra or self.unchecked)

    def __str__(self) -> str:
        if self.problem:
            return f"{self.directory} cannot be verified: {self.problem}"
        lines = [f"{self.directory}: {len(self.good)} files are as they were saved"]
        for what in ("missing", "cut", "changed", "extra", "unchecked"):
            for name in getattr(self, what):
                lines.append(f"  {what}: {name}" + (f" ({self.why[name]})" if name in self.why else ""))
        return "\n".join(lines)


def path_of(directory: Path) -> str:
    """Where the manifest of ``directory`` lies.

    >>> path_of("/data/model")
    '/data/model.manifest.json'
    """
    return os.path.realpath(os.fspath(directory) or ".") + ".manifest.json"


def read(directory: Path) -> Manifest | None:
    """The manifest of ``directory``; None when it has none.

    Raises
    ------
    FormatError
        The manifest is damaged, or no manifest.
    """
    raise NotImplementedError


def verify(directory: Path) -> Verification:
    """Compare every file of ``directory`` with the manifest: sizes first, then checksums, several at once.

    Raises
    ------
    StorageError
        There is no such directory, or a file cannot be read.
    """
    raise NotImplementedError


def stamp_of(facts: os.stat_result) -> tuple[int, int]:
    """Inode and time of writing."""
    return facts.st_ino, facts.st_mtime_ns
