"""Find a model of Paddle 2 or 3 as its own loaders do, by the prefix of its files or by one of them.

``PREFIX.pdmodel`` (Paddle 2) or ``PREFIX.json`` (Paddle 3) is the program, ``PREFIX.pdiparams`` the values.
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from paddlelike.formats.paddle.recognize import is_pir
from paddlelike.storage.location import Location, locate, locate_prefix
from paddlelike.storage.names import is_remote

PROGRAMS: Final = (".pdmodel", ".json")
VALUES: Final = ".pdiparams"
_HEAD: Final = 64


class Model(NamedTuple):
    """A directory, and the names of the program and of the file of all values in it, or None for a missing
    one.
    """

    directory: str
    program: str | None
    values: str | None


def find_model(path: str | os.PathLike[str]) -> Model | None:
    """Return the model that a prefix, a file or a directory names, or None without one. A directory must hold
    exactly one model's program, and no ``__model__``. URLs and the files of ``fluid.save`` name no model.
    """
    text = os.fsdecode(path)
    if is_remote(text):  # each look costs a request or a process there
        return None
    where = locate(text)
    if where.exists():
        names = where.list_names()
        programs = [name for name in names if name.endswith(PROGRAMS) and "/" not in name]
        stems = {os.path.splitext(name)[0] for name in programs}
        stems = {stem for stem in stems if _find_program(where, stem) is not None}
        return None if len(stems) != 1 or "__model__" in names else _find_files(where, *stems)
    folder, name = locate_prefix(text)
    stem, end = os.path.splitext(name)
    if not name or not folder.exists():
        return None
    if end in (*PROGRAMS, VALUES) and folder.has(name):
        return _find_files(folder, stem, name if end in PROGRAMS else None)
    return _find_files(folder, name)


def _find_files(where: Location, stem: str, program: str | None = None) -> Model | None:
    if where.has(f"{stem}.pdparams") and not where.has(f"{stem}{VALUES}"):
        return None  # fluid.save wrote it
    program = program or _find_program(where, stem)
    values = f"{stem}{VALUES}" if where.has(f"{stem}{VALUES}") else None
    if program is not None and not _is_program(where, program):
        program = None
    return None if program is None and values is None else Model(where.path or ".", program, values)


def _find_program(where: Location, stem: str) -> str | None:
    names = (f"{stem}{end}" for end in PROGRAMS if where.has(f"{stem}{end}"))
    return next((name for name in names if _is_program(where, name)), None)


def _is_program(where: Location, name: str) -> bool:
    """Return whether a file may be a program; a ``.json`` file must begin like a program of Paddle 3."""
    if not name.endswith(".json"):
        return True
    with where.open_file(name) as file:
        return is_pir(bytes(file.read_at(0, _HEAD)))
