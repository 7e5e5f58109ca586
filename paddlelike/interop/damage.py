"""Compare the source of a conversion with its manifest, so that damage is not copied unnoticed.

The copy's new checksums would match the damaged values.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import NamedTuple

from paddlelike.formats import registry
from paddlelike.formats.base import SNIFF_BYTES
from paddlelike.formats.state.fluid_save import FluidSave
from paddlelike.foundation.warn import warn_user
from paddlelike.interop.content import Content, open_content
from paddlelike.io import asynchronous
from paddlelike.io.contents.compare import compare_file
from paddlelike.io.verify import NO_COMPARISON, Comparison, check_problems, choose_comparison, verify
from paddlelike.storage.location import Location, locate, locate_prefix
from paddlelike.storage.threads import map_in_threads
from paddlelike.storage.verification import Verification, compare_file as compare_record

_MODEL = ".pdmodel"


def refuse_damage(path: str, *, verify: bool = True) -> None:
    """Wait for a running save, then compare the files under a path with their manifest, if there is one.

    Parameters
    ----------
    path
        A directory, a file in one, or a prefix of ``fluid.save``.
    verify
        Whether to compare the files; if False, only wait.

    Raises
    ------
    LoadError
        Files differ from the save.
    """
    asynchronous.wait_for_pending()
    if not verify:
        return
    found = _compare(path)
    if found.missing:
        more = f" and {len(found.missing) - 8} more" if len(found.missing) > 8 else ""
        warn_user(f"{path} lacks files that were saved there: {', '.join(found.missing[:8])}{more}")
    check_problems(found.where, found.comparison, found.bad, shown=path, count=found.compared)


def list_damage(path: str) -> list[str]:
    """Return a line for every file under a path that differs from the saved one."""
    asynchronous.wait_for_pending()
    return _compare(path).bad


def verify_path(path: str) -> Verification:
    """Compare a directory, a file or the files of ``fluid.save`` under a prefix with their manifest.

    Raises
    ------
    MissingFileError
        The path does not exist.
    """
    if locate(path).exists():
        found_there = verify(path)
        if found_there.problem is None:
            return found_there
        with open_content(path) as content:
            return replace(found_there, problem=f"{found_there.problem}{_explain_empty(content)}")
    asynchronous.wait_for_pending()
    where, only, comparison = _find_manifest(path)
    chosen = None if only is None else {only}
    if comparison.records is None:
        with open_content(path) as content:  # raises if the path does not exist
            files = [file.name for file in content.files]
        directory = locate(os.path.dirname(path) or ".")  # its manifest may list the files of a prefix
        comparison = choose_comparison(directory, None, verify=None, lazy=False)
        if comparison.records is not None and not comparison.records.keys().isdisjoint(files):
            where, chosen = directory, set(files)
        else:
            comparison = NO_COMPARISON
    if comparison.records is None:
        damage = [one for name in files for one in _find_own_damage(where, name)]
        if damage:
            return Verification(path, changed=tuple(files), why=dict.fromkeys(files, "; ".join(damage)))
        return Verification(path, problem=f"no manifest says how it was saved{_explain_empty(content)}")
    found: dict[str, list[str]] = {}
    why = {}
    for name, record in comparison.records.items():
        if chosen is not None and name not in chosen:
            continue
        if not where.has(name):
            found.setdefault("missing", []).append(name)
            continue
        with where.open_file(name) as file:
            verdict, reason = compare_record(file, record)
        found.setdefault(verdict, []).append(name)
        why.update({name: reason} if reason else {})
    fields = {what: tuple(names) for what, names in found.items()}
    return replace(Verification(path, why=why), **fields)  # type: ignore[arg-type]


def _explain_empty(content: Content) -> str:
    """Return, in brackets, why no value could be read, or "" if one was read."""
    why = content.explain_unread() if content.is_empty else None
    return f" ({why})" if why else ""


class _Found(NamedTuple):
    """The result of a comparison: lines for bad files, names of missing files, and the count of compared
    files.
    """

    where: Location
    comparison: Comparison
    bad: list[str]
    missing: list[str]
    compared: int


def _compare(path: str) -> _Found:
    where, only, comparison = _find_manifest(path)
    records = {
        name: record
        for name, record in (comparison.records or {}).items()
        if record.checksum is not None and only in (None, name)
    }
    missing = [name for name in records if not where.has(name)]
    present = sorted(records.keys() - set(missing))
    problems = map_in_threads(
        lambda name: compare_file(name, lambda: where.open_file(name), records[name]), present
    )
    bad = [problem for problem in problems if problem is not None]
    if not present and only is not None:
        bad = _find_own_damage(where, only)
    return _Found(where, comparison, bad, missing, len(present))


def _find_own_damage(where: Location, name: str) -> list[str]:
    """Return the differences from checksums that the file format itself stores."""
    with where.open_file(name) as file:
        known = registry.sniff_head(bytes(file.read_at(0, SNIFF_BYTES)), file.size)
        damage = None if known is None else known.find_damage(file)
    return [] if damage is None else [f"{name}: {damage}"]


def _find_manifest(path: str) -> tuple[Location, str | None, Comparison]:
    """Return the location of the files under a path, the file if the path is one, and all manifest
    records.
    """
    directory = locate(path)
    if directory.exists():
        return directory, None, choose_comparison(directory, None, verify=None, lazy=False)
    beside, name = locate_prefix(path)
    if not beside.has(name):
        return beside, None, choose_comparison(beside, None, verify=None, lazy=False)
    prefix = path
    for suffix in (*FluidSave.suffixes, _MODEL):
        prefix = prefix.removesuffix(suffix)
    for where in (locate(os.path.dirname(path) or "."), locate_prefix(prefix)[0]):
        found = choose_comparison(where, None, verify=None, lazy=False)
        if found.records is not None and name in found.records:
            return where, name, found
    return beside, name, NO_COMPARISON
