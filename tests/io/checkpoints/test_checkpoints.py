"""Checkpoints: what is listed, restored and removed, and a training that is killed again and again."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError, MissingFileError, SaveError
from paddlelike.io import asynchronous
from paddlelike.io.incremental import ledger
from paddlelike.storage.local import generation, manifest_file
from tests.helpers.fork_server import Forked
from tests.helpers.saved_files import read_variables
from tests.io.checkpoints.checkpointing import put, steps, two_variables, value


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor()


@pytest.fixture(autouse=True)
def program() -> Iterator[fluid.Program]:
    """Two variables: a changes at every step, b does not."""
    ledger.forget()
    asynchronous.discard_pending()
    program = two_variables()
    yield program
    asynchronous.discard_pending()


def entries(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def train(
    checkpoints: fluid.io.Checkpoints, exe: fluid.Executor, program: fluid.Program, numbers: range
) -> None:
    for number in numbers:
        put("a", number)
        checkpoints.save(exe, program, number, metric=abs(number - 3.2), state={"epoch": number // 4})


def test_a_checkpoint_restores_values_state_and_random_numbers(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    checkpoints = fluid.io.Checkpoints(tmp_path)
    fluid.global_scope().generator.state = 777
    put("a", 5)
    checkpoints.save(exe, program, 12, metric=0.25, state={"epoch": 3, "order": [2, 0, 1], "name": "ü},"})
    assert entries(tmp_path) == ["step-00000012"]
    with fluid.scope_guard(fluid.Scope()):
        other = fluid.io.Checkpoints(str(tmp_path))
        state = other.restore(exe, program)
        assert state == {"epoch": 3, "order": [2, 0, 1], "name": "ü},", "step": 12}
        assert value("a") == 5
        assert fluid.global_scope().generator.state == 777
    latest = other.latest()
    assert (latest.step, latest.metric, latest.state["epoch"]) == (12, 0.25, 3)
    assert latest.path == str(tmp_path / "step-00000012")
    assert latest.time is not None
    assert manifest_file.verify(latest.path)


def test_an_empty_directory_has_no_checkpoints(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    checkpoints = fluid.io.Checkpoints(tmp_path / "new")
    assert checkpoints.list() == []
    assert checkpoints.latest() is None
    assert checkpoints.best() is None
    assert checkpoints.restore(exe, program) is None
    with pytest.raises(MissingFileError, match="no checkpoint of step 4"):
        checkpoints.restore(exe, program, step=4)


def test_the_last_and_the_best_checkpoints_are_kept(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    checkpoints = fluid.io.Checkpoints(tmp_path, keep_last=2, keep_best=2)
    train(checkpoints, exe, program, range(1, 9))
    assert steps(checkpoints) == [3, 4, 7, 8]
    assert checkpoints.best().step == 3
    assert checkpoints.latest().step == 8
    assert len(entries(tmp_path)) == 4
    checkpoints.restore(exe, program, step=4)
    assert value("a") == 4
    largest = fluid.io.Checkpoints(tmp_path, best="largest")
    assert largest.best().step == 8


def test_a_nan_metric_is_never_the_best(exe: fluid.Executor, tmp_path: Path, program: fluid.Program) -> None:
    checkpoints = fluid.io.Checkpoints(tmp_path, keep_last=None)
    for step, metric in enumerate([float("nan"), 2.0, None, np.float32(2.0), 3.0]):
        checkpoints.save(exe, program, step, metric)
    assert checkpoints.best().step == 3  # the later of equals
    assert len(checkpoints.list()) == 5


def test_only_steps_at_the_save_frequency_are_saved(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    checkpoints = fluid.io.Checkpoints(tmp_path, every=3)
    assert checkpoints.save(exe, program, 2) is None
    train(checkpoints, exe, program, range(1, 8))
    assert steps(checkpoints) == [3, 6]
    assert checkpoints.save(exe, program, 7, force=True)
    assert steps(checkpoints) == [3, 6, 7]


def test_unchanged_files_are_shared_with_the_checkpoint_before_the_last(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    checkpoints = fluid.io.Checkpoints(tmp_path)
    kept = []
    for step in range(1, 18):
        put("a", step)
        kept.append(checkpoints.save(exe, program, step).kept)
        assert manifest_file.verify(tmp_path / f"step-{step:08d}")
    assert kept[:2] == [0, 0]
    assert sorted(kept[2:]) == [0] + 14 * [1]  # one save of fifteen writes it anew


def test_continued_training_shares_files_with_the_restored_checkpoint(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    fluid.io.Checkpoints(tmp_path).save(exe, program, 1)
    ledger.forget()
    with fluid.scope_guard(fluid.Scope()):
        checkpoints = fluid.io.Checkpoints(tmp_path)
        checkpoints.restore(exe, program)
        put("a", 2)
        assert checkpoints.save(exe, program, 2).kept == 0
        report = checkpoints.save(exe, program, 3)
    assert (report.written, report.kept) == (1, 1)
    assert manifest_file.verify(tmp_path / "step-00000003")


@pytest.mark.parametrize("keep_last", [2, 5])
@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "not blocking"])
def test_a_flipped_bit_never_damages_two_successive_checkpoints(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, keep_last: int, *, blocking: bool
) -> None:
    """The variable b never changes, and each of its files rots in turn, keeping inode, size and time."""
    checkpoints = fluid.io.Checkpoints(tmp_path, keep_last=keep_last, blocking=blocking)
    for step in range(1, 7):
        put("a", step)
        checkpoints.save(exe, program, step)
    kept = [Path(one.path) for one in checkpoints.list()]
    for path in kept:
        _rot(path / "b")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            restored = fluid.io.Checkpoints(tmp_path).restore(exe, program)
        newest_is_bad = (path / "b").samefile(kept[-1] / "b")
        assert restored is not None
        assert restored["step"] == (5 if newest_is_bad else 6)
        assert [f"{kept[-1]} is damaged; {kept[-2]} is loaded" in str(one.message) for one in caught] == (
            [True] if newest_is_bad else []
        )
        _rot(path / "b")  # flips it back


@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "not blocking"])
def test_undetected_damage_does_not_persist_in_later_checkpoints(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, *, blocking: bool
) -> None:
    """Both files of b rot, and only the process holds the good value."""
    checkpoints = fluid.io.Checkpoints(tmp_path, keep_last=2, blocking=blocking)
    for step in range(1, 35):
        checkpoints.save(exe, program, step)
        if step == 2:
            for one in checkpoints.list():
                _rot(Path(one.path) / "b")
    assert all(manifest_file.verify(one.path) for one in checkpoints.list())


def _rot(path: Path) -> None:
    """Flip a bit of a file in place, without a trace in its times."""
    facts = path.stat()
    with path.open("r+b") as file:
        file.seek(-3, os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(-3, os.SEEK_END)
        file.write(bytes([byte ^ 4]))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def test_a_step_may_be_saved_again(exe: fluid.Executor, tmp_path: Path, program: fluid.Program) -> None:
    checkpoints = fluid.io.Checkpoints(tmp_path)
    checkpoints.save(exe, program, 1, state={"try": 1})
    put("a", 10)
    checkpoints.save(exe, program, 1, state={"try": 2})
    checkpoints.save(exe, program, 1, state={"try": 3})  # nothing but the state is new
    put("a", 0)
    assert checkpoints.restore(exe, program) == {"try": 3, "step": 1}
    assert value("a") == 10


def test_foreign_files_are_left_alone(exe: fluid.Executor, tmp_path: Path, program: fluid.Program) -> None:
    strange = ["notes", "step-1", "step-00000000", "step-00000002.old", "best"]
    for name in strange:
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("mine")
    fluid.io.save_persistables(exe, str(tmp_path / "step-00000001"), program)  # ours, but no checkpoint
    checkpoints = fluid.io.Checkpoints(tmp_path, keep_last=1)
    with pytest.warns(UserWarning, match="step-00000000 is damaged, and is not listed: it has no manifest"):
        train(checkpoints, exe, program, range(5, 8))
    with pytest.warns(UserWarning, match="step-00000000 is damaged"):
        assert steps(checkpoints) == [7]
    for name in strange:
        assert (tmp_path / name / "file").read_text() == "mine"
    assert (tmp_path / "step-00000001" / "a").exists()


def test_leftovers_of_a_killed_process_are_removed_and_not_listed(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    checkpoints = fluid.io.Checkpoints(tmp_path, keep_last=2)
    train(checkpoints, exe, program, range(1, 4))
    (tmp_path / ".step-00000004.saving-directory" / "new").mkdir(parents=True)
    (tmp_path / ".step-00000004.saving-directory" / "new" / "a").write_bytes(b"half")
    (tmp_path / "step-00000004.lock").write_text("99999999 somewhere 1\n")
    shutil.copytree(tmp_path / "step-00000002", tmp_path / "step-00000001.removed")
    shutil.copy(tmp_path / "step-00000002" / "__manifest__", tmp_path / "step-00000001.manifest.json")
    assert steps(checkpoints) == [2, 3]
    train(checkpoints, exe, program, range(5, 6))
    assert steps(checkpoints) == [3, 5]
    assert len(entries(tmp_path)) == 4


def test_a_checkpoint_is_not_removed_while_it_is_read(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    checkpoints = fluid.io.Checkpoints(tmp_path, keep_last=1)
    train(checkpoints, exe, program, range(1, 2))
    first = checkpoints.latest()
    with fluid.io.Checkpoints(tmp_path).reading(first) as path:
        train(checkpoints, exe, program, range(2, 4))
        assert steps(checkpoints) == [1, 3]
        assert manifest_file.verify(path)
    train(checkpoints, exe, program, range(4, 5))
    assert steps(checkpoints) == [4]
    with pytest.raises(MissingFileError, match="was removed"), checkpoints.reading(first):
        pass


def test_a_damaged_checkpoint_is_skipped(exe: fluid.Executor, tmp_path: Path, program: fluid.Program) -> None:
    checkpoints = fluid.io.Checkpoints(tmp_path)
    train(checkpoints, exe, program, range(1, 4))
    (tmp_path / "step-00000003" / "a").write_bytes(b"cut")
    with pytest.warns(UserWarning, match="step-00000003 is damaged"):
        assert checkpoints.restore(exe, program) == {"epoch": 0, "step": 2}
    assert value("a") == 2
    with pytest.raises(LoadError, match="a"):
        checkpoints.restore(exe, program, step=3)
    for step in (1, 2):
        (tmp_path / f"step-0000000{step}" / "b").unlink()
    with pytest.raises(LoadError, match=r"(?s)no checkpoint in .* can be loaded.*missing: b"):
        checkpoints.restore(exe, program)


def test_a_flipped_bit_in_a_checkpoint_is_reported(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    checkpoints = fluid.io.Checkpoints(tmp_path)
    train(checkpoints, exe, program, range(1, 3))
    path = tmp_path / "step-00000002" / "a"
    data = bytearray(path.read_bytes())
    data[-1] ^= 4
    path.write_bytes(data)
    with pytest.warns(UserWarning, match="step-00000002 is damaged"):
        assert checkpoints.restore(exe, program)["step"] == 1


def test_another_program_is_refused(exe: fluid.Executor, tmp_path: Path, program: fluid.Program) -> None:
    checkpoints = fluid.io.Checkpoints(tmp_path)
    train(checkpoints, exe, program, range(1, 3))
    program.global_block().create_var(name="c", shape=[2], dtype="float32", persistable=True)
    with pytest.raises(LoadError, match="c"):
        checkpoints.restore(exe, program)


def test_a_save_that_fails_changes_nothing(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = fluid.io.Checkpoints(tmp_path, keep_last=1)
    train(checkpoints, exe, program, range(1, 2))

    def fail(self: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(generation.Generation, "commit", fail)
        with pytest.raises(SaveError, match="No space left"):
            train(checkpoints, exe, program, range(2, 3))
    assert steps(checkpoints) == [1]
    assert len(entries(tmp_path)) == 1
    train(checkpoints, exe, program, range(3, 4))
    assert steps(checkpoints) == [3]


def test_checkpoints_can_be_saved_in_the_background(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    checkpoints = fluid.io.Checkpoints(tmp_path, keep_last=2, blocking=False)
    train(checkpoints, exe, program, range(1, 6))
    assert checkpoints.restore(exe, program)["step"] == 5
    assert steps(checkpoints) == [4, 5]
    assert value("a") == 5


def test_invalid_checkpoint_arguments_are_refused(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    for wrong in ({"keep_last": 0}, {"keep_best": -1}, {"every": 0}, {"best": "first"}):
        with pytest.raises(ValueError, match="Checkpoints"):
            fluid.io.Checkpoints(tmp_path, **wrong)
    checkpoints = fluid.io.Checkpoints(tmp_path)
    with pytest.raises(TypeError, match="JSON"):
        checkpoints.save(exe, program, 1, state={"x": np.array([print])})
    with pytest.raises(ValueError, match="step"):
        checkpoints.save(exe, program, -1)
    with pytest.raises(TypeError, match="executor"):
        checkpoints.save(None, program, 1)
    assert entries(tmp_path) == []


# A training that is killed


def train_in_a_process(fork_server: str, root: Path, mode: str = "blocking", strike: int = 0) -> Forked:
    """Start a training of 60 steps, see ``training``; the caller closes the process."""
    environment = {"ROOT": str(root), "MODE": mode, "STRIKE": str(strike)}
    return Forked(fork_server, "tests.io.checkpoints.training", os.environ | environment)


def run_to_the_end(process: Forked) -> str:
    with closing(process):
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    return output


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["blocking", "in a thread"])
def test_killed_and_uninterrupted_training_end_with_the_same_values(
    fork_server: str, tmp_path: Path, mode: str
) -> None:
    want = run_to_the_end(train_in_a_process(fork_server, tmp_path / "whole", mode))
    root = tmp_path / "killed"
    for strike in (3, -2, 1, -5, 2, 4):  # in the middle of a save, and between a commit and what follows it
        with closing(train_in_a_process(fork_server, root, mode, strike)) as process:
            assert process.wait(120) == -signal.SIGKILL
        found = steps(fluid.io.Checkpoints(root))
        assert found == sorted(found)
        for checkpoint in fluid.io.Checkpoints(root).list():
            assert manifest_file.verify(checkpoint.path)
    rng = random.Random(5)
    for _ in range(4):  # anywhere
        with closing(train_in_a_process(fork_server, root, mode)):  # which kills it
            time.sleep(rng.uniform(0.1, 0.4))
    assert run_to_the_end(train_in_a_process(fork_server, root, mode)) == want
    assert read_variables(root / "final") == read_variables(tmp_path / "whole" / "final")
    found, kept = (steps(fluid.io.Checkpoints(path)) for path in (root, tmp_path / "whole"))
    # Killed behind the last commit, it leaves one that the next save would remove, and there is none.
    assert set(kept) <= set(found)
    assert len(found) <= len(kept) + 1
    assert not [name for name in entries(root) if name.startswith(".")]


def test_a_restore_removes_leftovers_of_a_killed_save(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    checkpoints = fluid.io.Checkpoints(tmp_path)
    train(checkpoints, exe, program, range(1, 3))
    for step in (1, 2):  # killed in the removal of an old one, and after the commit of the last one
        left = tmp_path / f".step-{step:08d}.saving-directory"
        (left / "removed").mkdir(parents=True)
        (left / "removed" / "w").write_bytes(b"old")
    assert checkpoints.restore(exe, program)["step"] == 2
    assert not [name for name in entries(tmp_path) if name.startswith(".")]


@pytest.mark.parametrize(("keep", "newest"), [(1, 0), (3, 1)])
def test_old_checkpoints_are_removed_only_after_a_newer_one_is_on_the_disk(
    exe: fluid.Executor,
    tmp_path: Path,
    program: fluid.Program,
    monkeypatch: pytest.MonkeyPatch,
    keep: int,
    newest: int,
) -> None:
    """``newest`` counts from the last one saved."""
    synced: set[str] = set()
    sync, rename = os.fsync, os.rename

    def note(fd: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{fd}").readlink()))
        sync(fd)

    def check(source: str, target: str) -> None:
        if os.fspath(target).endswith("/removed"):
            step = int(Path(source).name.rpartition("-")[2]) + keep - newest
            staying = tmp_path / f"step-{step:08d}"
            assert {str(staying / name) for name in ("a", "b", "__manifest__")} <= synced
            assert {str(staying), str(tmp_path)} <= synced
        rename(source, target)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(os, "rename", check)
    train(fluid.io.Checkpoints(tmp_path, keep_last=keep), exe, program, range(1, 8))
    assert steps(fluid.io.Checkpoints(tmp_path)) == list(range(8 - keep, 8))
