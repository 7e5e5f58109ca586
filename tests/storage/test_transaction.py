"""A set of files is written completely, or nothing changes and nothing is left behind."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from paddlelike.errors import FormatError, PaddlelikeError, SaveError, StorageError
from paddlelike.storage.local import generation, transaction
from paddlelike.storage.local.files import LARGE
from paddlelike.storage.local.transaction import Transaction, write_all
from paddlelike.storage.names import MANIFEST

FILES = {"b": [b"head", b"data"], "a/deep/er": [b"x"], "empty": [b""], "large": [b"h", bytes(LARGE)]}


def contents(directory: Path) -> dict[str, bytes]:
    """Everything below a directory, empty directories as well."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() if path.is_file() else b"/"
        for path in sorted(directory.rglob("*"))
        if path.name != MANIFEST
    }


def expected(files: dict[str, list[bytes]]) -> dict[str, bytes]:
    folders = {parent.as_posix(): b"/" for name in files for parent in list(Path(name).parents)[:-1]}
    return dict(sorted((folders | {name: b"".join(parts) for name, parts in files.items()}).items()))


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def failing(monkeypatch: pytest.MonkeyPatch, call: str, number: int, code: int) -> None:
    """Let the ``number``-th call of a function of ``os`` fail."""
    real, calls = getattr(os, call), []

    def sometimes(*args, **kwargs):
        calls.append(call)
        if len(calls) == number:
            raise OSError(code, os.strerror(code))
        return real(*args, **kwargs)

    monkeypatch.setattr(os, call, sometimes)


