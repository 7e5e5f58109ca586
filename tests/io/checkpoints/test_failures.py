"""Checkpoints whose removal of older ones fails, and what this process remembers of removed ones."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError, SaveError
from paddlelike.io.incremental import ledger


@pytest.fixture
def main() -> Iterator[fluid.Program]:
    program = fluid.Program()
    program.global_block().create_var(name="w", shape=[2], dtype="float32", persistable=True)
    with fluid.scope_guard(fluid.Scope()):
        fluid.global_scope().var("w").get_tensor().set(np.ones(2, np.float32))
        yield program


def test_a_listing_error_after_a_save_says_that_the_save_succeeded(
    main: fluid.Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exe, root = fluid.Executor(), str(tmp_path / "run")
    checkpoints = fluid.io.Checkpoints(root, keep_last=1)
    listdir = os.listdir

    def fail(path: Any = ".") -> list[str]:
        if os.fspath(path) == root:
            raise OSError(116, "Stale file handle", root)
        return listdir(path)

    monkeypatch.setattr(os, "listdir", fail)
    with pytest.raises(SaveError, match="step-00000001 was saved, but older ones cannot be listed"):
        checkpoints.save(exe, main, 1)
    monkeypatch.undo()
    assert [checkpoint.step for checkpoint in checkpoints.list()] == [1]


def test_removed_checkpoints_are_no_longer_listed(main: fluid.Program, tmp_path: Path) -> None:
    exe, root = fluid.Executor(), tmp_path / "run"
    checkpoints = fluid.io.Checkpoints(str(root), keep_last=2)
    for step in range(6):
        checkpoints.save(exe, main, step)
    remembered = {key for key, _ in ledger._saves if key.startswith(str(root))}
    assert remembered == {str(root / "step-00000004"), str(root / "step-00000005")}


def test_a_restore_does_not_start_over_when_its_checkpoints_are_removed_meanwhile(
    main: fluid.Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exe, root = fluid.Executor(), tmp_path / "run"
    fluid.io.Checkpoints(root).save(exe, main, 1)
    reader, saver = fluid.io.Checkpoints(root), fluid.io.Checkpoints(root, keep_last=1)
    hold = reader._checkpoints.hold

    def removed_before(path: str | None) -> Any:
        saver.save(exe, main, 2)
        return hold(path)

    monkeypatch.setattr(reader._checkpoints, "hold", removed_before)
    with pytest.raises(LoadError, match=r"step-00000001: another process removed it meanwhile"):
        reader.restore(exe, main)
    monkeypatch.undo()
    stale = [str(root / "step-00000001")]
    monkeypatch.setattr(reader._checkpoints, "paths", lambda: monkeypatch.undo() or stale)
    assert reader.restore(exe, main) == {"step": 2}


def test_a_restore_succeeds_when_closing_its_directory_fails(
    main: fluid.Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exe, checkpoints = fluid.Executor(), fluid.io.Checkpoints(tmp_path / "run")
    checkpoints.save(exe, main, 1)
    real = os.close

    def fail(fd: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(fd).st_mode)
        real(fd)
        if is_folder:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "close", fail)
    assert checkpoints.restore(exe, main)["step"] == 1
