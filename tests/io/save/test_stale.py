"""No save deletes what another program wrote; ``remove_stale`` deletes what the same program left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.io import asynchronous
from paddlelike.io.incremental import ledger


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    ledger.forget()
    asynchronous.discard_pending()
    yield
    asynchronous.discard_pending()


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor()


def program(exe: fluid.Executor, **values: float) -> fluid.Program:
    """A program of some persistables, which get their values in the current scope."""
    made = fluid.Program()
    for name, value in values.items():
        made.global_block().create_var(name=name, shape=[2], dtype="float32", persistable=True)
        fluid.global_scope().var(name).get_tensor().set(np.full(2, value, "float32"))
    return made


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != "__manifest__")


@pytest.mark.parametrize("blocking", [True, False])
def test_saving_a_changed_network_deletes_no_files(
    exe: fluid.Executor, tmp_path: Path, blocking: bool
) -> None:
    path = tmp_path / "m"
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.save_persistables(exe, str(path), program(exe, a=1, b=2))
    with fluid.scope_guard(fluid.Scope()):
        report = fluid.io.save_persistables(
            exe, str(path), program(exe, a=1, c=3), blocking=blocking, remove_stale=True
        )
    report = report if blocking else report.wait()
    assert (report.stale, report.removed) == ((), ())  # the other network has another fingerprint
    assert files(path) == ["a", "b", "c"]


@pytest.mark.parametrize("remove", [True, False])
def test_files_that_the_same_program_left_behind_are_stale(
    exe: fluid.Executor, tmp_path: Path, remove: bool
) -> None:
    path = tmp_path / "m"
    with fluid.scope_guard(fluid.Scope()):
        same = program(exe, a=1, b=2)
        fluid.io.save_persistables(exe, str(path), same)
        (path / "README").write_text("theirs")
        report = fluid.io.save_persistables(exe, str(path), same, "all", remove_stale=remove)
    if remove:
        assert (report.stale, report.removed) == ((), ("a", "b"))
        assert "stale files deleted: a, b" in str(report)
        assert files(path) == ["README", "all"]
    else:
        assert (report.stale, report.removed) == (("a", "b"), ())
        assert "stale, of an earlier save (remove_stale=True deletes them): a, b" in str(report)
        assert files(path) == ["README", "a", "all", "b"]


def test_programs_that_share_a_directory_keep_the_files_of_each_other(
    exe: fluid.Executor, tmp_path: Path
) -> None:
    path = tmp_path / "gan"
    with fluid.scope_guard(fluid.Scope()):
        generator, discriminator = program(exe, g=1), program(exe, d=2)
        fluid.io.save_persistables(exe, str(path), generator)
        assert fluid.io.save_persistables(exe, str(path), discriminator).removed == ()
        assert fluid.io.save_persistables(exe, str(path), generator).removed == ()
    assert files(path) == ["d", "g"]


def test_saves_of_different_variables_are_kept_together(exe: fluid.Executor, tmp_path: Path) -> None:
    path = tmp_path / "m"
    for values in ({"a": 1}, {"b": 2}):
        with fluid.scope_guard(fluid.Scope()):
            some = program(exe, **values)
            fluid.io.save_vars(exe, str(path), some, list(values))
    assert files(path) == ["a", "b"]


def test_combined_files_of_other_names_stay(exe: fluid.Executor, tmp_path: Path) -> None:
    path = tmp_path / "m"
    for epoch in (1, 2):
        with fluid.scope_guard(fluid.Scope()):
            fluid.io.save_persistables(exe, str(path), program(exe, **{f"v{epoch}": 1}), f"epoch-{epoch}")
    assert files(path) == ["epoch-1", "epoch-2"]


def test_saving_parameters_does_not_make_persistables_stale(exe: fluid.Executor, tmp_path: Path) -> None:
    path = tmp_path / "m"
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.save_persistables(exe, str(path), program(exe, a=1, velocity=2))
    with fluid.scope_guard(fluid.Scope()):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.unique_name.guard(), fluid.program_guard(main, startup):
            fluid.layers.fc(fluid.data("x", [None, 2]), 1)
        exe.run(startup)
        assert fluid.io.save_params(exe, str(path), main).removed == ()
    assert files(path) == ["a", "fc_0.b_0", "fc_0.w_0", "velocity"]
