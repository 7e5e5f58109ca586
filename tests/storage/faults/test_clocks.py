"""Machines whose clocks differ by hours share a directory: the order of saves decides, never their times.

The clock of a machine dates what it writes, as on file systems that leave this to their clients.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError
from paddlelike.storage.local import syncing, transaction
from paddlelike.storage.local.files import recover
from paddlelike.storage.local.layout import Layout
from tests.io.deltas.tables import Training
from tests.storage.faults.test_leftovers import NEW, OLD, save
from tests.storage.test_transaction import contents, without_exchange

HOURS = [-5.0, -0.01, 0.01, 5.0]


@contextmanager
def clock(hours: float) -> Iterator[None]:
    """Let this process be a machine whose clock is so many hours ahead."""
    ahead, now, utime = int(hours * 3600e9), time.time_ns, os.utime

    def date(place: Any, **given: Any) -> None:
        utime(place, ns=(now() + ahead,) * 2, **given)

    def dated(call: Callable[..., Any], find: Callable[..., Any] = lambda place, *args: place) -> Any:
        def wrapped(*args: Any, **given: Any) -> Any:
            found = call(*args, **given)
            date(find(*args), **({"dir_fd": given["dir_fd"]} if given.get("dir_fd") is not None else {}))
            return found

        return wrapped

    def utime_by_clock(place: Any, *args: Any, **given: Any) -> None:
        utime(place, *args, **given) if args or "ns" in given or "times" in given else date(place, **given)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("write", "writev", "pwrite", "ftruncate", "fsync", "mkdir"):
            patch.setattr(os, name, dated(getattr(os, name)))
        patch.setattr(os, "utime", utime_by_clock)
        patch.setattr(time, "time_ns", lambda: now() + ahead)
        patch.setattr(time, "time", lambda: (now() + ahead) / 1e9)
        yield


def test_the_clock_of_a_machine_dates_its_files(tmp_path: Path) -> None:
    with clock(3.0):
        save(tmp_path / "m", NEW)
    for path in (tmp_path / "m").iterdir():
        assert path.stat().st_mtime > time.time() + 2 * 3600


@pytest.mark.parametrize("hours", HOURS)
@pytest.mark.parametrize("form", ["exchange", "journal", "manifest=False", "delta", "keep_generation"])
def test_a_load_finds_the_last_save_of_any_machine(
    form: str, hours: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form == "journal":
        without_exchange(monkeypatch)
    options: dict[str, Any] = {
        "manifest=False": {"manifest": False},
        "delta": {"delta": True},
        "keep_generation": {"keep_generation": True},
    }.get(form, {})
    training = Training()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(6):
            training.step(step)
            with clock(hours if step % 2 else 0.0):
                training.save(tmp_path / "m", **options)
            with clock(0.0 if step % 2 else hours):
                assert training.loaded(tmp_path / "m") == training.values()
                assert form == "manifest=False" or fluid.io.verify(tmp_path / "m")


@pytest.mark.parametrize("hours", HOURS)
def test_the_newest_checkpoints_are_kept_by_their_steps(hours: float, tmp_path: Path) -> None:
    training = Training()
    checkpoints = fluid.io.Checkpoints(tmp_path / "steps", keep_last=2)
    for step in range(1, 7):
        training.step(step)
        with clock(hours if step % 2 else 0.0), fluid.scope_guard(training.scope):
            checkpoints.save(training.exe, training.main, step)
    with fluid.scope_guard(fluid.Scope()):
        assert checkpoints.restore(training.exe, training.main) is not None
        held = {
            name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in training.values()
        }
    assert {name: array.tobytes() for name, array in held.items()} == training.values()
    assert sorted(path.name for path in (tmp_path / "steps").iterdir()) == ["step-00000005", "step-00000006"]


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A home in which NEW was saved over OLD, by a process that was killed before the disk had it."""
    written = threading.Event()
    with clock(request.param):
        save(tmp_path / "home" / "m", OLD | {"theirs": b"1"})
        with monkeypatch.context() as patch:
            patch.setattr(syncing, "_SMALL", 0)
            patch.setattr(syncing, "sync_file_system", lambda path: written.wait(60))
            save(tmp_path / "home" / "m", NEW)
            shutil.copytree(tmp_path / "home", tmp_path / "killed")
            (old,) = (tmp_path / "home" / ".m.saving-directory").rglob("a")
            (tmp_path / "inode of a").hardlink_to(old)
            written.set()
            syncing.wait_for_disk(Layout.of(tmp_path / "home" / "m"))
    return tmp_path / "killed"


