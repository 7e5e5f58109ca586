"""fleet without servers: its programs, strategies and checkpoints, in one process."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed.fleet.collective import (
    Collective,
    CollectiveOpBasedOptimizer,
    DistributedStrategy,
    TrainStatus,
)
from paddlelike.distributed.fleet.file_systems import BDFS, FS, LocalFS
from paddlelike.distributed.fleet.role_maker import PaddleCloudRoleMaker, UserDefinedCollectiveRoleMaker
from paddlelike.errors import GraphError, LoadError, StorageError, UnsupportedError
from tests.helpers.hadoop import make_hadoop

PAIR = ["127.0.0.1:6170", "127.0.0.1:6171"]


def make_fleet(endpoints: list[str], rank: int = 0, *, decorate: bool = False, **options: Any) -> Collective:
    """Return a fleet with the programs of a line; ``decorate``: the optimizer, for mixed precision."""
    fleet = Collective()
    fleet.init(UserDefinedCollectiveRoleMaker(rank, endpoints))
    strategy = DistributedStrategy()
    for name, value in options.items():
        setattr(strategy, name, value)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
        hidden = fluid.layers.fc(x, 4, act="tanh")
        if "recompute_checkpoints" in options:
            strategy.recompute_checkpoints = [hidden]
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
        optimizer = fluid.optimizer.Momentum(0.1, 0.9)
        if decorate:
            optimizer = fluid.contrib.mixed_precision.decorate(optimizer)
        fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
    return fleet


def types(program: Any) -> list[str]:
    return [op.type for op in program.global_block().ops]


@pytest.mark.parametrize(
    ("options", "sums"),
    [
        ({}, 0),
        ({"mode": "collective", "collective_mode": "grad_allreduce"}, 4),
        ({"use_local_sgd": True}, 4),
        ({"forward_recompute": True, "recompute_checkpoints": []}, 0),
    ],
    ids=["nccl2", "grad_allreduce", "local_sgd", "recompute"],
)
def test_a_worker_gets_the_programs_of_the_fleet_of_fluid(options: dict[str, Any], sums: int) -> None:
    fleet = make_fleet(PAIR, 1, **options)
    assert fleet._transpiled_program is not None
    assert fleet._origin_program is not None
    assert types(fleet._transpiled_program).count("c_allreduce_sum") == sums
    assert "c_allreduce_sum" not in types(fleet._origin_program)
    assert ("gen_nccl_id" in types(fleet.startup_program)) is (sums == 0)
    assert isinstance(fleet.main_program, fluid.Program) is (sums > 0)


def test_mixed_precision_trains_in_float32_and_warns() -> None:
    with pytest.warns(UserWarning, match="no float16 arithmetic"):
        by_strategy = make_fleet(PAIR, use_amp=True)
    with pytest.warns(UserWarning, match="no float16 arithmetic"):
        by_script = make_fleet(PAIR, decorate=True)
    programs = [fleet._transpiled_program for fleet in (by_strategy, by_script, make_fleet(PAIR))]
    assert [types(one) for one in programs] == 3 * [types(programs[0])]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"use_dist_fc": True}, UnsupportedError, "use_dist_fc"),
        ({"collective_mode": "local_sgd"}, ValueError, "it needs 'collective'"),
        ({"forward_recompute": True}, ValueError, "needs strategy.recompute_checkpoints"),
        ({"sync_batch_norm": True, "use_local_sgd": True}, UnsupportedError, "for the mode nccl2"),
    ],
    ids=["dist_fc", "modes", "recompute", "sync_batch_norm"],
)
def test_invalid_strategies_are_refused(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make_fleet(PAIR, **options)


def test_unknown_options_of_a_strategy_are_kept_with_a_warning() -> None:
    strategy = DistributedStrategy()
    with pytest.warns(UserWarning, match=r"no option 'fuse_memory_size': it has no effect$"):
        strategy.fuse_memory_size = 1
    assert strategy.fuse_memory_size == 1
    with pytest.warns(UserWarning, match=r"'use_locl_sgd': it has no effect; did you mean 'use_local_sgd'\?"):
        strategy.use_locl_sgd = True
    with pytest.raises(UnsupportedError, match="multi_batch_merge_pass"):
        strategy._finalize_strategy_and_create_passes()


def test_the_base_optimizer_requires_a_strategy() -> None:
    with pytest.raises(TypeError, match="strategy must be a DistributedStrategy"):
        CollectiveOpBasedOptimizer(fluid.optimizer.SGD(0.1))


def test_one_worker_saves_and_resumes_checkpoints(tmp_path: Path) -> None:
    fleet = make_fleet(PAIR[:1])
    path = str(tmp_path / "model")
    exe, scope = fluid.Executor(), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(fleet.startup_program)
        assert fleet.load_check_point(exe, path, 0) is None
        with pytest.raises(LoadError, match="holds no checkpoint"):
            fleet.load_check_point(exe, path, 0, ignore_empty=False)
        for epoch in range(3):
            exe.run(fleet.main_program, feed=make_feed())
            fleet.save_check_point(exe, path, TrainStatus(epoch))
        wanted = np.array(scope.find_var("fc_0.w_0").get_tensor())
        fleet.save_persistables(exe, str(tmp_path / "plain"), filename="all")
    names = sorted(one.name for one in Path(path).iterdir())
    assert names == [f"__paddle_fleet_checkpoint__.{number}" for number in range(3)]
    newest = Path(path) / names[-1]
    assert json.loads((newest / "fleet_train_status").read_text()) == {"epoch_no": 2}
    # What one process writes.
    assert (newest / "_paddle_fleet_param__").read_bytes() == (tmp_path / "plain" / "all").read_bytes()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(fleet.startup_program)
        status = fleet.load_check_point(exe, path, 0)
        assert status == TrainStatus(2)
        assert status.next() == 3
        assert np.array_equal(fluid.global_scope().find_var("fc_0.w_0").get_tensor(), wanted)
    fleet.clean_redundant_check_points(path, checkpoint_num=2)
    assert sorted(one.name for one in Path(path).iterdir()) == names[1:]
    (newest / "fleet_train_status").write_text("{}")
    with pytest.raises(LoadError, match="holds no epoch"):
        fleet.load_check_point(exe, path, 0)


def test_only_worker_0_saves(tmp_path: Path) -> None:
    fleet = make_fleet(PAIR, 1)
    with pytest.warns(UserWarning, match="worker 0 saves for all workers"):
        assert fleet.save_persistables(fluid.Executor(), str(tmp_path / "model")) is None
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("where", ["local", "hadoop"])
def test_checkpoints_are_saved_and_loaded_on_the_file_systems_of_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.chdir(tmp_path)
    fs: FS = LocalFS()
    if where == "hadoop":
        command = make_hadoop(tmp_path / "bin", tmp_path / "files")
        monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("STANDIN_ROOT", str(tmp_path / "files"))
        fs = BDFS("hdfs://x:1", "me,pw", 500, 10)
    fleet = make_fleet(PAIR[:1], 0)
    exe, path = fluid.Executor(), "/jobs/model" if where == "hadoop" else str(tmp_path / "model")
    exe.run(fleet.startup_program)
    assert fleet.load_check_point(exe, path, 0, fs=fs) is None
    for epoch in range(3):
        fleet.save_check_point(exe, path, TrainStatus(epoch), fs=fs)
        assert fleet._get_last_checkpoint_no(path, fs) == epoch
    holder = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    saved = np.array(holder)
    holder.set(np.zeros_like(saved))
    assert fleet.load_check_point(exe, path, 0, fs=fs) == TrainStatus(2)
    assert np.array_equal(holder, saved)
    fleet.clean_redundant_check_points(path, fs=fs)
    assert fs.list_dirs(path) == ["__paddle_fleet_checkpoint__.2"]
    assert not list(tmp_path.glob(".cache/*"))  # what went up and down is removed
    if where == "hadoop":
        monkeypatch.setenv("STANDIN_ROOT", str(tmp_path / "nowhere" / "at all"))
        with pytest.raises(StorageError, match=r"hadoop fs .* ended with"):
            fleet.save_check_point(exe, path, TrainStatus(3), fs=fs)


def test_calls_for_servers_warn_and_calls_before_minimize_raise(tmp_path: Path) -> None:
    fleet = Collective()
    fleet.init(PaddleCloudRoleMaker(is_collective=True))
    for name in ("init_worker", "run_worker", "init_server", "run_server", "stop_worker"):
        with pytest.warns(UserWarning, match=rf"fleet\.{name}\(\) has no effect"):
            getattr(fleet, name)()
    with pytest.raises(GraphError, match="fleet has no programs yet"):
        fleet.save_persistables(fluid.Executor(), str(tmp_path))


def make_feed() -> dict[str, Any]:
    return {"x": np.ones((2, 3), "float32"), "y": np.ones((2, 1), "float32")}