def without_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that cannot exchange two directories."""

    def refuse(a, b):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(generation, "exchange", refuse)


# --- what is written ------------------------------------------------------------------------------


def test_a_save_creates_a_new_directory(tmp_path):
    write_all(tmp_path / "new" / "model", FILES)
    assert contents(tmp_path / "new" / "model") == expected(FILES)
    assert names(tmp_path / "new") == ["model"]


def test_an_existing_directory_keeps_its_other_files(tmp_path):
    """Proves S3."""
    write_all(tmp_path / "m", {"b": [b"old"], "other": [b"kept"]})
    write_all(tmp_path / "m", FILES)
    assert contents(tmp_path / "m") == expected(FILES | {"other": [b"kept"]})
    assert names(tmp_path) == ["m"]


def test_a_save_replaces_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "m").mkdir()
    monkeypatch.chdir(tmp_path / "m")
    write_all("", FILES)
    assert contents(tmp_path / "m") == expected(FILES)


def test_a_save_follows_a_link_to_a_directory(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    write_all(tmp_path / "link", FILES)
    assert contents(tmp_path / "there") == expected(FILES)
    assert (tmp_path / "link").is_symlink()
    assert Transaction(tmp_path / "link").directory == str((tmp_path / "there").resolve())


def test_pieces_may_be_made_while_they_are_written(tmp_path):
    def pieces():
        for number in range(3000):
            yield b"%04d" % number

    write_all(tmp_path, {"all": pieces(), "views": [memoryview(bytes(9 << 20)), bytearray(b"end")]})
    assert (tmp_path / "all").read_bytes() == b"".join(pieces())
    assert (tmp_path / "views").stat().st_size == (9 << 20) + 3


def test_short_writes_are_continued(tmp_path, monkeypatch):
    writev = os.writev
    monkeypatch.setattr(os, "writev", lambda fd, parts: writev(fd, [memoryview(parts[0])[:3]]))
    write_all(tmp_path, {"w": [b"0123456", b"", b"789"]})
    assert (tmp_path / "w").read_bytes() == b"0123456789"


def test_a_save_works_without_posix_system_calls(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "writev")
    write_all(tmp_path / "m", FILES)
    assert contents(tmp_path / "m") == expected(FILES)


def test_a_save_works_without_hard_links(tmp_path, monkeypatch):
    write_all(tmp_path, {"b": [b"old"]})
    failing(monkeypatch, "link", 1, errno.EPERM)
    write_all(tmp_path, FILES)
    assert (tmp_path / "b").read_bytes() == b"headdata"


def test_a_save_without_files_does_not_change_the_directory(tmp_path):
    write_all(tmp_path / "m", {})
    assert not (tmp_path / "m").exists()


def test_file_modes_follow_the_umask_and_replaced_files(tmp_path):
    old = os.umask(0o027)
    try:
        write_all(tmp_path / "m", {"w": [b"1"]})
        (tmp_path / "m" / "w").chmod(0o604)
        write_all(tmp_path / "m", {"w": [b"2"], "v": [b"3"]})
    finally:
        os.umask(old)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in [tmp_path / "m", *tmp_path.glob("m/*")]}
    assert modes == {"m": 0o750, "w": 0o604, "v": 0o640}
    assert (tmp_path / "m" / "w").read_bytes() == b"2"


def test_an_exception_in_the_block_writes_nothing(tmp_path):
    transaction = Transaction(tmp_path / "m")
    transaction.add("w", [b"1"])
    error = KeyError()
    with pytest.raises(KeyError), transaction:
        raise error
    assert contents(tmp_path) == {}


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "kind", "message"),
    [
        (["w", "../w"], StorageError, "a part '..'"),
        (["a/b", "a//b"], StorageError, "variables 'a/b' and 'a//b' would be the same file"),
        (["a", "a/b/c"], SaveError, "variable 'a' is a file where 'a/b/c' needs a directory"),
        (["folder"], SaveError, "variable 'folder' cannot be saved: .*/folder is a directory"),
        (["old/w"], SaveError, "variable 'old/w' cannot be saved: .*m/old is a file, not a directory"),
    ],
    ids=["outside", "twice", "file and directory", "directory there", "file there"],
)
def test_names_that_cannot_be_files_are_refused(tmp_path, wanted, kind, message):
    (tmp_path / "m" / "folder").mkdir(parents=True)
    (tmp_path / "m" / "old").write_bytes(b"1")
    before = contents(tmp_path)
    with pytest.raises(kind, match=message):
        write_all(tmp_path / "m", {name: [b"x"] for name in wanted})
    assert contents(tmp_path) == before


def test_a_file_in_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "m").write_bytes(b"1")
    with pytest.raises(SaveError, match=r"m is a file; a directory is needed"):
        write_all(tmp_path / "m", FILES)
    with pytest.raises(SaveError, match=r"m/in cannot be created: (Not a directory|File exists)"):
        write_all(tmp_path / "m" / "in", FILES)
    assert (tmp_path / "m").read_bytes() == b"1"


def test_a_parent_without_write_permission_raises_an_error(tmp_path, monkeypatch):
    write_all(tmp_path / "m", {"b": [b"old"]})
    before = contents(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, *_, **__: not str(path).endswith(tmp_path.name))
    with pytest.warns(UserWarning, match="is saved file by file, since its parent .* cannot be written"):
        write_all(tmp_path / "m", FILES)
    assert contents(tmp_path / "m") == expected(FILES)
    assert before["m/b"] == b"old"


def test_a_mount_point_is_saved_under_a_journal(tmp_path, monkeypatch):
    write_all(tmp_path / "m", {"b": [b"old"]})
    real = os.stat

    def elsewhere(path, **kwargs):
        facts = list(real(path, **kwargs))
        facts[2] += os.fspath(path).endswith("m")  # another device
        return os.stat_result(facts)

    monkeypatch.setattr(os, "stat", elsewhere)
    write_all(tmp_path / "m", FILES)
    monkeypatch.undo()
    assert contents(tmp_path / "m") == expected(FILES)
    assert names(tmp_path) == ["m"]


FAILURES = [
    ("open", 2, errno.EMFILE, "ulimit"),
    ("writev", 1, errno.ENOSPC, "the disk is full"),
    ("writev", 3, errno.EDQUOT, "the quota"),
    ("close", 2, errno.EIO, None),
    ("mkdir", 3, errno.ENOSPC, "the disk is full"),
]
FAILURES_OF_THE_JOURNAL = [
    ("rename", 1, errno.ENOSPC, "the disk is full"),
    ("replace", 1, errno.EROFS, "read-only"),
    ("replace", 3, errno.EACCES, "may not do that"),
    ("unlink", 1, errno.EIO, None),
    ("utime", 1, errno.EPERM, "may not do that"),
]


@pytest.mark.parametrize(("call", "number", "code", "hint"), FAILURES)
def test_a_failed_write_leaves_the_old_files_intact(tmp_path, monkeypatch, call, number, code, hint):
    write_all(tmp_path / "m", {"b": [b"old"], "empty": [b"full"], "other": [b"kept"]})
    before = contents(tmp_path)
    failing(monkeypatch, call, number, code)
    with pytest.raises(SaveError, match=os.strerror(code)) as caught:
        write_all(tmp_path / "m", FILES)
    monkeypatch.undo()
    assert contents(tmp_path) == before
    assert hint is None or hint in caught.value.hint


@pytest.mark.parametrize(("call", "number", "code", "hint"), FAILURES_OF_THE_JOURNAL)
def test_a_failure_during_a_journal_commit_is_undone(tmp_path, monkeypatch, call, number, code, hint):
    """Proves S5."""
    write_all(tmp_path / "m", {"b": [b"old"], "empty": [b"full"], "other": [b"kept"]})
    before = contents(tmp_path)
    without_exchange(monkeypatch)
    failing(monkeypatch, call, number, code)
    with pytest.raises(SaveError, match=os.strerror(code)) as caught:
        write_all(tmp_path / "m", FILES)
    monkeypatch.undo()
    assert contents(tmp_path) == before
    assert hint is None or hint in caught.value.hint


@pytest.mark.parametrize(("call", "number", "code"), [("writev", 1, errno.ENOSPC),
                                                      ("rename", 1, errno.EACCES)])  # fmt: skip
def test_a_failed_save_leaves_no_new_directory(tmp_path, monkeypatch, call, number, code):
    failing(monkeypatch, call, number, code)
    with pytest.raises(SaveError, match=os.strerror(code)):
        write_all(tmp_path / "m", FILES)
    assert contents(tmp_path) == {}


def test_a_directory_that_somebody_creates_during_the_save_keeps_its_files(tmp_path, monkeypatch):
    real = os.rename

    def late(old, new):
        if Path(new).name == "m":
            Path(new).mkdir()
            (Path(new) / "other").write_bytes(b"kept")
        real(old, new)

    monkeypatch.setattr(os, "rename", late)
    write_all(tmp_path / "m", FILES)
    assert contents(tmp_path / "m") == expected(FILES | {"other": [b"kept"]})
    assert names(tmp_path) == ["m"]


def test_readers_always_see_one_complete_save(tmp_path, monkeypatch):
    """Between any two calls that rename, the directory holds all old files or all new ones. Proves S1."""
    old, new = {"b": [b"old"], "c": [b"old"]}, {"b": [b"new"], "c": [b"new"]}
    write_all(tmp_path / "m", old)
    seen = []

    def watch(module, call):
        real = getattr(module, call)

        def watched(*args, **kwargs):
            seen.append(contents(tmp_path / "m"))
            result = real(*args, **kwargs)
            seen.append(contents(tmp_path / "m"))
            return result

        monkeypatch.setattr(module, call, watched)

    watch(os, "rename")
    watch(generation, "exchange")
    write_all(tmp_path / "m", new)
    assert seen[0] == expected(old)
    assert seen[-1] == expected(new)
    assert all(each in (seen[0], seen[-1]) for each in seen)


def test_bytes_are_on_the_disk_before_the_commit(tmp_path, monkeypatch):
    """Proves S15."""
    write_all(tmp_path / "m", FILES)
    calls = []
    monkeypatch.setattr(transaction, "sync_file_system", lambda path: calls.append("bytes"))
    exchange = generation.exchange
    monkeypatch.setattr(generation, "exchange", lambda *both: [calls.append("commit"), exchange(*both)])
    with Transaction(tmp_path / "m", durability="power") as saving:
        saving.add("b", [b"new"])
        saving.add("c", [b"new"])
    assert calls == ["bytes", "commit"]


@pytest.mark.parametrize("error", [FormatError("no bytes"), KeyboardInterrupt()], ids=["format", "^C"])
def test_an_error_while_producing_data_leaves_the_old_files(tmp_path, error):
    def pieces():
        yield b"begin"
        raise error

    write_all(tmp_path / "m", {"b": [b"old"]})
    before = contents(tmp_path)
    with pytest.raises(type(error)):
        write_all(tmp_path / "m", FILES | {"b": pieces()})
    assert contents(tmp_path) == before
    assert isinstance(error, PaddlelikeError | KeyboardInterrupt)
