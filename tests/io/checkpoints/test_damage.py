"""Damage and errors of the system: what a checkpoint suffers is said, and never taken for 'nothing there'."""

from __future__ import annotations

import errno
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError, StorageError
from paddlelike.io import asynchronous
from paddlelike.io.checkpoints.numbered import NumberedCheckpoints
from paddlelike.io.incremental import ledger
from paddlelike.storage import manifest
from paddlelike.storage.manifest import Record
from tests.io.checkpoints.checkpointing import put, two_variables, value


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _hang(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _spoil_entry(path: Path) -> None:
    """Write a good manifest whose checkpoint has no step."""
    files = manifest.decode(path.read_bytes()).files
    records: dict[str, Record] = dict(files)
    path.write_bytes(manifest.encode(records, state={"checkpoint": {"metric": "none"}}))
    assert json.dumps("checkpoint").encode() in path.read_bytes()


FAULTS: dict[str, Callable[[Path], None]] = {
    "a bit": _flip,
    "cut": _cut,
    "empty": _empty,
    "missing": Path.unlink,
    "a directory": _replace_by_folder,
    "a pipe": _hang,
}
FILES = ["__manifest__", "a"]
TABLE = [pytest.param(f, how, id=f"{f}, {name}") for f in FILES for name, how in FAULTS.items()]
TABLE.append(pytest.param("__manifest__", _spoil_entry, id="__manifest__, entry"))
CODES = [errno.EIO, errno.EACCES, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ENOMEM]


class Kept:
    """Three saved checkpoints of one kind."""

    def __init__(self, root: Path, *, numbered: bool) -> None:
        self.exe, self.program = fluid.Executor(), two_variables()
        self.numbered = numbered
        self.root = root / "model"
        ours = self.open()
        for step in (1, 2, 3):
            put("a", step)
            if isinstance(ours, NumberedCheckpoints):
                ours.save_numbered(self.exe, self.program, step, None if step == 3 else step)
            else:
                ours.save(self.exe, self.program, step)
        self.paths = [Path(one.path) for one in ours.list()]
        put("a", -1)

    def open(self) -> fluid.io.Checkpoints:
        if self.numbered:
            return NumberedCheckpoints(self.root / "run")
        return fluid.io.Checkpoints(self.root)

    def restore(self) -> tuple[float, list[str]]:
        """Restore the newest; return the value and what was warned of."""
        ledger.forget()
        ours = self.open()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if isinstance(ours, NumberedCheckpoints):
                ours.restore_newest(self.exe, self.program)
            else:
                ours.restore(self.exe, self.program)
        return value("a"), [str(one.message) for one in caught]


@pytest.fixture(params=["steps", "numbered"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    ledger.forget()
    asynchronous.discard_pending()
    with fluid.scope_guard(fluid.Scope()):
        yield Kept(tmp_path, numbered=request.param == "numbered")


@pytest.mark.parametrize(("file", "damage"), TABLE)
def test_damage_is_reported_with_the_checkpoint_that_is_loaded_instead(
    kept: Kept, file: str, damage: Callable[[Path], None]
) -> None:
    if kept.numbered and (file, damage) == ("__manifest__", Path.unlink):
        pytest.skip("a directory of such a name without a manifest may be anybody's")
    damage(kept.paths[2] / file)
    restored, said = kept.restore()
    assert restored == 2
    assert len(said) == 1
    assert f"{kept.paths[2]} is damaged; {kept.paths[1]} is loaded" in said[0]


@pytest.mark.parametrize(("file", "damage"), TABLE)
def test_when_all_checkpoints_are_damaged_the_error_names_each(
    kept: Kept, file: str, damage: Callable[[Path], None]
) -> None:
    if kept.numbered and (file, damage) == ("__manifest__", Path.unlink):
        pytest.skip("a directory of such a name without a manifest may be anybody's")
    for path in kept.paths:
        damage(path / file)
    with pytest.raises(LoadError, match="no checkpoint in") as refused:
        kept.restore()
    assert all(str(path) in str(refused.value) for path in kept.paths)
    assert value("a") == -1


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize("file", ["__manifest__", "a", ""], ids=["manifest", "variable", "directory"])
def test_a_system_error_is_not_treated_as_a_missing_checkpoint(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, file: str, code: int
) -> None:
    target, opened = str(kept.paths[2] / file), os.open

    def refuse(path: Any, *args: Any, **kwargs: Any) -> int:
        if os.fspath(path) == target:
            raise OSError(code, os.strerror(code), path)
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises((StorageError, LoadError), match=os.strerror(code)):
        kept.restore()
    assert value("a") == -1


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_a_directory_that_cannot_be_listed_is_not_treated_as_empty(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    listed = os.listdir

    def refuse(path: Any = ".") -> list[str]:
        if os.path.realpath(path) == os.path.realpath(kept.root):
            raise OSError(code, os.strerror(code), path)
        return listed(path)

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(StorageError, match=os.strerror(code)):
        kept.restore()


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo, lambda path: path.symlink_to("gone")])
def test_files_in_place_of_a_checkpoint_directory_are_named(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    kept = Kept(tmp_path, numbered=False)
    shutil.rmtree(kept.paths[2])
    make(kept.paths[2])
    restored, said = kept.restore()
    assert restored == 2
    assert [f"{kept.paths[2]} is damaged; {kept.paths[1]} is loaded" in each for each in said] == [True]


def test_a_removed_checkpoint_does_not_count_as_damage(kept: Kept) -> None:
    shutil.rmtree(kept.paths[2])
    assert kept.restore() == (2, [])
