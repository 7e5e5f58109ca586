"""Comparison of what is converted with the manifest of its save, so that damage is not copied unseen.

The copy would get checksums of its own, which fit the damaged values.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from paddlelike.formats import registry
from paddlelike.formats.base import SNIFF_BYTES
from paddlelike.formats.state.fluid_save import FluidSave
from paddlelike.foundation.warn import warn_user
from paddlelike.io import asynchronous
from paddlelike.io.contents.compare import compare_file
from paddlelike.io.verify import NO_COMPARISON, Comparison, check_problems, choose_comparison
from paddlelike.storage.location import Location, locate, locate_prefix
from paddlelike.storage.threads import map_in_threads

__all__ = ["list_damage", "refuse_damage"]

_MODEL = ".pdmodel"


def refuse_damage(path: str, *, verify: bool = True) -> None:
    """Wait for a running save, then compare the files under a path with their manifest, if there is one.

    Parameters
    ----------
    path
        A directory, a file in one, or a prefix of ``fluid.save``.
    verify
        False: only wait.

    Raises
    ------
    LoadError
        Files are not what was saved.
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
    """Return a line for every file under a path that is not what was saved."""
    asynchronous.wait_for_pending()
    return _compare(path).bad


class _Found(NamedTuple):
    """What a comparison has found: lines for bad files, names of missing ones, how many were compared."""

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
    """Return what differs from the checksums that the format of a file has itself."""
    with where.open_file(name) as file:
        known = registry.sniff_head(bytes(file.read_at(0, SNIFF_BYTES)), file.size)
        damage = None if known is None else known.find_damage(file)
    return [] if damage is None else [f"{name}: {damage}"]


def _find_manifest(path: str) -> tuple[Location, str | None, Comparison]:
    """Return where the files of a path are, the one file if it is one, and the records of all."""
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
