"""Comparison of saved files with their manifest."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Final

from paddlelike.foundation.amounts import format_count
from paddlelike.foundation.display import Displayed
from paddlelike.foundation.progress import show_progress
from paddlelike.lazy import dataclass
from paddlelike.storage import hashing
from paddlelike.storage.manifest import Author, Manifest, Record
from paddlelike.storage.names import MANIFEST
from paddlelike.storage.threads import map_in_threads

_MARGIN: Final = 1_000_000_000  # nanoseconds: longer than copying a directory takes from one file to the next
_SLOW_FILE: Final = 5_000_000  # nanoseconds to create a file on a slow disk
_SLOW_BYTE: Final = 50  # nanoseconds to write each byte there


@dataclass(frozen=True, repr=False)
class Verification(Displayed):
    """The result of comparing a directory with its manifest; true when every file is as it was saved.

    Attributes
    ----------
    directory
        The directory that was compared.
    good
        Files whose size and checksum match the manifest.
    missing
        Files of the manifest that do not exist.
    cut
        Files of another size.
    changed
        Files of the right size with other bytes.
    extra
        Files that are not in the manifest.
    unchecked
        Files of the right size whose checksum was not computed when they were saved.
    problem
        The reason why nothing can be compared: the manifest is missing or damaged.
    why
        The reasons for some of the names above.

    >>> import pathlib, tempfile
    >>> import paddlelike as fluid
    >>> hidden = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> exe, home = fluid.Executor(), pathlib.Path(tempfile.mkdtemp())
    >>> _ = exe.run(fluid.default_startup_program())
    >>> _ = fluid.io.save_persistables(exe, home)
    >>> (home / "fc_0.b_0").unlink()
    >>> found = fluid.io.verify(home)
    >>> bool(found), found.good, found.missing
    (False, ('fc_0.w_0',), ('fc_0.b_0',))
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

    def __repr__(self) -> str:
        return f"<Verification: {str(self).partition(chr(10))[0]}>"

    def __str__(self) -> str:
        if self.problem:
            return f"{self.directory} cannot be verified: {self.problem}"
        are = "is as it was" if len(self.good) == 1 else "are as they were"
        lines = [f"{self.directory}: {format_count(len(self.good), 'file')} {are} saved"]
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
    the existing files; those that the manifest lacks are extra.
    """
    named = sorted(manifest.files.items())
    with show_progress(f"verifying {where}", (record.size for _, record in named)):
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
    """Return the field of :class:`Verification` for an open file, and the reason or ""."""
    if file.size != record.size:
        return "cut", f"{file.size} bytes, saved were {record.size}"
    if record.algorithm is None:
        return "unchecked", ""
    if hashing.hash_file(file, record.algorithm).text != record.checksum:
        return "changed", ""
    return "good", ""


def describes(root: str, records: Mapping[str, Record], differing: Iterable[str]) -> bool:
    """Return whether the manifest belongs to the files in ``root``, although the ``differing`` ones do not
    match it. If not, the manifest was copied from elsewhere, or the files were restored from a backup or
    saved by another program, such as Paddle. This is assumed of several files if none has its recorded inode
    and time of writing, and either more than half of them differ, or all were written in one go at least a
    second after the manifest. Otherwise the differing files are damaged; so is a single file. Files with a
    recorded time were not written after it, even if the clock of another machine dates them later.
    """
    wrong = sum(1 for _ in differing)
    if not wrong or len(records) < 2:
        return True
    if any(is_still(os.path.join(root, name), record) for name, record in records.items()):
        return True
    if wrong > 1 and 2 * wrong > len(records):
        return False
    return not _were_saved_after(root, records)


def _were_saved_after(root: str, records: Mapping[str, Record]) -> bool:
    """Return whether all files were written after the manifest, within the time that a slow save takes."""
    try:
        end = os.lstat(os.path.join(root, MANIFEST)).st_mtime_ns + _MARGIN
        facts = [os.lstat(os.path.join(root, name)) for name in records]
    except OSError:
        return False
    times = [each.st_mtime_ns for each in facts]
    if any(time == record.stamp[1] for time, record in zip(times, records.values(), strict=True)):
        return False
    most = _MARGIN // 5 + _SLOW_FILE * len(facts) + _SLOW_BYTE * sum(each.st_size for each in facts)
    return min(times) > end and max(times) - min(times) <= most


def is_still(path: str, record: Record) -> bool:
    """Return whether a file is the saved one, judged by its inode, size and modification time."""
    try:
        return record.is_still(os.lstat(path))
    except OSError:
        return False


def find_stale(others: Mapping[str, Record], author: Author) -> Iterator[str]:
    """Yield the stale files among those that a save by ``author`` does not write.

    >>> records = {"a": Record(1, None, (0, 0), author=Author("5f", "params"))}
    >>> list(find_stale(records, Author("5f", "params"))), list(find_stale(records, Author("77", "params")))
    (['a'], [])
    """
    if author.program is None or author.part is None:
        return
    for path, record in others.items():
        # S13
        if record.author.program == author.program:
            yield path


def find_superseded(others: Mapping[str, Record], saved: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the files that a save replaces by files of the same variables with other names.

    A variable is stored in a file of its name or in a chain of links, whose facts have ``link``. Saving one
    form supersedes the other; saving a chain supersedes the links that are not in the save. ``saved`` are the
    facts of the save's files.

    >>> whole, link = {"variable": "w"}, {"variable": "w", "link": {}}
    >>> records = {"w": Record(1, None, (0, 0), whole), "w.0": Record(1, None, (0, 0), link)}
    >>> find_superseded({"w": records["w"]}, [link]), find_superseded({"w.0": records["w.0"]}, [whole])
    (['w'], ['w.0'])
    >>> find_superseded({"again/w": records["w"]}, [whole])
    []
    """
    if not others:
        return []
    chained = {str(facts["variable"]): "link" in facts for facts in saved if "variable" in facts}
    found = []
    for path, record in others.items():
        variable = str(record.facts.get("variable"))
        if variable in chained and (chained[variable] or "link" in record.facts):
            found.append(path)
    return found
