"""Text files of collections: finding blocks, and writing a file as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path as FilePath

from paddlelike.errors import FormatError, LoadError, MissingFileError, SaveError
from paddlelike.formats.dynet import Block, encode, read_blocks
from paddlelike.storage.local.filesystem.file import File
from paddlelike.storage.local.transaction import write_all
from paddlelike.storage.location import find_near_file

__all__ = ["blocks_below", "check_key", "check_shape", "find", "read", "read_bytes", "write"]

Path = str | os.PathLike[str]


def read(filename: Path) -> list[Block]:
    """Return every block of a text file.

    Raises MissingFileError when there is no such file, StorageError when it cannot be read, and FormatError,
    naming it, when it is damaged.
    """
    data = read_bytes(filename)
    try:
        return list(read_blocks(data))
    except FormatError as error:
        raise FormatError(f"{os.fspath(filename)}: {error.message}", hint=error.hint) from None


def read_bytes(filename: Path) -> bytes:
    """Return the bytes of a file. Raises MissingFileError when there is none, StorageError for a pipe."""
    if not FilePath(filename).exists():
        raise MissingFileError(f"no such file: {os.fspath(filename)}", hint=find_near_file(filename))
    with File(filename) as file:
        return file.read()


def find(filename: Path, kind: str, key: str) -> Block:
    """Return the first block of that kind and name.

    Raises ValueError for an empty key, LoadError when there is none.
    """
    if not key:
        raise ValueError("populate needs the key of a block, such as '/w'")
    blocks = read(filename)
    for block in blocks:
        if (block.kind, block.name) == (kind, key):
            return block
    names = [block.name for block in blocks if block.kind == kind]
    other = any(block.name == key for block in blocks)
    raise LoadError(
        f"{os.fspath(filename)} has no {kind.strip('#')} {key!r}"
        + (", but one of the other kind" if other else ""),
        hint=f"it has {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}" if names else None,
    )


def blocks_below(blocks: Iterable[Block], key: str) -> list[Block]:
    """Return the blocks whose names are below the path ``key``; ``/s_1/w`` is not below ``/s``."""
    prefix = key if key.endswith("/") else key + "/"
    return [block for block in blocks if block.name.startswith(prefix)]


def check_key(key: str, *, of_collection: bool = False) -> None:
    """Raise ValueError for a key that a file cannot hold."""
    if any(character in key for character in " #\n\t\r") or key == "/":
        raise ValueError(
            f"the key {key!r} is refused: a key is not '/' and holds neither white space nor '#'"
        )
    if of_collection and key and not key.startswith("/"):
        raise ValueError(f"the key {key!r} of a collection must start with '/'")


def check_shape(block: Block, kind: str, name: str, shape: tuple[int, ...]) -> None:
    """Raise LoadError when a block has another kind or shape."""
    if block.kind != kind or block.values.shape != shape:
        raise LoadError(
            f"{block.name} in the file has shape {block.values.shape} ({block.kind.strip('#')}), "
            f"{name} has {shape} ({kind.strip('#')})"
        )


def write(filename: Path, blocks: list[Block], *, append: bool = False) -> None:
    """Write blocks into a text file: replace it or, with ``append``, add to its end.

    Raises SaveError when two blocks would have one kind and name, or when a value or the file cannot be
    written. The file is then unchanged.
    """
    earlier = read(filename) if append and FilePath(filename).exists() else []
    seen: set[tuple[str, str]] = set()
    for block in [*earlier, *blocks]:
        if (block.kind, block.name) in seen:
            raise SaveError(
                f"{os.fspath(filename)} would hold {block.kind.strip('#')} {block.name} twice; "
                "DyNet would load the first for both",
                hint="save one of them under a key of its own",
            )
        seen.add((block.kind, block.name))
    try:
        pieces = list(encode([*earlier, *blocks]))
    except FormatError as error:
        raise SaveError(f"nothing was saved: {error.message}", hint=error.hint) from None
    directory, name = os.path.split(os.fspath(filename))
    write_all(directory or ".", {name: pieces})
