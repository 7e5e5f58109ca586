"""The version before stays until the new one is on the disk, and comes back after a power cut."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from paddlelike.storage.local import manifest_file, syncing
from paddlelike.storage.local.files import list_names, recover
from paddlelike.storage.local.filesystem import lock as lock_module
from paddlelike.storage.local.filesystem.lock import Lock
from paddlelike.storage.local.layout import Layout
from tests.storage.faults.test_leftovers import NEW, OLD, save
from tests.storage.test_transaction import contents, names

STAGING = ".m.saving-directory"


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a home in which OLD was saved, and NEW a moment ago, while the disk had not taken it."""
    home, written = tmp_path / "home", threading.Event()
    save(home / "m", OLD | {"theirs": b"1"})
    with monkeypatch.context() as patch:
        patch.setattr(syncing, "_SMALL", 0)
        patch.setattr(syncing, "sync_file_system", lambda path: written.wait(60))
        save(home / "m", NEW)
        shutil.copytree(home, tmp_path / "cut")
        assert names(home) == [STAGING, "m"]
        assert contents(home / "m") == NEW | {"theirs": b"1"}
        assert contents(home / STAGING / "new") == OLD | {"theirs": b"1"}
        assert list_names(home / "m") == ["a", "b", "c", "theirs"]  # readers do not wait
        written.set()
        syncing.wait_for_disk(Layout.of(home / "m"))
    assert names(home) == ["m"]
    return tmp_path / "cut"


def test_the_old_version_is_removed_only_after_the_new_one_is_synced(slow: Path) -> None:
    """Proves S17."""
    recover(slow / "m")  # after a power cut that took nothing
    assert contents(slow / "m") == NEW | {"theirs": b"1"}
    assert names(slow) == ["m"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda m: (m / "a").write_bytes(b""),
        lambda m: (m / "a").write_bytes(b"new \0"),
        lambda m: (m / "b").unlink(),
        lambda m: (m / "theirs").unlink(),
        lambda m: (m / "__manifest__").unlink(),
        lambda m: (m / "__manifest__").write_bytes((m / "__manifest__").read_bytes()[:50]),
        lambda m: [path.unlink() for path in m.iterdir()],
    ],
    ids=["empty", "torn", "missing", "missing of others", "no manifest", "torn manifest", "nothing"],
)
@pytest.mark.parametrize("by", [recover, lambda path: save(path, {"x": b"1"})], ids=["reader", "saver"])
def test_damage_by_a_power_cut_is_reported_and_the_previous_version_restored(
    slow: Path, damage: Callable[[Path], object], by: Callable[[Path], object]
) -> None:
    """Proves S17."""
    before = (slow / STAGING / "staged").stat().st_mtime_ns
    damage(slow / "m")
    for path in (slow / "m").iterdir():
        os.utime(path, ns=(before, before))  # a power cut is not a new time of writing
    with pytest.warns(UserWarning, match="m is damaged: the power failed, .* were restored"):
        by(slow / "m")
    assert contents(slow / "m") == OLD | {"theirs": b"1"} | ({} if by is recover else {"x": b"1"})
    assert manifest_file.verify(slow / "m").good
    assert names(slow) == ["m"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_forked_process_does_not_wait_for_a_sync_thread_of_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = threading.Event()
    monkeypatch.setattr(syncing, "_SMALL", 0)
    monkeypatch.setattr(syncing, "sync_file_system", lambda path: written.wait(60))
    save(tmp_path / "m", OLD)
    save(tmp_path / "m", NEW)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(60)
            syncing.wait_for_disk(Layout.of(tmp_path / "m"))
            shutil.rmtree(tmp_path / "m")
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    written.set()
    syncing.wait_for_disk(Layout.of(tmp_path / "m"))
    assert status == 0


def test_restoring_does_not_change_files_written_by_others(slow: Path) -> None:
    """Proves S6."""
    (slow / "m" / "a").write_bytes(b"theirs")
    recover(slow / "m")
    assert contents(slow / "m") == NEW | {"a": b"theirs", "theirs": b"1"}
    assert names(slow) == ["m"]


def test_a_save_that_waits_for_the_disk_does_not_block_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = threading.Event()

    def pause(seconds: float) -> None:
        written.set()  # the other save is waiting
        time.sleep(seconds)

    save(tmp_path / "m", OLD)
    layout = Layout.of(tmp_path / "m")
    monkeypatch.setattr(syncing, "_SMALL", 0)
    monkeypatch.setattr(syncing, "sync_file_system", lambda path: written.wait(60))
    save(tmp_path / "m", NEW)
    monkeypatch.setattr(lock_module._released, "wait", pause)
    with Lock(layout.lock, layout.base, wait=0) as lock:  # as of another process
        assert lock.waited is not None
        assert not os.path.lexists(tmp_path / STAGING / "new")
    assert names(tmp_path) == ["m"]
    assert contents(tmp_path / "m") == NEW


def test_a_sync_error_is_reported_and_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    save(tmp_path / "m", OLD)
    with monkeypatch.context() as patch:
        patch.setattr(syncing, "sync_file_system", refuse)
        with pytest.warns(UserWarning, match="m was saved, but perhaps not .*Input/output error"):
            save(tmp_path / "m", NEW)
    assert contents(tmp_path / "m") == NEW
    assert contents(tmp_path / STAGING / "new") == OLD
    save(tmp_path / "m", OLD)
    assert contents(tmp_path / "m") == OLD
    assert names(tmp_path) == ["m"]


def test_the_parent_folder_of_a_fresh_save_can_be_removed_immediately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``rmtree`` fails where somebody else removes an entry that it has listed."""
    real = syncing.sync_file_system

    def sync_slowly(path: str) -> None:
        time.sleep(0.1)
        real(path)

    monkeypatch.setattr(syncing, "_SMALL", 0)
    monkeypatch.setattr(syncing, "sync_file_system", sync_slowly)
    for number in range(5):
        home = tmp_path / str(number)
        for files in (OLD, NEW):
            save(home / "m", files)
        shutil.rmtree(home)
        assert not home.exists()
