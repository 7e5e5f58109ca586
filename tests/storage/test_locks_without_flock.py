"""Locks on file systems without flock, with and without hard links: one holder at a time, after kills too."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paddlelike.errors import SaveError
from paddlelike.storage.local.filesystem import lock as lock_module, lock_file
from paddlelike.storage.local.filesystem.lock import Lock
from paddlelike.storage.local.filesystem.lock_file import make_content, read_content, take


@pytest.fixture(autouse=True, params=["hard links", "no hard links"])
def without_flock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(lock_module.fcntl, "flock", refuse)
    if request.param == "no hard links":
        monkeypatch.setattr(os, "link", refuse)


def hold_in_turns(path: Path, threads: int = 8, rounds: int = 15) -> int:
    """Take and release a lock in threads; return how often, or fail where two held it at once."""
    inside, held, errors = [], [], []

    def work() -> None:
        try:
            for _ in range(rounds):
                with Lock(str(path), "it", wait=60):
                    inside.append(1)
                    assert len(inside) == 1
                    held.append(1)
                    inside.pop()
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert errors == []
    return len(held)


def leave_dead(path: Path) -> None:
    """Leave the lock file of a process that has ended."""
    path.parent.mkdir()
    made = subprocess.run(
        [sys.executable, "-c", f"from {lock_file.__name__} import *; print(make_content().decode(), end='')"],
        check=True,
        capture_output=True,
    ).stdout
    path.write_bytes(made)


def test_only_one_thread_holds_the_lock(tmp_path: Path) -> None:
    assert hold_in_turns(tmp_path / "entry" / "lock") == 8 * 15
    assert list(tmp_path.iterdir()) == []


def test_only_one_process_takes_over_the_lock_of_a_dead_process(tmp_path: Path) -> None:
    leave_dead(tmp_path / "entry" / "lock")
    assert hold_in_turns(tmp_path / "entry" / "lock", rounds=3) == 8 * 3


def test_a_lock_is_recovered_from_a_process_that_died_during_recovery(tmp_path: Path) -> None:
    path = tmp_path / "entry" / "lock"
    leave_dead(path)
    holder = read_content(str(path))
    assert holder is not None
    over = path.with_name(f"lock.{holder.token}")
    over.write_bytes(make_content().replace(str(os.getpid()).encode(), str(holder.pid).encode(), 1))
    with Lock(str(path), "it"):
        assert not over.exists()


def test_a_zombie_process_is_treated_as_dead(tmp_path: Path) -> None:
    lock = Lock(str(tmp_path / "entry" / "lock"), "it")
    process = os.fork()
    if not process:
        lock.__enter__()
        os._exit(0)
    try:
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
        with lock:
            assert read_content(str(tmp_path / "entry" / "lock")) is not None
    finally:
        os.waitpid(process, 0)


def test_a_lock_holder_in_another_container_has_a_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clocks are not compared: it is stale when nothing changed for as long as this process has looked."""
    monkeypatch.setattr(lock_file, "_BEAT", 0.05)
    path, now = str(tmp_path / "entry" / "lock"), 0.0
    monkeypatch.setattr(lock_file, "time", SimpleNamespace(monotonic=lambda: now))
    ours, theirs = Lock(path, "it"), Lock(path, "it")
    with theirs:
        monkeypatch.setattr(lock_file, "_get_place", lambda: "another container, with the same ids")
        for _ in range(4):
            before = read_content(path)
            assert not ours.acquire()
            while read_content(path) == before:  # until it beats
                time.sleep(0.005)
            now += 0.9 * lock_file._LEASE
        assert theirs._heartbeat is not None
        theirs._heartbeat.stop()
        while not ours.acquire():  # twice where a beat was under way
            time.sleep(0.1)
            now += lock_file._LEASE
        with pytest.raises(SaveError, match=r"it cannot be saved: .* has taken its lock over"):
            theirs.check()
        ours.release()
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_lost_the_lock_does_not_remove_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves S2."""
    path = tmp_path / "entry" / "lock"
    with Lock(str(path), "it"):
        path.unlink()  # as whoever takes it over does
        other = Lock(str(path), "it")
        assert other.acquire()
    assert path.exists()
    other.release()
    assert list(tmp_path.iterdir()) == []


def test_an_empty_lock_file_counts_as_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "entry" / "lock"
    path.parent.mkdir()
    path.touch()
    lock = Lock(str(path), "it")
    with pytest.raises(SaveError, match="is being saved by another process"), lock:
        pass
    monkeypatch.setattr(lock_file, "_UNFINISHED", 0.0)  # as much later
    with lock:
        assert read_content(str(path)) is not None


def test_processes_of_other_machines_are_not_checked_by_id(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("1 elsewhere 5 0123456789abcdef\n")
    assert not take(str(path), {})
    assert path.read_text().startswith("1 elsewhere")
