"""The manifest of a saved directory: contents and author of each file, as a Paddle variable file.

``DIR/__manifest__`` is an int8 LoDTensor stream, because Paddle's own loaders read every file of a directory;
its elements are the bytes of this JSON, which is written in the same transaction as the files::

    {"format": 2, "library": "0.1.0", "time": "2024-05-01T12:00:00Z", "token": "9c1185a5c5e9fc54",
    "prefix": false, "authors": [{"program": "9f86d0...", "part": "persistables"}],
    "files": {
    "fc_0.w_0": {"variable": "fc_0.w_0", "kind": "lod_tensor", "dtype": "FP32", "shape": [13, 1], "lod": [],
                 "size": 80, "stamp": [5243, 1714564800000000000], "xxh3_128": "06b05a..."}},
    "state": {"epoch": 3},
    "digest": "e3b0c4..."}

``stamp`` is the inode and the time of writing, by which a later save recognizes an unchanged file. ``pieces``
(for files over 1 MiB) are the checksums of the pieces, see ``storage.hashing``. ``author`` is an index into
``authors``, by default 0, the author of the last save. ``token`` is random and identifies the save.
``digest`` is the sha256 of the text before it.

Format 3 continues an earlier manifest, which is stored unchanged beside the chains of deltas as
``__deltas__/__manifest__.N``. ``files`` holds the new records, ``gone`` the paths that no longer exist, and
``before`` the number N and the digest of the earlier manifest. That one may continue another; manifest 0 is
whole. So a save of a few rows does not write the records of all links.

Format 1 is plain JSON in the earlier place beside the directory, ``DIR.manifest.json``.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from paddlelike.core import VarType
from paddlelike.errors import FormatError, StorageError
from paddlelike.formats.paddle import lod_tensor
from paddlelike.lazy import dataclass
from paddlelike.storage.hashing import ALGORITHMS
from paddlelike.storage.names import is_plain, make_part_name, relative_path

_FORMAT: Final = 2
_CONTINUED: Final = 3
RESTORE: Final = "copy the whole directory again from where it was saved, or load another checkpoint"
_AGAIN: Final = "the files themselves may be good; save again to write a new manifest"
_DENSE: Final = ("variable", "kind", "dtype", "shape", "lod")  # the keys of nearly all files
_DENSE_KEYS: Final = frozenset(_DENSE)
_USUAL, *_OTHERS = ALGORITHMS
_DAMAGE: Final = (
    LookupError, ValueError, TypeError, AttributeError, OverflowError, RecursionError, StorageError,
)  # fmt: skip


@functools.cache
def _get_encoder() -> Callable[[object], str]:
    import json  # late: many directories have no manifest

    return json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _to_json(value: object) -> str:
    return _get_encoder()(value)


@functools.cache
def _get_quoter() -> Callable[[str], str]:
    """Return a function that encodes a text as :func:`_to_json` does, in a fifth of the time."""
    from json.encoder import encode_basestring  # late: many directories have no manifest

    return encode_basestring


class Author(NamedTuple):
    """The program that wrote a file."""

    program: str | None = None  # the fingerprint of the program
    part: str | None = None  # its selection, such as "persistables"; None if chosen one by one


NOBODY: Final = Author()


class Record(NamedTuple):
    """The record of one saved file."""

    size: int
    checksum: str | None  # "xxh3_128:<hex>", "sha256:<hex>", "crc32:<hex>", or None
    stamp: tuple[int, int]  # inode, mtime in nanoseconds
    facts: Mapping[str, Any] = {}  # variable, kind, dtype, shape, lod, as far as given
    pieces: tuple[str, ...] = ()  # the xxh3_128 of each piece of a large file
    author: Author = NOBODY
    parts: str = ""  # the xxh3_64 of each part, see storage.hashing

    @property
    def algorithm(self) -> str | None:
        """The algorithm of the checksum, or None without a checksum."""
        return None if self.checksum is None else self.checksum.partition(":")[0]

    def is_still(self, facts: os.stat_result) -> bool:
        """Return whether a file with this stamp and size is the saved file."""
        return stat.S_ISREG(facts.st_mode) and facts.st_size == self.size and make_stamp(facts) == self.stamp


@dataclass(frozen=True)
class Manifest:
    """A manifest that was read.

    Attributes
    ----------
    author
        The author of the last save.
    is_prefix
        Whether it describes the files that begin with its path, instead of the files of a directory.
    state
        The state that the saver stored with the files: the epoch, the step, ...
    token
        Identifies the save; None in manifests of format 1.
    parts
        The paths of the earlier manifests that it continues, the whole one first.
    digest
        The digest at the end of the file, by which a later manifest refers to it.
    """

    files: dict[str, Record]
    author: Author = NOBODY
    library: str | None = None
    time: str | None = None
    is_prefix: bool = False
    state: Any = None
    token: str | None = None
    parts: tuple[str, ...] = ()
    digest: str | None = None

    @property
    def program(self) -> str | None:
        """The fingerprint of the program of the last save."""
        return self.author.program


def make_stamp(facts: os.stat_result) -> tuple[int, int]:
    """Return the inode and the modification time of a file."""
    return facts.st_ino, facts.st_mtime_ns


def encode(
    files: Mapping[str, Record],
    *,
    author: Author = NOBODY,
    is_prefix: bool = False,
    state: Any = None,
    token: str | None = None,
    before: Manifest | None = None,
) -> bytes:
    """Return a manifest, which may continue ``before``, as the bytes of a Paddle variable file."""
    data = encode_json(files, author=author, is_prefix=is_prefix, state=state, token=token, before=before)
    return lod_tensor.encode_header(VarType.INT8, (len(data),)) + data


def encode_json(
    files: Mapping[str, Record],
    *,
    author: Author = NOBODY,
    is_prefix: bool = False,
    state: Any = None,
    token: str | None = None,
    before: Manifest | None = None,
) -> bytes:
    """Return a manifest as JSON; ``state`` is any value that JSON can hold."""
    more: dict[str, Any] = {"format": _FORMAT}
    if before is not None:
        gone = [path for path in before.files if path not in files]
        more = {"format": _CONTINUED, "before": [len(before.parts), before.digest], "gone": gone}
        files = {path: one for path, one in files.items() if one != before.files.get(path)}
    authors = {author: 0}
    for record in files.values():
        authors.setdefault(record.author, len(authors))
    front: dict[str, Any] = {
        **more,
        "library": library_version(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "token": token,
        "prefix": is_prefix,
        "authors": [each._asdict() for each in authors],
    }
    quote = _get_quoter()
    entries = ",".join(
        f"{quote(path)}:{_encode_entry(one, authors[one.author])}" for path, one in sorted(files.items())
    )
    end = "" if state is None else f',"state":{_to_json(state)}'
    text = f'{_to_json(front)[:-1]},"files":{{{entries}}}{end}'  # the last brace comes after the digest
    data = text.encode("utf-8", "surrogatepass")
    return data + _tail(data)


def decode(data: bytes, read: Callable[[str], bytes] | None = None) -> Manifest:
    """Parse a manifest: a variable file, or JSON. ``read`` returns the earlier manifests that it continues.

    Raises
    ------
    FormatError
        It is damaged or not a manifest, or an earlier manifest has another digest.
    """
    newest, earlier = _decode_one(data)
    changes, parts = [newest.files], []
    while earlier is not None:
        path = make_part_name(earlier.number)
        if read is None:
            raise FormatError(f"the manifest continues {path}, which is not supported")
        part, before = _decode_part(read(path))
        if part.digest != earlier.digest or earlier.number != (before.number + 1 if before else 0):
            raise FormatError(f"the manifest continues {path}, which is a different manifest", hint=_AGAIN)
        changes.append({**dict.fromkeys(earlier.gone), **changes.pop()})  # type: ignore[dict-item]
        changes.append(part.files)
        parts.append(path)
        earlier = before
    if not parts:
        return newest
    files: dict[str, Record | None] = {}
    for change in reversed(changes):
        files |= change
    held = {path: record for path, record in sorted(files.items()) if record is not None}
    return replace(newest, files=held, parts=tuple(reversed(parts)))


class _Earlier(NamedTuple):
    """A manifest that another one continues, and the files in it that no longer exist."""

    number: int
    digest: str
    gone: tuple[str, ...]


def _decode_one(data: bytes) -> tuple[Manifest, _Earlier | None]:
    """Parse one manifest, with only its own records."""
    text = memoryview(data) if data[:1] == b"{" else _find_elements(data)  # megabytes, not copied
    body, tail = text[:-_TAIL], bytes(text[-_TAIL:])
    # S9
    if _tail(body) != tail:
        raise FormatError(
            f"a manifest of {len(data)} bytes is damaged: its digest does not match, so it is not used",
            hint=_AGAIN,
        )
    try:
        import json  # late: many directories have no manifest

        front = json.loads(str(text, "utf-8", "surrogatepass"))
        if front["format"] not in (1, _FORMAT, _CONTINUED):
            raise FormatError(
                f"the manifest is of format {front['format']!r}; this library reads 1 to {_CONTINUED}"
            )
        if front["format"] == 1:
            return _parse_earlier(front), None
        found, earlier = replace(_parse(front), digest=tail[_DIGEST].decode()), None
        if front["format"] == _CONTINUED:
            (number, digest), gone = front["before"], front["gone"]
            earlier = _Earlier(int(number), str(digest), tuple(map(str, gone)))
        return found, earlier
    except FormatError:
        raise
    except _DAMAGE as error:
        raise FormatError(f"a manifest cannot be parsed: {error!r:.200}", hint=_AGAIN) from error


_decode_part: Final = functools.lru_cache(256)(_decode_one)  # they do not change


def is_complete(data: bytes) -> bool:
    """Return whether a manifest is complete. A manifest whose writer was killed is not.

    >>> is_complete(encode_json({})), is_complete(encode_json({})[:-5]), is_complete(b"")
    (True, False, False)
    """
    tail, form = data[-_TAIL:], _tail(b"")
    return tail[: _DIGEST.start] == form[: _DIGEST.start] and tail[_DIGEST.stop :] == form[_DIGEST.stop :]


def _find_elements(data: bytes) -> memoryview:
    """Return the bytes inside a manifest, which is a variable file.

    Raises
    ------
    FormatError
        It is damaged, or not a variable file.
    """
    try:
        header = lod_tensor.read_header(data)
    except FormatError as error:
        raise FormatError(
            f"a manifest of {len(data)} bytes is damaged: it is not a Paddle variable file",
            hint=_AGAIN,
        ) from error
    front = lod_tensor.encode_header(VarType.INT8, header.shape[:1])
    if header.surplus or data[: header.data_offset] != front:
        raise FormatError(
            f"a manifest of {len(data)} bytes is damaged: it does not begin with a manifest's header",
            hint=_AGAIN,
        )
    return memoryview(data)[header.data_offset :]


def library_version() -> str | None:
    """Return the version of this package, or None when only parts of it can be imported."""
    return getattr(sys.modules.get("paddlelike"), "__version__", None)


def measure(records: Iterable[Record]) -> int:
    """Return the approximate number of bytes of records in a manifest."""
    return sum(len(_encode_entry(record)) for record in records)


def _encode_entry(record: Record, author: int = 0) -> str:
    """Return the JSON of a record, quickly: there may be many thousands."""
    size, checksum, (inode, written), facts, pieces, _, parts = record
    quote = _get_quoter()
    if tuple(facts) == _DENSE and not facts["lod"]:
        name, kind, dtype, shape, _ = facts.values()
        try:
            front = f'{{"variable":{quote(name)},{_encode_dense(kind, dtype, tuple(shape))}'
        except TypeError:  # another writer's, of other types
            front = _to_json(facts)[:-1] + ","
    else:
        front = _to_json(facts)[:-1] + "," * bool(facts)
    text = f'{front}"size":{size},"stamp":[{inode},{written}]'
    if checksum is not None:
        algorithm, _, digest = checksum.partition(":")
        text = f'{text},"{algorithm}":{quote(digest)}'
    if pieces:
        text = f'{text},"pieces":{_to_json(pieces)}'
    if parts:
        text = f'{text},"parts":{_to_json(parts)}'
    return f'{text},"author":{author}}}' if author else text + "}"


@functools.lru_cache(4096)
def _encode_dense(kind: str, dtype: str, shape: tuple[int, ...]) -> str:
    return _to_json({"kind": kind, "dtype": dtype, "shape": shape, "lod": ()})[1:-1] + ","


def _parse(front: Mapping[str, Any]) -> Manifest:
    authors = [Author(_text(each["program"]), _text(each["part"])) for each in front["authors"]]
    return Manifest(
        files={path: _record(path, entry, authors) for path, entry in front["files"].items()},
        author=authors[0],
        library=_text(front["library"]),
        time=_text(front["time"]),
        is_prefix=bool(front["prefix"]),
        state=front.get("state"),
        token=_text(front["token"]),
    )


def _parse_earlier(front: Mapping[str, Any]) -> Manifest:
    """Parse format 1, in which the program of the last save counts as the author of all files."""
    author = Author(_text(front["program"]), _text(front.get("part")))
    files = {}
    for path, entry in front["files"].items():
        parts = entry.pop("parts", [author.part])
        part = _text(parts[0]) if len(parts) == 1 else None
        files[path] = _record(path, entry, [author._replace(part=part)])
    return Manifest(
        files,
        author,
        _text(front["library"]),
        _text(front["time"]),
        bool(front["beside"]),
        front.get("state"),
    )


def _record(path: str, facts: dict[str, Any], authors: list[Author]) -> Record:
    """Return the record of a file; it also keeps the ``facts`` that it has no field for."""
    if not is_plain(path) and relative_path(path) != path:
        raise ValueError(f"{path!r} is not the path of a file")
    take = facts.pop
    size, (inode, written) = int(take("size")), take("stamp")
    digest = take(_USUAL, None)
    checksum = None if digest is None else f"{_USUAL}:{digest}"
    if facts.keys() == _DENSE_KEYS:
        return Record(size, checksum, (int(inode), int(written)), facts, (), authors[0])
    index = int(take("author")) if "author" in facts else 0
    if index < 0:
        raise ValueError(f"author {index} is negative")
    pieces = tuple(map(str, take("pieces"))) if "pieces" in facts else ()
    parts = str(take("parts", ""))
    if not facts.keys().isdisjoint(_OTHERS):
        for algorithm in _OTHERS:  # the last one counts, in this order
            digest = take(algorithm, None)
            checksum = checksum if digest is None else f"{algorithm}:{digest}"
    return Record(size, checksum, (int(inode), int(written)), facts, pieces, authors[index], parts)


def _text(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{value!r:.50} is not text")
    return value


def _tail(body: bytes | memoryview) -> bytes:

    import hashlib  # late: it takes long

    return b',\n"digest":"%s"}\n' % hashlib.sha256(body).hexdigest().encode()


_TAIL: Final = 12 + 64 + 3  # bytes
_DIGEST: Final = slice(12, _TAIL - 3)  # of the tail
