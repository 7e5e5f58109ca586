"""What real systems refuse: full disks, mount points, other users' directories. Most of it needs root."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddlelike.errors import SaveError
from paddlelike.storage.local import files, manifest_file, target
from paddlelike.storage.local.filesystem import cross_device
from paddlelike.storage.local.transaction import Transaction
from tests.storage.test_transaction import contents, names

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="mounts and users as Linux has them"
)
OLD = {"a/b": b"x" * 300, "w": b"w" * 1_000_000}
NOBODY = 65534


def save(directory: Path, files: dict[str, bytes], **options: object) -> None:
    transaction = Transaction(directory, **options)  # type: ignore[arg-type]
    for name, data in files.items():
        transaction.add(name, [data])
    transaction.commit()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("this user cannot mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("files", [{"w": bytes(5 << 20)}, {f"w_{n}": bytes(40_000) for n in range(120)}])
def test_a_full_disk_leaves_the_old_files(disk, files):
    save(disk / "m", OLD)
    before = contents(disk)
    with pytest.raises(SaveError, match="No space left") as caught:
        save(disk / "m", files | {"a/b": b"new"})
    assert "the disk is full" in caught.value.hint
    assert contents(disk) == before
    assert manifest_file.verify(disk / "m")


def test_a_save_into_a_mount_point_uses_the_journal(disk):
    save(disk, OLD)
    (disk / "theirs").write_bytes(b"1")
    save(disk, {"w": b"new", "a/b": b"", "c": b"3"})
    assert contents(disk) == {"a": b"/", "a/b": b"", "c": b"3", "theirs": b"1", "w": b"new"}
    save(disk, {"w": b"newer"})
    assert manifest_file.verify(disk).good == ("a/b", "c", "w")
    assert names(disk.parent) == ["disk"]


def test_a_full_mount_point_leaves_the_old_files(disk):
    save(disk, OLD)
    before = contents(disk)
    with pytest.raises(SaveError, match="No space left"):
        save(disk, {"a/b": b"new", "big": bytes(5 << 20), "w": b"new"})
    assert contents(disk) == before
    assert manifest_file.verify(disk)


def as_nobody(work: Callable[[], None]) -> None:
    """Run ``work`` in a fork of a user without rights."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


@pytest.fixture
def open_place(tmp_path: Path) -> Path:
    if os.geteuid():
        pytest.skip("only root can become another user")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and folder != Path("/") and not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(0o755)
    tmp_path.chmod(0o777)
    return tmp_path


def test_saving_into_a_read_only_directory_is_refused(open_place):
    save(open_place / "m", OLD)
    before = contents(open_place)

    def work() -> None:
        with pytest.raises(SaveError, match="cannot be written: Permission denied"):
            save(open_place / "m", {"w": b"new", "v": b""})

    as_nobody(work)
    assert contents(open_place) == before


def test_a_directory_below_a_read_only_parent_is_saved_under_a_journal(open_place):
    """As real Fluid does, which writes into the directory alone."""
    (open_place / "in").mkdir()
    save(open_place / "in" / "m", OLD)
    (open_place / "in" / "m").chmod(0o777)
    (open_place / "in" / "m" / "a").chmod(0o777)

    def work() -> None:
        with pytest.warns(UserWarning, match=r"saved file by file, since its parent .* cannot be written"):
            save(open_place / "in" / "m", {"w": b"new", "v": b"", "a/b": b"new"})
        with pytest.raises(SaveError, match="cannot be created: Permission denied"):
            save(open_place / "in" / "deep" / "new", {"w": b"new", "v": b""})

    as_nobody(work)
    assert contents(open_place / "in") == {
        "m": b"/", "m/a": b"/", "m/a/b": b"new", "m/v": b"", "m/w": b"new",
    }  # fmt: skip
    assert manifest_file.verify(open_place / "in" / "m").good == ("a/b", "v", "w")


