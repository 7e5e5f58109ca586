"""A saver without flock is stopped at any call, loses its lock to another, and continues."""

from __future__ import annotations

import contextlib
import errno
import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from paddlelike.errors import PaddlelikeError
from paddlelike.storage.local.directory import LocalDirectory
from paddlelike.storage.local.filesystem import lock, lock_file
from paddlelike.storage.local.transaction import Transaction

pytestmark = pytest.mark.slow

Files = dict[str, bytes]

CALLS = ["open", "rename", "replace", "link", "unlink", "mkdir", "rmdir", "utime", "stat", "lstat", "scandir"]
OLD = dict.fromkeys("abcd", b"old")
FIRST = dict.fromkeys("abce", b"first")
SECOND = dict.fromkeys("abdf", b"second!")
THIRD = dict.fromkeys("ag", b"third")
FORMS = {
    "many files over others": (OLD, FIRST, SECOND),
    "a new directory": (None, FIRST, SECOND),
    "one file": ({"a": b"old"}, {"a": b"first"}, {"a": b"second!"}),
    "many files without hard links": (OLD, FIRST, SECOND),
}


class Killed(BaseException):
    """The process is dead, and none of its calls does anything."""


class Calls:
    """Counts the calls of the system; ``at[n]`` runs before the n-th one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self.at = 0, dict[int, Callable[[], None]]()
        self.is_dead = False
        for name in CALLS:
            monkeypatch.setattr(os, name, self._wrap(getattr(os, name)))

    def _wrap(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            if self.is_dead:
                raise Killed
            self.count += 1
            self.at.pop(self.count, lambda: None)()
            return real(*args, **more)

        return call

    def run(self, work: Callable[[], object], at: int, then: Callable[[], None]) -> bool:
        """Run ``work`` with ``then`` before its n-th call; return whether it came to an error."""
        before, self.at = (self.count, self.at), {at: then}
        self.count = 0
        try:
            work()
        except PaddlelikeError:
            return True
        finally:
            self.count, self.at = before
            self.is_dead = False
        return False

    def die(self) -> None:
        self.is_dead = True
        raise Killed


def save(directory: Path, files: Files) -> None:
    """Save as another process does: in this one, but its locks are not those of others."""
    waiting, held = lock._waiting[:], set(lock._held)
    lock._waiting.clear()
    try:
        with Transaction(
            directory,
            program="p",
            part="all",
            remove_stale=True,
            durability="process",
            manifest=len(files) > 1,
            wait=0,
        ) as transaction:
            for name, data in files.items():
                transaction.add(name, [data])
    finally:
        lock._waiting[:] = waiting
        lock._held.update(held)


def load(directory: Path) -> Files:
    where = LocalDirectory(directory)
    return where.read_all(where.list_names(), lambda name, file: file.read_at(0, file.size))


@pytest.fixture(autouse=True)
def without_flock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks are files alone, whose holder is stale for whoever looks."""

    def refuse(*args: Any, **more: Any) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(lock, "_has_flock", lambda folder: False)
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # nothing here is about the disk
    monkeypatch.setattr(lock_file.Heartbeat, "_run", lambda self, path, token: None)
    if "without hard links" in request.node.name:
        monkeypatch.setattr(os, "link", refuse)

    def find_stale(path: str, seen: object) -> str | None:
        content = lock_file.read_content(path)
        if content is not None:
            return content.token
        return f"{Path(path).stat().st_mtime_ns:x}" if os.path.lexists(path) else None

    monkeypatch.setattr(lock_file, "_find_stale", find_stale)


def count(calls: Calls, directory: Path, files: Files) -> int:
    """Return how many calls a save makes."""
    start = calls.count
    save(directory, files)
    return calls.count - start


def load_into(found: list[Files], directory: Path) -> None:
    found.append(load(directory))


def prepare(home: Path, old: Files | None) -> Path:
    home.mkdir()
    if old is not None:
        save(home / "m", old)
    return home / "m"


def check_later(directory: Path) -> None:
    """Check that the next save takes place, and leaves nothing beside."""
    save(directory, OLD | THIRD)
    assert load(directory) == OLD | THIRD
    assert [path.name for path in directory.parent.iterdir()] == ["m"]


def save_as_another(directory: Path, files: Files, held: list[bool]) -> None:
    """Save as whoever takes over the lock, and note whether there was one to be taken over."""
    held.append(any(one._files for one in lock._held))
    save(directory, files)


def save_and_die(calls: Calls, directory: Path, files: Files, at: int) -> None:
    """Save, and be killed at a call."""
    with contextlib.suppress(Killed):
        calls.run(partial(save, directory, files), at, calls.die)


@pytest.mark.parametrize("form", FORMS)
def test_a_saver_stopped_at_any_call_changes_nothing_after_another_has_saved(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves S19."""
    old, first, second = FORMS[form]
    calls, dice = Calls(monkeypatch), random.Random(form)
    total = count(calls, prepare(tmp_path / "count", old), first)
    for at in dice.sample(range(1, total + 1), 40):
        directory, held = prepare(tmp_path / str(at), old), list[bool]()
        calls.run(partial(save, directory, first), at, partial(save_as_another, directory, second, held))
        # stopped before it had the lock, it may save afterwards
        assert load(directory) in ([second] if held == [True] else [second, first]), at
        check_later(directory)


@pytest.mark.parametrize("form", FORMS)
def test_a_stopped_saver_and_the_kill_of_its_successor_leave_one_whole_save(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves S19."""
    old, first, second = FORMS[form]
    calls, dice = Calls(monkeypatch), random.Random(form)
    total = count(calls, prepare(tmp_path / "count", old), first)
    for case in range(40):
        directory = prepare(tmp_path / str(case), old)
        at, end = dice.randint(1, total), dice.randint(1, total + 20)
        calls.run(partial(save, directory, first), at, partial(save_and_die, calls, directory, second, end))
        if old is not None or directory.exists():
            assert load(directory) in (old, first, second), (at, end)
        check_later(directory)


def test_a_load_during_a_save_that_is_killed_at_any_call_reads_one_whole_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves S10."""
    calls, dice = Calls(monkeypatch), random.Random(7)
    total = count(calls, prepare(tmp_path / "count", OLD), FIRST)
    start = calls.count
    assert load(tmp_path / "count" / "m") == FIRST
    of_load = calls.count - start
    for case in range(100):
        directory, found = prepare(tmp_path / str(case), OLD), list[Files]()
        at, end = dice.randint(1, of_load), dice.randint(total // 2, total)
        kill = partial(save_and_die, calls, directory, FIRST, end)
        is_refused = calls.run(partial(load_into, found, directory), at, kill)
        assert found in ([OLD], [FIRST]) or (is_refused and not found), (at, end)
        assert load(directory) in (OLD, FIRST)
        check_later(directory)
