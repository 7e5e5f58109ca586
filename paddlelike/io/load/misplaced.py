"""Find the intended path when a load finds nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from paddlelike.errors import FormatError, LoadError, MissingFileError, PaddlelikeError
from paddlelike.formats import registry
from paddlelike.formats.explain import HEAD, explain, explain_names
from paddlelike.foundation.near_names import suggest_names
from paddlelike.io.load.request import LoadRequest
from paddlelike.io.load.source import Source
from paddlelike.storage.location import Location, locate
from paddlelike.storage.names import is_remote

_MANY = 50  # number of files and directories to try


def explain_misplaced(request: LoadRequest) -> LoadError | None:
    """Return the error for a directory without files of the variables, if one below it has them."""
    assert request.source.where is not None
    directory, names = request.source.path, request.source.where.list_names()
    saved = list_prefixes(directory, names)
    if foreign := explain_names(names):
        return MissingFileError(f"{directory} holds no file of these variables", hint=foreign)
    if saved:
        return MissingFileError(
            f"{directory} holds {saved[0][0]}, which fluid.save wrote, not one file for each variable",
            hint=f"fluid.load(program, {saved[0][1]!r})",
        )
    alone = len(request.variables) == 1  # a model's own file resembles a combined one
    for name in [name for name in names if "/" not in name and not alone][:_MANY]:
        if _fits(request, replace(request.source, filename=name)):
            return MissingFileError(
                f"{directory} holds one combined file, {name!r}, not one file for each variable",
                hint=f"pass filename={name!r}",
            )
    below = sorted({name.partition("/")[0] for name in names if "/" in name}, key=_make_natural_key)
    for name in below[::-1][:_MANY]:
        if _fits(request, Source(locate(f"{directory}/{name}"))):
            others = f" ({len(below)} directories: {', '.join(below[:3])}, ...)" if len(below) > 1 else ""
            return MissingFileError(
                f"{directory} has no files of these variables, but directories in it do{others}",
                hint=f"did you mean {directory}/{name}?",
            )
    return None


def list_prefixes(directory: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the files of a directory that ``fluid.save`` wrote, each with the path for ``fluid.load``."""
    ends = (".pdparams", ".pdopt")
    return [(name, f"{directory}/{name.rpartition('.')[0]}") for name in names if name.endswith(ends)]


def suggest_prefix(path: str) -> str:
    """Return a hint for a ``path`` under which ``fluid.save`` wrote nothing."""
    folder = os.path.dirname(path) or "."
    if is_remote(path):
        return "check the path"
    if not os.path.isdir(folder):
        return f"there is no directory {folder}: check the path"
    for one in (path, f"{path}.pdparams"):
        if os.path.exists(one) and not (os.path.isfile(one) or os.path.isdir(one)):
            return f"{one} is not a file: no pipe, socket or device is read"
    if foreign := explain_prefix(path):
        return foreign
    for one in (f"{path}.pdparams", f"{path}.pdparams.pdparams"):
        if one.endswith(".pdparams.pdparams") and os.path.isfile(one):
            return f"the file is {one}; pass its whole name: a last .pdparams is not part of the prefix"
    begin = os.path.join(os.path.dirname(path), "")
    names = [name.removesuffix(".pdparams") for name in os.listdir(folder) if name.endswith(".pdparams")]
    saved = sorted(begin + name for name in names)
    if len(saved) == 1:
        return f"did you mean {saved[0]!r}?"
    return suggest_names(path, saved, count=1) or "check the path"


def explain_prefix(path: str) -> str | None:
    """Return a next step if other systems' files begin with ``path``, else None."""
    folder, base = os.path.split(path)
    if is_remote(path) or not base:
        return None
    try:
        names = os.listdir(folder or ".")
    except OSError:  # missing, or not to be listed
        return None
    return explain_names(name for name in names if name.startswith(f"{base}."))


def check_tensor_file(where: Location, name: str) -> None:
    """Raise FormatError for a file that is recognized as something other than variables, such as a
    picture.
    """
    with where.open_file(name) as file:
        head, size = bytes(file.read_at(0, HEAD)), file.size
    found = explain(head, size) if registry.sniff_head(head, size) is None else None
    if found is not None:
        raise FormatError(f"{os.path.join(where.path, name)} holds no variables", hint=found)


def _fits(request: LoadRequest, source: Source) -> bool:
    """Return whether a load from another source would succeed."""
    try:
        return bool(request.plan(source.open()))
    except (PaddlelikeError, ValueError, OSError):
        return False


def _make_natural_key(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts ``epoch_10`` after ``epoch_9``."""
    return list(_split_numbers(name))


def _split_numbers(name: str) -> Iterator[tuple[int, str]]:
    for part in re.split(r"(\d+)", name):
        yield (int(part), "") if part.isdigit() else (-1, part)