@pytest.mark.parametrize("killed", HOURS, indirect=True)
@pytest.mark.parametrize("how", ["in place", "by a new file", "by a new file with an old inode"])
def test_a_file_that_another_machine_wrote_after_a_killed_save_stays(killed: Path, how: str) -> None:
    """Proves S6. File systems give the numbers of removed inodes to new files."""
    if how != "in place":
        (killed / "m" / "a").unlink()
    if how == "by a new file with an old inode":
        (killed / "m" / "a").hardlink_to(killed.parent / "inode of a")
    (killed / "m" / "a").write_bytes(b"theirs")  # by the true clock
    recover(killed / "m")
    assert contents(killed / "m") == NEW | {"a": b"theirs", "theirs": b"1"}


@pytest.mark.parametrize("killed", HOURS, indirect=True)
def test_recovery_restores_the_previous_save_if_clocks_differ(killed: Path) -> None:
    """Proves S17."""
    path = killed / "m" / "a"
    facts = path.stat()
    path.write_bytes(b"")
    os.utime(path, ns=(facts.st_mtime_ns,) * 2)  # a power cut is not a new time of writing
    with pytest.warns(UserWarning, match="m is damaged: the power failed, .* were restored"):
        recover(killed / "m")
    assert contents(killed / "m") == OLD | {"theirs": b"1"}


@pytest.mark.parametrize("form", ["base", "manifest"])
def test_recovery_restores_the_previous_save_if_the_last_one_links_older_files(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves S17."""
    monkeypatch.setattr(transaction, "_FEW", 0)
    monkeypatch.setattr(transaction, "_LEAST_KEPT", 0)
    directory, training = tmp_path / "home" / "m", Training()
    if form == "base":
        training.save(tmp_path / "base", delta=True)
    time.sleep(0.01)  # the clock of a file system has ticks of 4 ms
    training.save(directory, delta=True)
    before = contents(directory)
    training.step(1)
    written = threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(syncing, "_SMALL", 0)
        patch.setattr(syncing, "sync_file_system", lambda path: written.wait(60))
        time.sleep(0.01)
        training.save(directory, delta=True, **({"base": tmp_path / "base"} if form == "base" else {}))
        shutil.copytree(tmp_path / "home", tmp_path / "killed")
        written.set()
        syncing.wait_for_disk(Layout.of(directory))
    path = tmp_path / "killed" / "m" / "fc_0.w_0"
    facts = path.stat()
    path.write_bytes(b"")
    os.utime(path, ns=(facts.st_mtime_ns,) * 2)
    with pytest.warns(UserWarning, match="m is damaged: the power failed, .* were restored"):
        recover(tmp_path / "killed" / "m")
    assert contents(tmp_path / "killed" / "m") == before


@pytest.mark.parametrize("hours", HOURS)
def test_a_flipped_bit_in_a_copy_of_a_directory_of_two_machines_is_reported(
    hours: float, tmp_path: Path
) -> None:
    training = Training()
    for machine in (hours, 0.0):  # the second one keeps all files, and writes a manifest
        with clock(machine):
            training.save(tmp_path / "m")
    copy = Path(shutil.copytree(tmp_path / "m", tmp_path / "copy"))
    facts, data = (copy / "emb").stat(), bytearray((copy / "emb").read_bytes())
    data[-1] ^= 1
    (copy / "emb").write_bytes(data)
    os.utime(copy / "emb", ns=(facts.st_mtime_ns,) * 2)
    with pytest.raises(LoadError, match="not those that were saved"):
        training.loaded(copy)