@pytest.mark.parametrize(("call", "at"), [("rename", 0), ("replace", 0), ("replace", 1), ("replace", 2)])
def test_a_killed_save_of_a_volume_is_finished_by_the_next_load_or_save(tmp_path, monkeypatch, call, at):
    monkeypatch.setattr(target, "_may_write", lambda folder: Path(folder) != tmp_path)
    model = tmp_path / "m"
    model.mkdir()
    with pytest.warns(UserWarning, match="file by file"):
        save(model, {"v": b"old", "w": b"old"})

    def work() -> None:
        calls: list[object] = []
        real = getattr(os, call)

        def die_at_last(*args: object) -> None:
            calls.append(args)
            if len(calls) > at:
                os.kill(os.getpid(), signal.SIGKILL)
            real(*args)

        setattr(os, call, die_at_last)
        save(model, {"v": b"new", "w": b"new"})

    child = os.fork()
    if child == 0:
        work()
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert names(tmp_path) == ["m"]
    assert files.list_names(model) == ["v", "w"]
    held = {name: (model / name).read_bytes() for name in ("v", "w")}
    assert held == dict.fromkeys("vw", b"old" if call == "rename" else b"new")
    monkeypatch.undo()  # and who may write beside it clears up what is left inside
    save(model, {"v": b"newer", "w": b"newer"})
    assert names(model) == ["__manifest__", "v", "w"]
    assert manifest_file.verify(model)


def test_a_directory_of_another_user_keeps_its_owner(open_place):
    save(open_place / "m", OLD)
    (open_place / "m").chmod(0o2777)
    (open_place / "m" / "a").chmod(0o777)
    (open_place / "m" / "__manifest__").unlink()

    def work() -> None:
        save(open_place / "m", {"w": b"new", "a/b": b"", "v": b""})

    as_nobody(work)
    facts = (open_place / "m").stat()
    assert (facts.st_uid, stat.S_IMODE(facts.st_mode)) == (0, 0o2777)
    assert (open_place / "m" / "w").read_bytes() == b"new"
    assert names(open_place) == ["m"]


def test_saves_keep_owners_and_modes(tmp_path):
    if os.geteuid():
        pytest.skip("only root can give files away")
    save(tmp_path / "m", OLD)
    os.chown(tmp_path / "m", NOBODY, 12)
    os.chown(tmp_path / "m" / "a", 7, 8)
    os.chown(tmp_path / "m" / "w", NOBODY, 13)
    (tmp_path / "m" / "w").chmod(0o640)
    (tmp_path / "m").chmod(0o2750)
    (tmp_path / "m" / "a").chmod(0o700)
    save(tmp_path / "m", {"w": b"1", "a/b": b"2", "v": b"3"})
    seen = {
        name: ((tmp_path / "m" / name).stat().st_uid, (tmp_path / "m" / name).stat().st_gid)
        for name in ("", "a", "w", "v")
    }
    assert seen == {"": (NOBODY, 12), "a": (7, 8), "w": (NOBODY, 13), "v": (0, 12)}
    modes = [stat.S_IMODE((tmp_path / "m" / name).stat().st_mode) for name in ("", "a", "w")]
    assert modes == [0o2750, 0o700, 0o640]


