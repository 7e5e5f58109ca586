"""What killed saves leave: it is finished, or given up, but never put over what somebody did since."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from paddlelike.errors import SaveError, StorageError
from paddlelike.storage.local import generation, journal, manifest_file
from paddlelike.storage.local.files import list_names, recover
from paddlelike.storage.local.filesystem.lock import Lock
from paddlelike.storage.local.transaction import Transaction
from tests.storage.test_transaction import contents, names, without_exchange

OLD = {"a": b"old a", "b": b"old b", "c": b"old c"}
NEW = {"a": b"new a", "b": b"new b", "c": b"new c"}


def save(directory: Path, files: dict[str, bytes], **options):
    transaction = Transaction(directory, **options)
    for name, data in files.items():
        transaction.add(name, [data])
    return transaction.commit()


def killed(work: Callable[[], object]) -> None:
    """Run ``work`` in a process that kills itself."""
    process = os.fork()
    if process == 0:
        work()
        os._exit(1)
    assert os.waitpid(process, 0)[1] == signal.SIGKILL


def killed_at_move(directory: Path, number: int) -> None:
    """Save NEW under a journal and die before a move."""

    def work() -> None:
        moves = []
        real = journal._move

        def move(source: str, target: str) -> None:
            moves.append(target)
            if len(moves) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            real(source, target)

        def refuse(a: str, b: str) -> None:
            raise OSError(errno.ENOSYS, "no exchange")

        journal._move, generation.exchange = move, refuse
        save(directory, NEW)

    killed(work)
    assert set(names(directory.parent)) <= {".m.saving-directory", "m", "backup"}


def test_files_of_an_uncommitted_version_are_not_moved_into_the_old_one(tmp_path):
    """Proves S11."""
    directory = tmp_path / "m"
    save(directory, OLD)

    def work() -> None:
        generation.exchange = lambda a, b: os.kill(os.getpid(), signal.SIGKILL)
        save(directory, NEW | {"d": b"new d"}, durability="process")

    killed(work)
    save(directory, {"b": b"newer b"})
    assert contents(directory) == OLD | {"b": b"newer b"}


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_journal_is_finished_by_the_next_reader(tmp_path, number):
    """Proves S5."""
    save(tmp_path / "m", OLD)
    killed_at_move(tmp_path / "m", number)
    assert list_names(tmp_path / "m") == ["a", "b", "c"]
    assert contents(tmp_path / "m") == NEW
    assert manifest_file.verify(tmp_path / "m")


@pytest.mark.parametrize("keep_times", [True, False])
@pytest.mark.parametrize("number", [2, 4])
def test_recovery_does_not_overwrite_files_restored_later(tmp_path, number, keep_times):
    """Proves S6."""
    save(tmp_path / "m", OLD)
    shutil.copytree(tmp_path / "m", tmp_path / "backup")
    killed_at_move(tmp_path / "m", number)
    for path in (tmp_path / "backup").iterdir():
        (shutil.copy2 if keep_times else shutil.copy)(path, tmp_path / "m" / path.name)
    recover(tmp_path / "m")
    assert contents(tmp_path / "m") == OLD
    assert manifest_file.verify(tmp_path / "m")
    save(tmp_path / "m", NEW)
    assert contents(tmp_path / "m") == NEW
    assert names(tmp_path) == ["backup", "m"]


@pytest.mark.obeys(
    "restore all files, then remove {}; {} holds the files of the interrupted save in new, and those before "
    "it in old, numbered as in the journal"
)
def test_recovery_does_not_change_a_mix_of_restored_and_saved_files(tmp_path):
    """Proves S6."""
    save(tmp_path / "m", OLD)
    shutil.copytree(tmp_path / "m", tmp_path / "backup")
    killed_at_move(tmp_path / "m", 2)
    (tmp_path / "m" / "b").write_bytes(b"restored")
    for work in (lambda: recover(tmp_path / "m"), lambda: save(tmp_path / "m", NEW)):
        with pytest.raises(
            (StorageError, SaveError), match="b was replaced by somebody else since"
        ) as caught:
            work()
        journal = tmp_path / ".m.saving-directory" / "journal"
        assert f"restore all files, then remove {journal}; " in caught.value.hint
        assert contents(tmp_path / "m") == {"a": b"new a", "b": b"restored", "c": b"old c"}
    for path in (tmp_path / "backup").iterdir():
        shutil.copy(path, tmp_path / "m" / path.name)
    journal.unlink()
    assert contents(tmp_path / "m") == OLD
    save(tmp_path / "m", NEW)
    assert contents(tmp_path / "m") == NEW


@pytest.mark.parametrize("again", [True, False])
def test_a_removed_directory_can_be_saved_again(tmp_path, again):
    save(tmp_path / "m", OLD)
    killed_at_move(tmp_path / "m", 2)
    shutil.rmtree(tmp_path / "m")
    if again:
        (tmp_path / "m").mkdir()
        (tmp_path / "m" / "x").write_bytes(b"theirs")
        assert list_names(tmp_path / "m") == ["x"]
    save(tmp_path / "m", NEW)
    assert contents(tmp_path / "m") == NEW | ({"x": b"theirs"} if again else {})
    assert names(tmp_path) == ["m"]


@pytest.mark.parametrize("step", ["exchange", "journal"])
def test_removing_the_directory_during_a_save_is_handled(tmp_path, monkeypatch, step):
    save(tmp_path / "m", OLD)
    if step == "journal":
        without_exchange(monkeypatch)
    real = generation.Generation._twin_folders

    def late(self: generation.Generation) -> set[str]:
        shutil.rmtree(tmp_path / "m")
        return real(self)

    with monkeypatch.context() as patch:
        patch.setattr(generation.Generation, "_twin_folders", late)
        with pytest.raises(SaveError, match="was removed by somebody during the save"):
            save(tmp_path / "m", NEW)
    assert names(tmp_path) == []
    save(tmp_path / "m", NEW)
    assert contents(tmp_path / "m") == NEW


@pytest.mark.parametrize("manifest", [True, False])
def test_a_leftover_version_never_enters_a_new_directory_that_has_the_same_inode(
    tmp_path, monkeypatch, manifest
):
    """Proves S11."""
    save(tmp_path / "m", OLD, manifest=manifest)

    def work() -> None:
        generation.Generation.retire = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
        save(tmp_path / "m", NEW, manifest=manifest)

    killed(work)
    assert contents(tmp_path / "m") == NEW
    shutil.rmtree(tmp_path / "m")
    (tmp_path / "m").mkdir()
    save(tmp_path / "m", {"other": b"1"}, manifest=manifest)
    assert contents(tmp_path / "m") == {"other": b"1"}
    assert names(tmp_path) == ["m"]


def test_a_file_removed_after_the_kill_does_not_come_back(tmp_path):
    save(tmp_path / "m", OLD | {"theirs": b"1"})

    def work() -> None:
        generation.Generation.retire = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
        save(tmp_path / "m", NEW)

    killed(work)
    (tmp_path / ".m.saving-directory" / "new" / "late").write_bytes(b"arrived during the swap")
    (tmp_path / "m" / "theirs").unlink()
    save(tmp_path / "m", NEW)
    assert contents(tmp_path / "m") == NEW | {"late": b"arrived during the swap"}


def test_a_file_that_the_system_refuses_to_read_counts_as_present(tmp_path, monkeypatch):
    """Proves S11."""
    save(tmp_path / "m", {"w": b"1"})
    (tmp_path / ".m.saving-directory" / "new").mkdir(parents=True)
    (tmp_path / ".m.saving-directory" / "new" / "theirs").write_bytes(b"put in while it was swapped")
    staged = tmp_path / ".m.saving-directory" / "staged"
    staged.write_text("{}")
    real = os.open

    def refuse(path, *args, **kwargs):
        if os.fspath(path) == str(staged):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(
        SaveError, match=r"remains of a killed save beside .*/m cannot be cleaned up.*nothing was saved"
    ):
        save(tmp_path / "m", {"w": b"1"})
    assert (tmp_path / ".m.saving-directory" / "new" / "theirs").exists()


def test_readers_do_not_take_the_lock_of_a_living_saver(tmp_path, monkeypatch):
    save(tmp_path / "m", OLD)
    without_exchange(monkeypatch)
    done = threading.Event()
    faults: list[Exception] = []

    def poll() -> None:
        while not done.is_set():
            try:
                recover(tmp_path / "m")
            except StorageError as error:
                faults.append(error)

    threads = [threading.Thread(target=poll) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            save(tmp_path / "m", NEW, wait=0)  # which never finds the lock taken
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert faults == []
    assert names(tmp_path) == ["m"]


def test_a_manifest_in_the_old_location_is_read_and_moved(tmp_path):
    save(tmp_path / "m", OLD)
    found = manifest_file.read_manifest(tmp_path / "m")
    (tmp_path / "m" / "__manifest__").unlink()
    entries = {
        name: {"size": record.size, "stamp": record.stamp, "xxh3_128": record.checksum.partition(":")[2]}
        for name, record in found.files.items()
    }
    front = {"format": 1, "library": "0.1", "time": None, "program": "5f", "commit": None, "beside": False}
    body = json.dumps({**front, "part": "persistables", "files": entries})[:-1].encode()
    tail = b',\n"digest":"%s"}\n' % hashlib.sha256(body).hexdigest().encode()
    (tmp_path / "m.manifest.json").write_bytes(body + tail)
    assert manifest_file.read_manifest(tmp_path / "m").program == "5f"
    assert manifest_file.verify(tmp_path / "m").good == ("a", "b", "c")
    assert save(tmp_path / "m", {"a": b"1"}, program="5f", part="persistables").stale == ("b", "c")
    assert names(tmp_path) == ["m"]
    assert manifest_file.verify(tmp_path / "m").good == ("a", "b", "c")


def test_a_reader_without_lock_permission_waits_for_the_save_to_end(tmp_path, monkeypatch):
    save(tmp_path / "m", OLD)
    killed_at_move(tmp_path / "m", 2)

    def refuse(self: Lock, *, create: bool = True) -> bool:
        raise SaveError("m cannot be locked: Permission denied") from PermissionError(errno.EACCES, "no")

    with monkeypatch.context() as patch:
        patch.setattr(Lock, "acquire", refuse)
        patch.setattr(journal, "_OTHERS_WAIT", 0.1)
        start = time.monotonic()
        with pytest.raises(StorageError, match="holds a save that was interrupted and cannot be finished"):
            recover(tmp_path / "m")
        assert time.monotonic() - start >= 0.1
    recover(tmp_path / "m")
    assert contents(tmp_path / "m") == NEW
