"""Checkpoints behind URLs: what is listed, restored, shared and removed, also when savers are killed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import MissingFileError, SaveError, StorageError
from paddlelike.io import asynchronous
from paddlelike.io.incremental import ledger
from paddlelike.storage.location import locate
from paddlelike.storage.remote import transaction as remote_transaction
from paddlelike.storage.remote.directory import RemoteDirectory
from tests.io.checkpoints.checkpointing import put, steps, two_variables, value

pytest.importorskip("fsspec", reason="fsspec is the extra 'remote'")


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor()


@pytest.fixture
def root() -> str:
    return f"memory://{uuid.uuid4().hex}/run"


@pytest.fixture(autouse=True)
def program() -> Iterator[fluid.Program]:
    """Two variables: a changes at every step, b does not."""
    ledger.forget()
    asynchronous.discard_pending()
    with fluid.scope_guard(fluid.Scope()):
        program = two_variables()
        yield program
    asynchronous.discard_pending()


def where(url: str) -> RemoteDirectory:
    found = locate(url)
    assert isinstance(found, RemoteDirectory)
    return found


def names(root: str) -> list[str]:
    """Everything below a root."""
    return sorted(where(root).store.find(where(root).root))


def train(checkpoints: fluid.io.Checkpoints, exe: fluid.Executor, program: fluid.Program, *at: int) -> Any:
    report = None
    for step in at:
        put("a", step)
        report = checkpoints.save(exe, program, step, metric=abs(step - 2), state={"epoch": step // 2})
    return report


def test_training_continues_in_a_new_process(exe: fluid.Executor, program: fluid.Program, url: str) -> None:
    train(fluid.io.Checkpoints(url, keep_last=2, keep_best=1), exe, program, 1, 2, 3, 4)
    ledger.forget()
    put("a", 9)
    again = fluid.io.Checkpoints(url, keep_last=2, keep_best=1)
    assert steps(again) == [2, 3, 4]
    assert again.best() == again.list()[0]
    assert again.restore(exe, program) == {"epoch": 2, "step": 4}
    assert value("a") == 4
    report = train(again, exe, program, 5)
    assert (report.written, report.kept) == (1, 1)  # b is shared with what was restored
    assert steps(again) == [2, 4, 5]
    assert again.restore(exe, program, step=2) == {"epoch": 1, "step": 2}
    assert value("a") == 2


def test_the_files_of_a_removed_checkpoint_stay_while_it_is_read(
    exe: fluid.Executor, program: fluid.Program, root: str
) -> None:
    checkpoints = fluid.io.Checkpoints(root, keep_last=1)
    train(checkpoints, exe, program, 1)
    listed = checkpoints.list()[0]
    with checkpoints.reading(listed) as path:
        reader = locate(path)
        assert reader.has("a")
        train(checkpoints, exe, program, 2)
        assert steps(checkpoints) == [2]
        with reader.open_file("a") as file:  # which was found before
            assert np.frombuffer(file.read()[-8:], "float32").tolist() == [1, 1]
    assert "step-00000001/a" in names(root)
    train(checkpoints, exe, program, 3)
    assert not [name for name in names(root) if name.startswith("step-00000001")]
    with pytest.raises(MissingFileError, match="was removed"), checkpoints.reading(listed):
        pass


def test_a_step_that_was_removed_may_be_saved_again(
    exe: fluid.Executor, program: fluid.Program, root: str
) -> None:
    checkpoints = fluid.io.Checkpoints(root, keep_last=1)
    train(checkpoints, exe, program, 5, 6)
    again = fluid.io.Checkpoints(root, keep_last=2)
    train(again, exe, program, 5)  # somebody went back
    train(again, exe, program, 7, 8)
    assert steps(again) == [7, 8]
    train(again, exe, program, 9)
    assert {name.partition("/")[0].partition(".")[0] for name in names(root)} == {
        f"step-{step:08d}" for step in (7, 8, 9)
    }  # 7 goes with the next save


def test_a_save_right_after_its_removal_keeps_its_files(
    exe: fluid.Executor, program: fluid.Program, root: str
) -> None:
    checkpoints = fluid.io.Checkpoints(root, keep_last=1)
    train(checkpoints, exe, program, 5, 6, 5)
    assert 5 in steps(checkpoints)
    train(checkpoints, exe, program, 7)
    found = fluid.io.Checkpoints(root, keep_last=None)
    for checkpoint in found.list():
        assert fluid.io.verify(checkpoint.path)


def test_leftovers_of_killed_savers_are_removed(
    exe: fluid.Executor, program: fluid.Program, root: str
) -> None:
    checkpoints = fluid.io.Checkpoints(root, keep_last=5)
    train(checkpoints, exe, program, 1)
    store, folder = where(root).store, where(root).root
    store.write(f"{folder}/step-00000002.saving-1-abcd", {"a": [b"x"]})
    assert steps(checkpoints) == [1]
    train(checkpoints, exe, program, 3)
    assert "step-00000002.saving-1-abcd/a" in names(root)  # its saver may live
    train(checkpoints, exe, program, 4)
    assert not [name for name in names(root) if ".saving-" in name]


def test_a_save_whose_staging_folder_was_swept_fails(
    exe: fluid.Executor, program: fluid.Program, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = fluid.io.Checkpoints(root)
    train(checkpoints, exe, program, 1)
    real = remote_transaction.RemoteTransaction._write

    def removed(self: Any, folder: str) -> Any:
        records = real(self, folder)
        where(root).store.remove(folder, list(records))
        return records

    monkeypatch.setattr(remote_transaction.RemoteTransaction, "_write", removed)
    with pytest.raises(SaveError, match="removed by somebody"):
        train(checkpoints, exe, program, 2)
    monkeypatch.undo()
    assert steps(checkpoints) == [1]


def test_foreign_files_are_left_alone(exe: fluid.Executor, program: fluid.Program, root: str) -> None:
    store, folder = where(root).store, where(root).root
    theirs = {"step-00000007/w": [b"of others"], "notes": [b"1"], "step-1/x": [b"2"]}
    store.write(folder, theirs)
    checkpoints = fluid.io.Checkpoints(root, keep_last=1)
    train(checkpoints, exe, program, 1, 2, 3, 4)
    assert set(theirs) <= set(names(root))
    assert steps(checkpoints) == [4]


def test_a_damaged_checkpoint_is_skipped(exe: fluid.Executor, program: fluid.Program, root: str) -> None:
    checkpoints = fluid.io.Checkpoints(root)
    train(checkpoints, exe, program, 1, 2)
    store, folder = where(root).store, where(root).root
    store.put(f"{folder}/step-00000002/a", b"damaged")
    with pytest.warns(UserWarning, match="is damaged"):
        assert checkpoints.restore(exe, program) == {"epoch": 0, "step": 1}


def test_a_store_that_does_not_answer_is_not_reported_as_damage(
    exe: fluid.Executor, program: fluid.Program, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(fluid.io.Checkpoints(root), exe, program, 1, 2)
    store = type(where(root).store)
    read = store.read

    def fail(self: Any, path: str, *limits: int) -> bytes:
        if "step-00000002" in path:
            raise RuntimeError("503 slow down")  # the errors of some packages are not OSError
        return bytes(read(self, path, *limits))

    with monkeypatch.context() as patch:
        patch.setattr(store, "read", fail)
        with pytest.raises(StorageError, match=r"step-00000002.* cannot be reached: 503 slow down"):
            fluid.io.Checkpoints(root).restore(exe, program)
    assert fluid.io.Checkpoints(root).restore(exe, program) == {"epoch": 1, "step": 2}


def test_checkpoints_can_be_saved_in_the_background(
    exe: fluid.Executor, program: fluid.Program, root: str
) -> None:
    checkpoints = fluid.io.Checkpoints(root, keep_last=2, blocking=False)
    train(checkpoints, exe, program, 1, 2, 3)
    assert steps(checkpoints) == [2, 3]  # listing waits for the save that is under way
    asynchronous.check_pending()
