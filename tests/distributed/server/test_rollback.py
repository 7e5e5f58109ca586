"""The rounds to which a server can go back: copies of its start values, and saves that it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import SelectedRows
from paddlelike.distributed.server.rollback import RollbackPoints
from paddlelike.errors import LoadError
from paddlelike.storage.names import MANIFEST
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.jobs import MOMENTUM, perceptron_feeds
from tests.distributed.server.test_position import save_with


def points_of(scope: Any, root: Path | None, program: Any = None, endpoint: str = "a:1") -> RollbackPoints:
    names = [*scope.local_var_names(), "not_there"]
    program = fluid.Program() if program is None else program
    root_path = None if root is None else str(root)
    return RollbackPoints(scope, names, program=program, endpoint=endpoint, root=root_path, start=lambda: 3)


def test_a_rollback_restores_the_start_values() -> None:
    scope = fluid.Scope()
    scope.var("w").get_tensor().set(np.arange(4, dtype="float32"))
    scope.var("t").set_value(SelectedRows([5, 7], 9, np.ones((2, 3), "float32")))
    points = points_of(scope, None)
    assert points.rounds() == [3]
    for _ in range(2):  # a restored value is a copy, too
        scope.find_var("w").get_tensor().held_array[:] = -1
        table = scope.find_var("t").value
        table.held_array[:] = -1
        table.row_array[:] = 0
        points.restore(3)
        assert np.array(scope.find_var("w").get_tensor()).tolist() == [0, 1, 2, 3]
        table = scope.find_var("t").value
        assert (table.rows(), table.height(), table.array.sum()) == ([5, 7], 9, 6)


@pytest.mark.obeys("saves are looked for in {} (PADDLELIKE_CHECKPOINT_DIR)")
def test_a_round_without_a_save_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="a:1 cannot go back to round 4") as caught:
        points_of(fluid.Scope(), Path("saves")).restore(4)
    assert "saves are looked for in saves (PADDLELIKE_CHECKPOINT_DIR)" in str(caught.value)
    program, scope = fluid.Program(), fluid.Scope()
    program.global_block().create_var(name="w", shape=[2], dtype="float32", persistable=True)
    save_with(tmp_path / "saves" / "four", {"servers": {"a:1": {"round": 4}}})
    points_of(scope, tmp_path / "saves", program).restore(4)
    assert np.array(scope.find_var("w").get_tensor()).tolist() == [1, 1]


def test_saves_are_found_below_a_directory_and_restored(tmp_path: Path) -> None:
    with SavingJob(MOMENTUM, servers=1, trainers=1) as job:
        job.go(perceptron_feeds, 0, 4, save=(2, tmp_path / "saves" / "two"))
    (tmp_path / "saves" / "half").mkdir()
    (tmp_path / "saves" / "notes.txt").write_text("not a directory")
    program, scope = job.server(job.endpoints[0]).main, fluid.Scope()
    points = points_of(scope, tmp_path / "saves", program, job.endpoints[0])
    assert points.rounds() == [2, 3]
    points.restore(2)
    saved = fluid.io.load_program_state(str(tmp_path / "saves" / "two"))
    assert np.array_equal(np.array(scope.find_var("fc_0.w_0").get_tensor()), saved["fc_0.w_0"])


@pytest.mark.parametrize("damage", ["cut", "forbidden"])
def test_a_save_whose_manifest_cannot_be_read_is_left_out_with_a_warning(tmp_path: Path, damage: str) -> None:
    for name, number in (("one", 1), ("two", 2)):
        state = {"servers": {"a:1": {"round": number}}}
        save_with(tmp_path / name, state)
    manifest = tmp_path / "two" / MANIFEST
    if damage == "cut":
        manifest.write_bytes(manifest.read_bytes()[:-40])
    else:
        manifest.unlink()
        manifest.mkdir()
    points = points_of(fluid.Scope(), tmp_path)
    with pytest.warns(UserWarning, match=r"/two is left out of the saves to go back to"):
        assert points.rounds() == [1, 3]