def test_a_save_beyond_the_file_size_limit_leaves_the_old_files(tmp_path):
    save(tmp_path / "m", OLD)
    before = contents(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, limits[1]))
    try:
        with pytest.raises(SaveError, match="w cannot be written: File too large"):
            save(tmp_path / "m", {"w": bytes(1 << 20), "a/b": b"new"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert contents(tmp_path) == before


def test_saving_to_a_read_only_file_system_is_refused(disk):
    save(disk / "m", OLD)
    before = contents(disk)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    try:
        for directory in (disk / "m", disk / "new", disk / "deep" / "new"):
            with pytest.raises(SaveError) as caught:
                save(directory, {"w": b"new"})
            assert str(directory) in str(caught.value)
            assert "choose another directory" in caught.value.hint
            assert "Read-only" in str(caught.value)
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    assert contents(disk) == before


@pytest.mark.parametrize("call", ["write", "writev", "open", "mkdir", "link", "ftruncate"])
@pytest.mark.parametrize("keep", [False, True])
def test_an_exhausted_quota_at_any_call_leaves_old_or_new_files(tmp_path, monkeypatch, call, keep):
    """Quotas need a file system of one's own; what counts is that each call may say so."""
    home = tmp_path / "m"
    for _ in range(2):
        save(home, OLD, keep_generation=keep)
    (home / "theirs").write_bytes(b"1")
    before = contents(home)
    real, calls = getattr(os, call), []
    for number in range(100):
        calls.clear()

        def refuse(*args, **kwargs):
            calls.append(args)
            if len(calls) == number + 1:  # noqa: B023
                raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
            return real(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, refuse)
            try:
                save(home, {"w": b"n" * 1_100_000, "a/b": b"new", "c": b"3"}, keep_generation=keep)
                said = None
            except SaveError as error:
                said = error
            except UserWarning:  # it was saved, but perhaps not to the disk
                said = None
        if len(calls) <= number:  # never refused
            assert said is None
            break
        if said is None:  # something else did as well
            assert manifest_file.verify(home).good == ("a/b", "c", "w")
            save(home, OLD, keep_generation=keep)
            (home / "c").unlink()
            continue
        assert "quota" in str(said).lower()
        assert str(home) in str(said)
        assert contents(home) == before
        assert manifest_file.verify(home).good == ("a/b", "w")
    assert number or call == "ftruncate"


def test_a_file_in_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "m").write_bytes(b"theirs")
    with pytest.raises(SaveError, match="m is a file; a directory is needed"):
        save(tmp_path / "m", {"w": b"new"})
    with pytest.raises(SaveError) as caught:
        save(tmp_path / "m" / "deeper", {"w": b"new"})
    assert "there is a file of that name" in caught.value.hint
    assert contents(tmp_path) == {"m": b"theirs"}


@pytest.mark.parametrize("unnamed", [True, False])
def test_in_a_mount_point_no_file_is_ever_half_written(disk, monkeypatch, unnamed):
    """Who looks at any moment finds each file old, new, or (for an instant) not at all."""
    names_of = [f"w_{number}" for number in range(3)]
    save(disk, dict.fromkeys(names_of, b"old" * 100000))
    if not unnamed:
        monkeypatch.setattr(cross_device, "_UNNAMED", 0)
    real, seen, torn = os.unlink, set(), []

    def look() -> None:
        for name in names_of:
            data = (disk / name).read_bytes() if (disk / name).exists() else b""
            seen.add(data[:3])
            if data not in (b"", b"old" * 100_000, b"new" * 100_000):
                torn.append(name)

    def watched(path, **kwargs):
        look()
        real(path, **kwargs)
        look()

    monkeypatch.setattr(os, "unlink", watched)
    copy = cross_device.shutil.copyfileobj

    def slowly(old, new, length):
        copy(old, new, 1000)
        look()

    monkeypatch.setattr(cross_device.shutil, "copyfileobj", slowly)
    (disk / "w_1").chmod(0o640)
    save(disk, dict.fromkeys(names_of, b"new" * 100000))
    assert {b"old", b"new"} <= seen
    assert not torn or not unnamed
    assert stat.S_IMODE((disk / "w_1").stat().st_mode) == 0o640
    monkeypatch.undo()
    assert manifest_file.verify(disk).good == ("w_0", "w_1", "w_2")
    assert names(disk) == ["__manifest__", *names_of]


def test_a_hard_link_to_a_file_in_a_mount_point_keeps_its_content(disk):
    save(disk, {"w": b"old", "v": b"old"})
    os.link(disk / "w", disk / "theirs")
    save(disk, {"w": b"new", "v": b"new"})
    assert (disk / "theirs").read_bytes() == b"old"
    assert (disk / "w").read_bytes() == b"new"


def test_a_file_that_is_a_mount_point_is_overwritten_in_place(disk, tmp_path):
    """As containers have it, where a single file is mounted."""
    save(tmp_path / "a m", {"w": b"old", "v": b"old"})
    (disk / "file").write_bytes(b"old")  # also where the name has a space
    command = ["mount", "--bind", str(disk / "file"), str(tmp_path / "a m" / "w")]
    subprocess.run(command, check=True)
    try:
        save(tmp_path / "a m", {"w": b"new!", "v": b"new!"})
        assert (tmp_path / "a m" / "w").read_bytes() == b"new!"
        assert (disk / "file").read_bytes() == b"new!"
    finally:
        subprocess.run(["umount", "-l", str(tmp_path / "a m" / "w")], check=True)
