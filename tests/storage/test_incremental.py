"""Files that stay as they are, two savers at once, generations: what a transaction does beside writing."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from paddlelike.errors import SaveError, StorageError
from paddlelike.foundation.locks import close_files
from paddlelike.storage.local import (
    crash_recovery as staged,
    generation,
    journal,
    journal_file,
    manifest_file,
    unchanged,
)
from paddlelike.storage.local.directory import LocalDirectory
from paddlelike.storage.local.files import list_names, read_all, recover
from paddlelike.storage.local.filesystem import lock as lock_module
from paddlelike.storage.local.filesystem.lock import Lock
from paddlelike.storage.local.filesystem.retired import rescue
from paddlelike.storage.local.transaction import Transaction
from tests.storage.test_transaction import contents, names, without_exchange

FILES = {"a/b": b"x" * 300, "v": b"v", "w": b"w" * 100_000}


def save(directory, files=FILES, keep=None, base=None, **options):
    transaction = Transaction(directory, **options)
    for name, data in files.items():
        if keep and name in keep and transaction.keep(name, keep[name], base=base):
            continue
        transaction.add(name, [data])
    return transaction.commit()


@pytest.fixture(params=["exchange", "journal"])
def way(request, monkeypatch):
    if request.param == "journal":
        without_exchange(monkeypatch)
    return request.param


def test_an_unchanged_file_is_kept_as_the_same_inode(tmp_path, way):
    first = save(tmp_path / "m")
    inodes = {name: (tmp_path / "m" / name).stat().st_ino for name in FILES}
    second = save(
        tmp_path / "m", {name: data + b"!" for name, data in FILES.items()}, {"w": first.files["w"]}
    )
    assert (second.written, second.kept) == (2, 1)
    assert second.files["w"] == first.files["w"]
    assert (tmp_path / "m" / "w").stat().st_ino == inodes["w"]
    assert (tmp_path / "m" / "v").stat().st_ino != inodes["v"]
    assert (tmp_path / "m" / "w").read_bytes() == FILES["w"]
    assert (tmp_path / "m" / "v").read_bytes() == b"v!"
    assert manifest_file.verify(tmp_path / "m")
    assert names(tmp_path) == ["m"]


def test_reflinks_are_tried_once_on_a_file_system_without_them(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(unchanged, "reflink", lambda source, target: asked.append(source))
    first = save(tmp_path / "base")
    second = save(tmp_path / "m", keep=first.files, base=tmp_path / "base")
    assert (second.kept, second.written, second.files) == (3, 0, first.files)
    assert len(asked) == 1
    assert all((tmp_path / "m" / name).samefile(tmp_path / "base" / name) for name in FILES)
    assert manifest_file.verify(tmp_path / "m")


def test_a_save_of_only_unchanged_files_writes_nothing(tmp_path):
    first = save(tmp_path / "m")
    second = save(tmp_path / "m", keep=first.files, program="p")
    assert (second.written, second.kept) == (0, 3)
    assert manifest_file.read_manifest(tmp_path / "m").program == "p"
    assert manifest_file.verify(tmp_path / "m")
    assert names(tmp_path) == ["m"]


@pytest.mark.parametrize("change", ["bytes", "length", "replaced", "gone", "link"])
def test_a_file_that_somebody_changed_is_not_kept(tmp_path, change):
    """Proves S8."""
    first = save(tmp_path / "m")
    path = tmp_path / "m" / "w"
    if change in ("bytes", "length"):
        path.write_bytes(b"y" * (100_000 + (change == "length")))
    else:
        path.rename(tmp_path / "aside")
        if change == "replaced":
            path.write_bytes(FILES["w"])
        elif change == "link":
            path.symlink_to(tmp_path / "aside")
    second = save(tmp_path / "m", keep=first.files)
    assert second.written == 1
    assert path.read_bytes() == FILES["w"]
    assert not path.is_symlink()


def test_a_file_that_changes_before_the_commit_is_an_error(tmp_path):
    """Proves S8."""
    first = save(tmp_path / "m")
    transaction = Transaction(tmp_path / "m")
    transaction.add("v", [b"new"])
    assert transaction.keep("w", first.files["w"])
    (tmp_path / "m" / "w").write_bytes(b"theirs")
    before = contents(tmp_path / "m")
    with pytest.raises(SaveError, match="w was changed by somebody else"):
        transaction.commit()
    assert contents(tmp_path / "m") == before


def test_a_base_shares_its_files(tmp_path):
    first = save(tmp_path / "m1")
    new = {name: data + b"!" for name, data in FILES.items()}
    second = save(tmp_path / "m2", new, {"w": first.files["w"]}, base=tmp_path / "m1")
    assert (second.written, second.kept) == (2, 1)
    assert (tmp_path / "m2" / "w").read_bytes() == FILES["w"]
    assert manifest_file.verify(tmp_path / "m2")
    third = save(tmp_path / "m2", FILES)  # replaces, and does not write into the shared file
    assert third.written == 3
    assert manifest_file.verify(tmp_path / "m1")
    assert manifest_file.verify(tmp_path / "m2")


def test_a_base_is_copied_without_hard_links(tmp_path, monkeypatch):
    first = save(tmp_path / "m1")

    def refuse(*_, **__):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    save(tmp_path / "m2", keep=first.files, base=tmp_path / "m1")
    monkeypatch.undo()
    assert (tmp_path / "m2" / "w").stat().st_ino != (tmp_path / "m1" / "w").stat().st_ino
    assert manifest_file.verify(tmp_path / "m2")


def test_a_previous_generation_is_reused_for_writing(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "theirs").write_bytes(b"1")
    save(tmp_path / "m", keep_generation=True)
    inode = (tmp_path / "m" / "w").stat().st_ino
    for number in range(4):
        data = bytes([number]) * (10 + 30_000 * (4 - number))
        save(tmp_path / "m", {"w": data, "x/y": data}, keep_generation=True)
        assert (tmp_path / "m" / "w").read_bytes() == data
        assert (tmp_path / "m" / "theirs").read_bytes() == b"1"
        assert (tmp_path / "m" / "v").read_bytes() == b"v"
        assert manifest_file.verify(tmp_path / "m").changed == ()
        assert sorted(list_names(tmp_path / "m")) == ["a/b", "theirs", "v", "w", "x/y"]
    assert inode == (tmp_path / "m" / "w").stat().st_ino  # every other time it is the same
    assert names(tmp_path) == [".m.saving-directory", "m"]
    save(tmp_path / "m")
    assert names(tmp_path) == ["m"]


def test_files_that_are_linked_elsewhere_are_not_written_over(tmp_path):
    """Proves S14."""
    save(tmp_path / "m", keep_generation=True)
    (tmp_path / "mine").hardlink_to(tmp_path / "m" / "w")
    for _ in range(3):
        save(tmp_path / "m", {"w": b"1", "v": b"2"}, keep_generation=True)
    assert (tmp_path / "mine").read_bytes() == FILES["w"]


def test_files_that_arrive_during_the_exchange_stay(tmp_path, monkeypatch):
    """Proves S4."""
    save(tmp_path / "m")
    (tmp_path / "m" / "notes").write_bytes(b"old")
    real = generation.exchange

    def late(a, b):
        (tmp_path / "m" / "arrived").write_bytes(b"1")
        (tmp_path / "m" / "folder" / "deep").mkdir(parents=True)
        (tmp_path / "m" / "folder" / "deep" / "file").write_bytes(b"2")
        (tmp_path / "notes.tmp").write_bytes(b"new")
        (tmp_path / "notes.tmp").rename(tmp_path / "m" / "notes")
        real(a, b)

    monkeypatch.setattr(generation, "exchange", late)
    save(tmp_path / "m", {"w": b"1", "v": b"2"})
    found = contents(tmp_path / "m")
    assert found["arrived"] == b"1"
    assert found["folder/deep/file"] == b"2"
    assert found["notes"] == b"new"
    assert found["w"] == b"1"
    assert names(tmp_path) == ["m"]


def test_a_late_file_does_not_replace_a_newer_one(tmp_path):
    """Proves S4."""
    for folder, text in (("old", "late"), ("m", "newer")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "w").write_text(text)
    (tmp_path / "old" / "v").write_text("late")
    rescue(str(tmp_path / "old"), str(tmp_path / "m"), {}, remove=True)
    assert (tmp_path / "m" / "w").read_text() == "newer"
    assert (tmp_path / "m" / "v").read_text() == "late"


def test_a_save_from_inside_its_own_directory_uses_a_journal(tmp_path, monkeypatch):
    save(tmp_path / "m")
    monkeypatch.chdir(tmp_path / "m" / "a")
    save("..", {"w": b"1", "v": b"2"})
    assert Path.cwd() == tmp_path / "m" / "a"
    assert (tmp_path / "m" / "w").read_bytes() == b"1"
    assert manifest_file.verify("..")


# --- two savers -----------------------------------------------------------------------------------


def test_a_save_while_another_thread_saves_is_refused(tmp_path):
    """Proves S2."""
    save(tmp_path / "m")
    with (
        Lock(f"{tmp_path}/.m.saving-directory/lock", "m"),
        pytest.raises(SaveError, match="saved by another thread") as caught,
    ):
        save(tmp_path / "m", {"w": b"1"}, wait=0)
    assert "wait=" in caught.value.hint
    (tmp_path / ".m.saving-directory").mkdir()
    (tmp_path / ".m.saving-directory" / "lock").write_text(
        f"1 {os.uname().nodename} 7\n"
    )  # a saver that is dead
    save(tmp_path / "m", {"w": b"1"})
    assert names(tmp_path) == ["m"]


def test_kept_files_stay_between_reserve_and_commit(tmp_path):
    """Proves S8."""
    first = save(tmp_path / "m")
    for end in ("commit", "release"):
        transaction = Transaction(tmp_path / "m")
        assert transaction.reserve()
        assert transaction.keep("w", first.files["w"])
        with pytest.raises(SaveError, match="saved by another thread"):
            save(tmp_path / "m", {"w": b"1"}, wait=0)
        getattr(transaction, end)()
        assert (tmp_path / "m" / "w").read_bytes() == FILES["w"]
    save(tmp_path / "m", {"w": b"1"}, wait=0)
    with Lock(f"{tmp_path}/.m.saving-directory/lock", "m"):
        assert not Transaction(tmp_path / "m").reserve()
    assert not Transaction(tmp_path / "new").reserve()
    assert names(tmp_path) == ["m"]


def test_a_file_that_another_save_replaced_in_the_base_is_written(tmp_path):
    """Proves S8."""
    first = save(tmp_path / "base")
    transaction = Transaction(tmp_path / "m")
    for name in FILES:
        assert transaction.keep(
            name, first.files[name], base=tmp_path / "base", otherwise=lambda name=name: ([FILES[name]], {})
        )
    save(tmp_path / "base", {"w": b"other", "v": b"other"})
    done = transaction.commit()
    assert (done.written, done.kept) == (2, 1)
    assert manifest_file.verify(tmp_path / "m")
    assert (tmp_path / "m" / "w").read_bytes() == FILES["w"]


def test_a_process_forked_while_a_lock_is_taken_does_not_keep_it(tmp_path, monkeypatch):
    """A killed saver leaves its lock file; the next save must not wait for a process that saves nothing."""
    real, children = lock_module._flock, []

    def flock(fd):
        def fork():
            children.append(os.fork())
            if children[-1] == 0:
                os.write(says_so, b"1")
                signal.pause()

        taken = real(fd)
        if not forks:
            forks.append(threading.Thread(target=fork))
            forks[0].start()
            forks[0].join(0.2)  # it is not forked before the lock is known
        return taken

    forks = []
    listens, says_so = os.pipe()
    monkeypatch.setattr(lock_module, "_flock", flock)
    path = f"{tmp_path}/.m.saving-directory/lock"
    first = Lock(path, "m")
    assert first.acquire()
    forks[0].join(30)
    try:
        assert os.read(listens, 1)  # the child runs
        close_files(first._files)  # as the system does when the process is killed
        assert Lock(path, "m").acquire()
    finally:
        os.kill(children[0], signal.SIGKILL)
        os.waitpid(children[0], 0)


def test_a_lock_can_be_taken_after_its_file_was_removed(tmp_path, monkeypatch):
    """Proves S2."""
    real, removed = lock_module._flock, []
    path = tmp_path / ".m.saving-directory" / "lock"

    def flock(*given):
        taken = real(*given)
        if not removed:  # by its last holder
            path.unlink()
            removed.append(path)
        return taken

    monkeypatch.setattr(lock_module, "_flock", flock)
    lock = Lock(str(path), "m")
    assert lock.acquire()
    assert os.path.samestat(os.fstat(lock._files[0]), path.stat())
    lock.release()


def test_an_error_names_the_process_that_holds_the_lock(tmp_path):
    child = os.fork()
    if child == 0:
        with Lock(f"{tmp_path}/.m.saving-directory/lock", "m"):
            (tmp_path / "ready").touch()
            while not (tmp_path / "done").exists():
                pass
        os._exit(0)
    while not (tmp_path / "ready").exists():
        pass
    try:
        with pytest.raises(SaveError, match=f"by process {child} at this moment"):
            save(tmp_path / "m", wait=0)
    finally:
        (tmp_path / "done").touch()
        os.waitpid(child, 0)
    save(tmp_path / "m")


def test_waiting_savers_take_turns(tmp_path):
    """Proves S2."""
    faults = []

    def work(number):
        try:
            for _ in range(10):
                values = {name: bytes([number]) * 50 for name in FILES}
                save(tmp_path / "m", values, wait=None, durability="process")  # however busy the disk is
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert len({data for name, data in contents(tmp_path / "m").items() if data != b"/"}) == 1
    assert manifest_file.verify(tmp_path / "m")
    assert names(tmp_path) == ["m"]


# --- what is left of a save that was interrupted ----------------------------------------------------


def test_a_file_in_place_of_the_staging_area_is_refused(tmp_path):
    (tmp_path / ".m.saving-directory").write_bytes(b"mine")
    with pytest.raises(SaveError, match="where the folder of a save belongs"):
        save(tmp_path / "m")
    assert (tmp_path / ".m.saving-directory").read_bytes() == b"mine"


@pytest.mark.parametrize(
    "text",
    [
        "{}", "[]", '{"format": 1}',
        """{"format": 2, "direction": "forward", "targets": [["../x", null, null]], "folders": [],
        "sync": false}""",
    ],
)  # fmt: skip
def test_a_file_that_is_not_a_journal_is_refused(tmp_path, text):
    save(tmp_path / "m")
    (tmp_path / ".m.saving-directory").mkdir()
    (tmp_path / ".m.saving-directory" / "journal").write_text(text)
    with pytest.raises(StorageError, match="is not the journal of a save"):
        recover(tmp_path / "m")
    assert contents(tmp_path / "m")["v"] == b"v"


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("rest", [b"", b"\0" * 50], ids=["short", "zeros"])
def test_a_half_written_journal_commits_nothing(tmp_path, part, rest):
    """As a power cut leaves one whose name came to the disk before its bytes."""
    save(tmp_path / "m")
    (tmp_path / ".m.saving-directory").mkdir()
    path = tmp_path / ".m.saving-directory" / "journal"
    journal_file.write_journal(path, journal_file.Journal("forward", [], ["a folder"], sync=False))
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)] + rest)
    where = LocalDirectory(tmp_path / "m")
    assert where.stamp() == where.stamp()  # nothing is in motion
    assert read_all(tmp_path / "m", ["v"], lambda _, file: bytes(file.read_at(0, 1))) == {"v": b"v"}
    recover(tmp_path / "m")
    assert contents(tmp_path / "m")["v"] == b"v"
    save(tmp_path / "m")
    assert names(tmp_path) == ["m"]


def test_a_journal_is_synced_before_it_gets_its_name(tmp_path, monkeypatch):
    """Proves S16."""
    calls = []
    sync, rename = os.fsync, os.rename
    monkeypatch.setattr(
        os, "fsync", lambda fd: (calls.append(str(Path(f"/proc/self/fd/{fd}").readlink())), sync(fd))
    )
    monkeypatch.setattr(os, "rename", lambda a, b: (calls.append(os.fspath(b)), rename(a, b)))
    for content in (b"1", b"2"):
        with Transaction(tmp_path, prefix=tmp_path / "net", durability="process") as transaction:
            transaction.add("net.a", [content])
            transaction.add("net.b", [content])
    staging = tmp_path / ".net.saving-prefix"
    named = calls.index(str(staging / "journal"))
    for path in ("forward", "new/net.a", "new/net.b", "new/net.pdmanifest"):
        assert str(staging / path) in calls[:named]


def test_a_kept_file_that_another_save_replaced_is_written(tmp_path):
    """S8."""
    first = save(tmp_path / "m")
    ours = Transaction(tmp_path / "m")
    assert ours.keep("w", first.files["w"], otherwise=lambda: ([b"ours"], {"variable": "w"}))
    save(tmp_path / "m", {"w": b"theirs"})
    done = ours.commit()
    assert (done.written, done.kept) == (1, 0)
    assert contents(tmp_path / "m")["w"] == b"ours"
    assert manifest_file.verify(tmp_path / "m")


def test_a_directory_that_allows_no_new_entries_is_refused_at_once(tmp_path, monkeypatch):
    """As /proc, where mkdir answers 'not found' though the parent is there."""
    make = os.mkdir

    def refuse(path, *args, **kwargs):
        if os.fspath(path).endswith(".saving-directory"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return make(path, *args, **kwargs)

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(SaveError, match="no file can be created in"):
        save(tmp_path / "m")


def test_the_next_reader_finishes_a_journal(tmp_path, monkeypatch):
    save(tmp_path / "m")
    without_exchange(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(journal, "_replay", lambda layout, journal: None)
        patch.setattr(staged, "clear", lambda *_, **__: None)
        save(tmp_path / "m", {"w": b"1", "v": b"2", "new/x": b"3"})
    assert contents(tmp_path / "m")["v"] == b"v"
    assert (tmp_path / ".m.saving-directory" / "journal").exists()
    assert list_names(tmp_path / "m") == ["a/b", "new/x", "v", "w"]
    assert contents(tmp_path / "m")["v"] == b"2"
    assert manifest_file.verify(tmp_path / "m")


def test_a_reused_generation_gets_a_new_stamp(tmp_path):
    """By the stamp a reader finds out that a directory was written into while it read it."""
    stamps = set()
    for number in range(6):
        save(tmp_path / "m", {"w": b"%d" % number, "v": b"%d" % number}, keep_generation=True)
        stamps.add(LocalDirectory(tmp_path / "m").stamp())
    assert len({inode for _, inode, _ in stamps}) == 2  # two directories take turns
    assert len(stamps) == 6
