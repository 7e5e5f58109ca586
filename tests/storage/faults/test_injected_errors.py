"""Every call of the system fails in turn: the save raises a SaveError or succeeds, and says which it was."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from paddlelike.errors import SaveError
from paddlelike.storage.local import manifest_file
from paddlelike.storage.local.files import recover
from paddlelike.storage.local.transaction import Transaction
from tests.storage.test_transaction import contents, names, without_exchange

OLD = {"a": b"old", "sub/b": b"old b", "large": b"o" * 1_100_000}
NEW = {"a": b"new", "sub/b": b"new b", "large": b"n" * 1_100_000}
QUICK = ["close", "open", "rename", "statvfs"]
SLOW = [
    "access", "chmod", "fstat", "ftruncate", "link", "listxattr", "lstat", "makedirs", "mkdir", "replace",
    "rmdir", "scandir", "stat", "symlink", "unlink", "utime", "write", "writev",
]  # fmt: skip
CALLS = [*QUICK, *(pytest.param(call, marks=pytest.mark.slow) for call in SLOW)]


def save(directory: Path, files: dict[str, bytes], **options: object) -> None:
    transaction = Transaction(directory, wait=0, **options)
    for name, data in files.items():
        transaction.add(name, [data[:2], data[2:]])
    transaction.commit()


@pytest.mark.parametrize("step", ["new", "exchange", "journal"])
@pytest.mark.parametrize("call", CALLS)
def test_an_error_in_any_system_call_leaves_the_old_or_the_new_save(tmp_path, monkeypatch, call, step):
    for number in range(1, 300):
        home = tmp_path / str(number)
        home.mkdir()
        if step != "new":
            save(home / "m", OLD)
        calls: list[int] = []
        outcome = _save_with_error(home / "m", call, number, calls, step, monkeypatch)
        recover(home / "m")
        found = contents(home / "m") if (home / "m").exists() else {}
        files = {name: data for name, data in found.items() if data != b"/"}
        assert files == (NEW if outcome else {} if step == "new" else OLD), f"{call} {number}"
        if files:
            assert manifest_file.verify(home / "m"), f"{call} {number}"
        save(home / "m", NEW)
        assert names(home) == ["m"], f"{call} {number}"
        if len(calls) < number:
            assert outcome
            return
    raise AssertionError(f"{call} is called more than {number} times")


def _save_with_error(
    directory: Path, call: str, number: int, calls: list[int], step: str, monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Save NEW while the ``number``-th call fails; return whether the save says that it took place."""
    real = getattr(os, call)

    def sometimes(*args: object, **kwargs: object) -> object:
        calls.append(1)
        if len(calls) == number:
            if call == "close":
                real(*args, **kwargs)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        if step == "journal":
            without_exchange(patch)
        patch.setattr(os, call, sometimes)
        if call in ("access", "chmod"):  # looked up in sets of functions
            patch.setattr(os, "supports_effective_ids", {sometimes})
        if call == "open":
            patch.setattr(os, "supports_dir_fd", {*os.supports_dir_fd, sometimes})
        try:
            save(directory, NEW)
        except SaveError:
            return False
        except UserWarning:  # it was saved, but perhaps not to the disk
            pass
        return True
