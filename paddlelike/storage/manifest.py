"""The manifest of a saved directory: what each of its files is, beside the directory, in JSON.

``DIR.manifest.json``, written with every save and put in its place in the same step as the files::

    {"format": 1, "library": "0.1.0", "time": "2024-05-01T12:00:00Z", "program": "9f86d0...",
    "commit": [".", 5242], "beside": false, "part": "persistables",
    "files": {
    "fc_0.w_0": {"variable": "fc_0.w_0", "kind": "lod_tensor", "dtype": "FP32", "shape": [13, 1], "lod": [],
                 "size": 80, "stamp": [5243, 1714564800000000000], "sha256": "2c26b4..."}},
    "digest": "e3b0c4..."}

``stamp`` is the inode and the time of writing, by which a later save knows that a file is still the one
that was saved. ``commit`` is the path and inode by which a reader knows whether a save that was killed came
to its commit: ``DIR.manifest.json.next`` then is the manifest. ``digest`` is the sha256 of all before it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from paddlelike.errors import FormatError, StorageError
from paddlelike.storage import hashing
from paddlelike.storage.local.files import THREADS, File, Path, list_names
from paddlelike.storage.local.journal import recover
from paddlelike.storage.local.siblings import Siblings
from paddlelike.storage.names import relative_path

__all__ = [
    "Manifest",
    "Record",
    "Verification",
    "check",
    "compared",
    "decode",
    "encode",
    "is_committed",
    "path_of",
    "read",
    "settle",
    "sorted_out",
    "stamp_of",
    "verify",
]

FORMAT: Final = 1
_MOST: Final = 1 << 30  # bytes: three million files
_DAMAGE: Final = (
    LookupError, ValueError, TypeError, AttributeError, OverflowError, RecursionError, StorageError,
)  # fmt: skip


class Record(NamedTuple):
    """What was saved in one file."""

    size: int
    checksum: str | None  # "sha256:<hex>", "crc32:<hex>", or None: not taken
    stamp: tuple[int, int]  # inode, mtime in nanoseconds
    facts: Mapping[str, Any] = {}  # variable, kind, dtype, shape, lod: whatever the saver said
    parts: tuple[str, ...] | None = None  # see ``storage.parts``; None: those of the save that is under way

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
    beside: bool = False  # the files lie beside the manifest, their names begin as its name does
    state: Any = None  # what the saver put with the files: the epoch, the step ...


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
                why = f" ({self.why[name]})" if name in self.why else ""
                lines.append(f"  {what}: {name}{why}")
        return "\n".join(lines)


def path_of(directory: Path) -> str:
    """Where the manifest of ``directory`` lies.

    >>> path_of("/data/model")
    '/data/model.manifest.json'
    """
    return Siblings.of(directory).manifest


def encode(
    files: Mapping[str, Record],
    *,
    program: str | None = None,
    commit: tuple[str, int] | None = None,
    beside: bool = False,
    state: Any = None,
    part: str | None = None,
) -> bytes:
    """The bytes of a manifest; ``state`` is whatever JSON can say, ``part`` what most files belong to."""
    front = {
        "format": FORMAT,
        "library": getattr(sys.modules.get("paddlelike"), "__version__", None),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "program": program,
        "commit": commit,
        "beside": beside,
        "part": part,
        "files": {path: _plain(path, record) for path, record in sorted(files.items())},
    }
    text = json.dumps(front, ensure_ascii=False, separators=(",", ":"))
    text = text[:-1].replace('},"', '},\n"').replace('"files":{', '\n"files":{\n', 1)
    if state is not None:
        text += ',\n"state":' + json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    data = text.encode("utf-8", "surrogatepass")
    return data + _tail(data)


def decode(data: bytes) -> Manifest:
    """Parse a manifest.

    Raises
    ------
    FormatError
        It is damaged, or no manifest.
    """
    body, tail = data[:-_TAIL], data[-_TAIL:]
    if _tail(body) != tail:
        raise FormatError(
            f"a manifest of {len(data)} bytes is damaged: its digest does not fit, so nothing in it counts",
            hint="the files themselves may be good; save again to have a manifest",
        )
    try:
        front = json.loads(body.decode("utf-8", "surrogatepass") + "}")
        if front["format"] != FORMAT:
            raise FormatError(f"the manifest is of format {front['format']!r}, this library reads {FORMAT}")
        part = _text(front.get("part"))
        parts = None if part is None else (part,)
        files = {path: _record(path, entry, parts) for path, entry in front["files"].items()}
        return Manifest(
            files=files,
            program=_text(front["program"]),
            library=_text(front["library"]),
            time=_text(front["time"]),
            commit=_commit(front["commit"]),
            beside=bool(front["beside"]),
            state=front.get("state"),
        )
    except FormatError:
        raise
    except _DAMAGE as error:
        raise FormatError(f"a manifest cannot be understood: {error!r:.200}") from error


def _text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{value!r:.50} is no text")
    return value


def _commit(value: Any) -> tuple[str, int] | None:
    if value is None:
        return None
    path, inode = value
    if path != "." and relative_path(path) != path:
        raise ValueError(f"{path!r:.50} is no path of a file")
    return path, int(inode)


def read(directory: Path) -> Manifest | None:
    """The manifest of ``directory`` (or of files whose names begin with that path); None: it has none.

    Raises
    ------
    FormatError
        The manifest is damaged, or no manifest.
    """
    siblings = Siblings.of(directory)
    recover(siblings.base)
    coming = _read(siblings.next)
    if coming is not None:
        with contextlib.suppress(FormatError):  # cut: its save did not come to the commit
            manifest = decode(coming)
            if is_committed(siblings, manifest):
                return _own(siblings, manifest)
    present = _read(siblings.manifest)
    return None if present is None else _own(siblings, decode(present))


def _own(siblings: Siblings, manifest: Manifest) -> Manifest:
    """The manifest, if it speaks of files of its own only: one from elsewhere may name any file beside it."""
    if manifest.beside:
        for path in manifest.files:
            if not siblings.is_beside(path):
                raise FormatError(f"the manifest of {siblings.base} names {path!r}, which is somebody else's")
    return manifest


def settle(siblings: Siblings) -> None:
    """Put the manifest of the last save that was committed into its place. The lock is held."""
    coming = _read(siblings.next)
    if coming is None:
        return
    try:
        committed = is_committed(siblings, decode(coming))
    except FormatError:
        committed = False
    if committed:
        os.replace(siblings.next, siblings.manifest)
    else:
        os.unlink(siblings.next)


def is_committed(siblings: Siblings, manifest: Manifest) -> bool:
    """Whether the files are those that this manifest was written for."""
    if manifest.commit is None:
        return False  # the journal settles these
    path, inode = manifest.commit
    root = siblings.parent if manifest.beside else siblings.base
    try:
        return os.lstat(root if path == "." else os.path.join(root, path)).st_ino == inode
    except OSError:
        return False


def verify(directory: Path) -> Verification:
    """Compare every file of ``directory`` with the manifest: sizes first, then checksums, several at once.

    A link in place of a file is not what was saved, wherever it leads; other links are extra.

    Raises
    ------
    StorageError
        There is no such directory, or a file cannot be read.
    """
    siblings = Siblings.of(directory)
    root = siblings.base
    try:
        manifest = read(directory)
    except FormatError as error:
        return Verification(root, problem=f"{siblings.manifest}: {error.message}")
    if manifest is not None and manifest.beside:
        root, present = siblings.parent, []
    else:
        present = list_names(root, linked_folders=True)
    if manifest is None:
        return Verification(
            siblings.base, extra=tuple(present), problem=f"it has no manifest ({siblings.manifest})"
        )
    return sorted_out(siblings.base, manifest, present, lambda name, record: _judge(root, name, record))


def sorted_out(
    where: str, manifest: Manifest, present: Iterable[str], judge: Callable[[str, Record], tuple[str, str]]
) -> Verification:
    """Judge every file of a manifest, several at once; ``judge`` gives a verdict, and why."""
    with ThreadPoolExecutor(THREADS, "paddlelike-verify") as pool:
        named = sorted(manifest.files.items())
        verdicts = list(pool.map(lambda item: judge(*item), named, chunksize=64))
    found: dict[str, list[str]] = {}
    why = {}
    for (name, _), (verdict, reason) in zip(named, verdicts, strict=True):
        found.setdefault(verdict, []).append(name)
        if reason:
            why[name] = reason
    found["extra"] = [name for name in present if name not in manifest.files]
    fields = {what: tuple(names) for what, names in found.items()}
    return replace(Verification(where, why=why), **fields)  # type: ignore[arg-type]


def check(path: str, record: Record, parts: Iterable[hashing.Buffer]) -> None:
    """Compare the bytes of a file, as they were read, with the record of its save.

    Raises
    ------
    StorageError
        They are others; or nothing can be said, because no checksum was taken.
    """
    if record.checksum is None:
        raise StorageError(f"{path} cannot be verified: no checksum was taken when it was saved")
    algorithm = record.checksum.partition(":")[0]
    found = hashing.of_parts(parts, algorithm)
    if found != record.checksum:
        raise StorageError(
            f"{path} is not what was saved: {found}, the manifest says {record.checksum}",
            hint="the file was damaged or replaced after the save",
        )


def stamp_of(facts: os.stat_result) -> tuple[int, int]:
    """Inode and time of writing."""
    return facts.st_ino, facts.st_mtime_ns


def _judge(root: str, name: str, record: Record) -> tuple[str, str]:
    path = os.path.join(root, name)
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return "missing", ""
    if stat.S_ISLNK(mode):
        return "missing", f"there is a link to {os.readlink(path)!r}"
    if not stat.S_ISREG(mode):
        return "missing", "what is there is no file"
    with File(path) as file:
        return compared(file, record)


def compared(file: Any, record: Record) -> tuple[str, str]:
    """The verdict on an open file, of whatever place, and why."""
    if file.size != record.size:
        return "cut", f"{file.size} bytes, saved were {record.size}"
    if record.checksum is None:
        return "unchecked", ""
    if hashing.of_file(file, record.checksum.partition(":")[0]) != record.checksum:
        return "changed", ""
    return "good", ""


def _plain(path: str, record: Record) -> dict[str, Any]:
    entry = {**record.facts, "size": record.size, "stamp": record.stamp}
    if record.checksum is not None:
        algorithm, _, digest = record.checksum.partition(":")
        entry[algorithm] = digest
    if record.parts is not None:
        entry["parts"] = record.parts
    return entry


def _record(path: str, entry: dict[str, Any], parts: tuple[str, ...] | None) -> Record:
    if relative_path(path) != path:
        raise ValueError(f"{path!r} is no path of a file")
    facts = dict(entry)
    size, stamp = int(facts.pop("size")), facts.pop("stamp")
    if "parts" in facts:
        parts = tuple(str(part) for part in facts.pop("parts"))
    checksum = None
    for algorithm in hashing.ALGORITHMS:
        digest = facts.pop(algorithm, None)
        if digest is not None:
            checksum = f"{algorithm}:{digest}"
    return Record(size, checksum, (int(stamp[0]), int(stamp[1])), facts, parts)


def _tail(body: bytes) -> bytes:
    return b',\n"digest":"%s"}\n' % hashlib.sha256(body).hexdigest().encode()


def _read(path: str) -> bytes | None:
    try:
        if not os.path.lexists(path):
            return None
        with File(path) as file:
            return file.read(_MOST)
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):  # settled at this moment
            return None
        raise


_TAIL: Final = len(_tail(b""))
