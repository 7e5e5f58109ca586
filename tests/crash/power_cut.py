"""Directories as a power cut may leave them, built from the recorded calls of a save.

The calls are recorded (:mod:`tests.crash.tracer`), with the files between them. What was synced before
the cut stays. Of what was not: any names may be as they were before, in order (a file system with a journal)
or not (POSIX promises no order), a rename and an exchange each as one; any file may hold what it held at any
time since it was synced, cut, or with blocks that were never written.
"""

from __future__ import annotations

import contextlib
import os
import random
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple
from unittest import mock

from paddlelike.storage.local import journal
from tests.crash import tracer

__all__ = ["Recording", "old_inodes"]

_ROOT: Final = 0
_BLOCK: Final = 512  # bytes that reach the disk as one
Name = tuple[int, str]  # the directory's number, and the name in it


class _Version(NamedTuple):
    """What a file held at some time."""

    data: bytes
    mode: int
    mtime: int


class _Moment(NamedTuple):
    """How far the save was, and what of it was safe."""

    steps: int
    safe_steps: frozenset[int]
    versions: dict[int, int]  # file -> how many it has had
    safe_versions: dict[int, int]  # file -> the index of the one that was synced last


class Recording:
    """What a function did to the files below a directory, moment by moment.

    What is there before the function runs is on the disk. Every file is held open until :meth:`close`: the
    system must not give its inode to a file of what :meth:`leave` writes, which would be taken for it.
    """

    def __init__(self, root: Path, work: Callable[[], object]) -> None:
        self._root = root
        self._held: list[int] = []
        self._numbers: dict[int, int] = {}  # inode -> number; a number is not used again, an inode is
        self._inodes: dict[int, int] = {_ROOT: root.stat().st_ino}
        self._versions: dict[int, list[_Version]] = {}
        self._folders: set[int] = {_ROOT}
        self._names: dict[Name, int] = {}
        self._steps: list[dict[Name, int | None]] = []
        self._safe_steps: set[int] = set()
        self._safe_versions: dict[int, int] = {}
        self._synced: Callable[[], None] | None = None  # what the call under way will have made safe
        self.moments: list[_Moment] = []
        self._look()
        self._start = dict(self._names)
        self._steps.clear()
        self._sync_all()
        tracer.observed(work, self._see)
        self._see(("change",))

    def close(self) -> None:
        """Let go of the files."""
        for descriptor in self._held:
            os.close(descriptor)

    def leave(self, directory: Path, dice: random.Random, *, ordered: bool) -> dict[int, int]:
        """Write what a power cut at some moment leaves into a new directory; return its inodes' old ones."""
        moment = dice.choice(self.moments)
        names = dict(self._start)
        reach = dice.randint(0, moment.steps) if ordered else moment.steps
        chance = dice.choice((0.0, 0.2, 0.5, 0.8, 1.0))
        for index, step in enumerate(self._steps[: moment.steps]):
            if index in moment.safe_steps or (index < reach and (ordered or dice.random() < chance)):
                names.update({name: one for name, one in step.items() if one is not None})
                for name in [name for name, one in step.items() if one is None]:
                    names.pop(name, None)
        below: dict[int, list[tuple[str, int]]] = {}
        for (folder, name), one in sorted(names.items()):
            below.setdefault(folder, []).append((name, one))
        directory.mkdir()
        places: dict[int, Path] = {_ROOT: directory}
        left, inodes = [_ROOT], {}
        while left:
            folder = left.pop()
            for name, one in below.get(folder, ()):
                path = places[folder] / name
                if one in self._folders:
                    if one not in places:
                        places[one] = path
                        path.mkdir()
                        left.append(one)
                elif one in places:
                    path.hardlink_to(places[one])
                else:
                    places[one] = path
                    self._write(path, one, moment, dice)
                    inodes[path.stat().st_ino] = self._inodes[one]
        return inodes

    def _write(self, path: Path, one: int, moment: _Moment, dice: random.Random) -> None:
        first, last = moment.safe_versions.get(one, -1), moment.versions[one] - 1
        chosen = self._versions[one][dice.randint(max(first, 0), last)]
        data = chosen.data
        if first < last and dice.random() < 0.6:
            before = self._versions[one][first].data if first >= 0 else b""
            at = dice.randrange(0, len(data) + 1, _BLOCK)
            cut = dice.random() < 0.5 and len(before) <= at
            data = data[:at] + (b"" if cut else before[at : len(data)].ljust(len(data) - at, b"\0"))
        path.write_bytes(data)
        path.chmod(chosen.mode)
        os.utime(path, ns=(chosen.mtime, chosen.mtime))

    def _see(self, event: tuple[str, ...]) -> None:
        """Note what there is before a call that can change files."""
        self._look()
        if self._synced is not None:
            self._synced()
            self._synced = None
        versions = {one: len(held) for one, held in self._versions.items()}
        self.moments.append(
            _Moment(len(self._steps), frozenset(self._safe_steps), versions, dict(self._safe_versions))
        )
        if event[0] == "sync":
            self._synced = self._sync_all if event[2:] else self._make_sync(event[1])

    def _look(self) -> None:
        """Compare the files with what they were, and note the difference as one step."""
        names: dict[Name, int] = {}
        numbers = {self._inodes[_ROOT]: _ROOT}
        left = [(_ROOT, self._root)]
        while left:
            folder, where = left.pop()
            with os.scandir(where) as entries:
                found = list(entries)
            for entry in found:
                facts = entry.stat(follow_symlinks=False)
                one = numbers.get(facts.st_ino)
                if one is None:
                    one = self._numbers.get(facts.st_ino, len(self._inodes))
                    numbers[facts.st_ino] = one
                    self._inodes[one] = facts.st_ino
                    if stat.S_ISDIR(facts.st_mode):
                        self._folders.add(one)
                        left.append((one, Path(entry.path)))
                    else:
                        self._note(one, Path(entry.path), facts)
                names[folder, entry.name] = one
        self._numbers = numbers
        gone: dict[Name, int | None] = dict.fromkeys(self._names.keys() - names.keys())
        changed = {name: one for name, one in names.items() if self._names.get(name) != one}
        if gone or changed:
            self._steps.append({**gone, **changed})
            self._names = names

    def _note(self, one: int, path: Path, facts: os.stat_result) -> None:
        if one not in self._versions:
            self._held.append(os.open(path, os.O_RDONLY))
        held = self._versions.setdefault(one, [])
        version = _Version(path.read_bytes(), stat.S_IMODE(facts.st_mode), facts.st_mtime_ns)
        if not held or held[-1] != version:
            held.append(version)

    def _sync_all(self) -> None:
        self._safe_steps.update(range(len(self._steps)))
        self._safe_versions.update({one: len(held) - 1 for one, held in self._versions.items()})

    def _make_sync(self, path: str) -> Callable[[], None] | None:
        """Return what a sync of one file or directory will have made safe."""
        try:
            one = self._numbers.get(Path(path).stat().st_ino)
        except OSError:
            return None
        if one is None:
            return None
        steps = {i for i, step in enumerate(self._steps) if any(folder == one for folder, _ in step)}
        last = len(self._versions.get(one, ())) - 1

        def sync() -> None:
            self._safe_steps.update(steps)
            if last >= 0:
                self._safe_versions[one] = last

        return sync


@contextlib.contextmanager
def old_inodes(inodes: dict[int, int]) -> Iterator[None]:
    """Let a journal see the inodes that its files had: a copy of a disk has them, other files have not."""
    real = journal._identity

    def identity(path: str) -> journal.Identity | None:
        found = real(path)
        return found and (inodes.get(found[0], found[0]), *found[1:])

    with mock.patch.object(journal, "_identity", identity):
        yield
