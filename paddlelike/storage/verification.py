"""Comparison of saved files with their manifest."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from paddlelike.errors import StorageError
from paddlelike.storage import hashing
from paddlelike.storage.manifest import Manifest, Record
from paddlelike.storage.names import MANIFEST
from paddlelike.storage.threads import map_in_threads

__all__ = [
    "Verification",
    "check",
    "check_pieces",
    "compare_file",
    "compare_files",
    "cover_with_pieces",
    "describes",
]

_MARGIN: Final = 1_000_000_000  # nanoseconds: more than a copy of a directory takes from file to file


@dataclass(frozen=True)
class Verification:
    """The result of comparing a directory with its manifest; true when every file is as it was saved.

    Attributes
    ----------
    good
        Files whose size and checksum are those of the manifest.
    missing, cut, changed, extra
        Files that do not exist; of another size; of the same size with other bytes; not in the manifest.
    unchecked
        Files of the right size whose checksum was not computed when they were saved.
    problem
        Why nothing can be said: there is no manifest, or it is damaged.
    why
        For some of the names above the reason.
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
                why = f" ({self.why[name]})" if name in self.why else ""
                lines.append(f"  {what}: {name}{why}")
        return "\n".join(lines)


def compare_files(
    where: str, manifest: Manifest, present: Iterable[str], compare: Callable[[str, Record], tuple[str, str]]
) -> Verification:
    """Compare every file of a manifest, several at once.

    ``compare`` returns the name of a field of :class:`Verification`, and the reason or "". ``present`` are
    the files that exist; those that the manifest does not have are extra.
    """
    named = sorted(manifest.files.items())
    verdicts = map_in_threads(lambda item: compare(*item), named)
    found: dict[str, list[str]] = {}
    why = {}
    for (name, _), (verdict, reason) in zip(named, verdicts, strict=True):
        found.setdefault(verdict, []).append(name)
        if reason:
            why[name] = reason
    found["extra"] = [name for name in present if name not in manifest.files]
    fields = {what: tuple(names) for what, names in found.items()}
    return replace(Verification(where, why=why), **fields)  # type: ignore[arg-type]


def compare_file(file: Any, record: Record) -> tuple[str, str]:
    """Return the field of :class:`Verification` in which an open file belongs, and the reason or ""."""
    if file.size != record.size:
        return "cut", f"{file.size} bytes, saved were {record.size}"
    if record.checksum is None:
        return "unchecked", ""
    if hashing.hash_file(file, record.checksum.partition(":")[0]) != record.checksum:
        return "changed", ""
    return "good", ""


def check(path: str, record: Record, buffers: Iterable[hashing.Buffer]) -> None:
    """Compare the bytes of a file, as they were read, with the record of its save.

    Raises
    ------
    StorageError
        They differ; or no checksum was computed when the file was saved.
    """
    if record.checksum is None:
        raise StorageError(f"{path} cannot be verified: no checksum was computed when it was saved")
    algorithm = record.checksum.partition(":")[0]
    found = hashing.hash_buffers(buffers, algorithm)
    if found != record.checksum:
        raise StorageError(
            f"{path} is not what was saved: {found}, the manifest has {record.checksum}",
            hint="the file was damaged or replaced after the save",
        )


def cover_with_pieces(record: Record, offset: int, size: int) -> tuple[int, int] | None:
    """Return the range of bytes, from and to, to read for checking ``size`` bytes from ``offset``.

    None where the record has no checksums of pieces: then only the whole file can be checked.

    >>> record = Record(3 << 20, "xxh3_128:...", (0, 0), pieces=("a", "b", "c"))
    >>> cover_with_pieces(record, (1 << 20) + 5, 7)
    (1048576, 2097152)
    """
    if not record.pieces:
        return None
    start = offset // hashing.PIECE * hashing.PIECE
    stop = -(-(offset + size) // hashing.PIECE) * hashing.PIECE
    return start, min(max(stop, start), record.size)


def check_pieces(path: str, record: Record, start: int, data: hashing.Buffer) -> None:
    """Compare the bytes from ``start`` on, a range of :func:`cover_with_pieces`, with the record.

    Raises
    ------
    StorageError
        They differ.
    """
    view = memoryview(data).cast("B")
    first = start // hashing.PIECE
    for index, at in enumerate(range(0, len(view), hashing.PIECE), first):
        piece = hashing.hash_bytes(bytes(view[at : at + hashing.PIECE]))
        if index >= len(record.pieces) or piece != f"xxh3_128:{record.pieces[index]}":
            raise StorageError(
                f"{path} is not what was saved: bytes {index * hashing.PIECE} to "
                f"{index * hashing.PIECE + len(view[at : at + hashing.PIECE])} differ from the manifest",
                hint="the file was damaged or replaced after the save",
            )


def describes(root: str, records: Mapping[str, Record], differing: Iterable[str]) -> bool:
    """Return whether the manifest is of the files in ``root``, though the files ``differing`` do not fit it.

    False: it is of another save. Then the manifest was copied over, or the files were restored from a backup
    or saved by another program since, such as Paddle itself. That is assumed of several files when not one
    has its recorded inode and time of writing, and either more than half of them do not fit, or all were
    written at least a second after the manifest. Otherwise the files that do not fit are damaged; so is a
    single file.
    """
    wrong = sum(1 for _ in differing)
    if not wrong or len(records) < 2:
        return True
    if any(_is_still(os.path.join(root, name), record) for name, record in records.items()):
        return True
    if wrong > 1 and 2 * wrong > len(records):
        return False
    return not _were_written_after(
        os.path.join(root, MANIFEST), [os.path.join(root, name) for name in records]
    )


def _were_written_after(manifest: str, paths: Iterable[str]) -> bool:
    try:
        end = os.lstat(manifest).st_mtime_ns + _MARGIN
        return all(os.lstat(path).st_mtime_ns > end for path in paths)
    except OSError:
        return False


def _is_still(path: str, record: Record) -> bool:
    try:
        return record.is_still(os.lstat(path))
    except OSError:
        return False
