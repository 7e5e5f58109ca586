"""Embedding tables: in blocks of rows, or sharded by id, from M servers to N, and from and to one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError
from paddlelike.formats.paddle import selected_rows
from tests.distributed.checkpoint.jobs import SavingJob, alone
from tests.distributed.jobs import SEED, Network
from tests.helpers.fresh import fresh_programs

ROWS, WIDTH = 2500, 8


def embedded(*, is_distributed: bool, initial: Any = None) -> Any:
    ids = fluid.data(name="ids", shape=[None, 1], dtype="int64", lod_level=1)
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    table = fluid.ParamAttr(name="table", initializer=initial)
    found = fluid.layers.embedding(
        ids, size=[ROWS, WIDTH], is_sparse=True, is_distributed=is_distributed, param_attr=table
    )
    out = fluid.layers.fc(input=fluid.layers.sequence_pool(found, "sum"), size=1)
    return fluid.layers.mean(fluid.layers.square_error_cost(input=out, label=y))


def feeds(step: int, trainer: int) -> dict[str, Any]:
    rng = np.random.RandomState(1000 * step + trainer)
    ids = rng.randint(0, ROWS, (12, 1)).astype("int64")
    y = rng.uniform(-1, 1, (4, 1)).astype("float32")
    return {"ids": fluid.create_lod_tensor(ids, [[3, 1, 5, 3]], fluid.CPUPlace()), "y": y}


def constant() -> Any:
    return fluid.initializer.Constant(0.05)


BLOCKS = Network(lambda: embedded(is_distributed=False), lambda: fluid.optimizer.Adagrad(0.1))
SHARDS = Network(lambda: embedded(is_distributed=True, initial=constant()), lambda: fluid.optimizer.SGD(0.1))
RANDOM = Network(lambda: embedded(is_distributed=True), lambda: fluid.optimizer.SGD(0.1))


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_a_table_in_blocks_resumes_with_any_number_of_servers(tmp_path: Path, servers: int) -> None:
    with SavingJob(BLOCKS, servers=2) as job:
        losses = job.go(feeds, 0, 5, save=(3, tmp_path / "model"))
    values = job.on_servers()
    assert {"table", "table_moment_0"} <= set(job.saved.saved)
    with SavingJob(BLOCKS, servers=servers, loaded=tmp_path / "model") as job:
        again = job.go(feeds, 3, 5)
    assert again == [one[3:] for one in losses]
    for name, value in job.on_servers().items():
        assert np.array_equal(value, values[name]), name


def test_a_table_in_blocks_resumes_in_one_process(tmp_path: Path) -> None:
    with SavingJob(BLOCKS, servers=2, trainers=1) as job:
        (losses,) = job.go(feeds, 0, 5, save=(3, tmp_path / "model"))
    again, values = alone(BLOCKS, lambda step: feeds(step, 0), 3, 5, tmp_path / "model")
    assert again == losses[3:]
    assert np.array_equal(job.on_servers()["table"], values["table"])


@pytest.mark.parametrize("by_servers", [False, True], ids=["gathered", "by servers"])
@pytest.mark.parametrize("before", [1, pytest.param(2, marks=pytest.mark.slow), 3])
@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_sharded_table_resumes_with_any_number_of_servers(
    tmp_path: Path, before: int, after: int, by_servers: bool
) -> None:
    with SavingJob(SHARDS, servers=before) as job:
        losses = job.go(feeds, 0, 5, save=(3, tmp_path / "model"), by_servers=by_servers)
    names = sorted(path.name for path in (tmp_path / "model" / "__lookup_table__").iterdir())
    assert names == [f"table_{number}" for number in range(before)]
    assert not (tmp_path / "model" / "table").exists()
    assert fluid.io.verify(str(tmp_path / "model"))
    with SavingJob(SHARDS, servers=after, loaded=tmp_path / "model") as job:
        again = job.go(feeds, 3, 5)
    assert again == [one[3:] for one in losses]


def test_the_same_number_of_servers_restores_the_initial_values_of_unseen_rows(tmp_path: Path) -> None:
    with SavingJob(RANDOM, servers=2, trainers=1) as job:
        losses = job.go(feeds, 0, 6, save=(2, tmp_path / "model"))
    with SavingJob(RANDOM, servers=2, trainers=1, loaded=tmp_path / "model") as job:
        again = job.go(feeds, 2, 6)
    assert again == [one[2:] for one in losses]


def test_a_sharded_table_resumes_in_one_process(tmp_path: Path) -> None:
    with SavingJob(SHARDS, servers=3, trainers=1) as job:
        (losses,) = job.go(feeds, 0, 5, save=(3, tmp_path / "model"))
    local = Network(lambda: embedded(is_distributed=False, initial=constant()), SHARDS.optimizer)
    again, _ = alone(local, lambda step: feeds(step, 0), 3, 5, tmp_path / "model")
    assert again == losses[3:]


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_servers_resume_from_the_table_of_one_process(tmp_path: Path, servers: int) -> None:
    local = Network(lambda: embedded(is_distributed=False), RANDOM.optimizer)
    with fresh_programs(SEED) as (main, startup):
        loss = local.build()
        local.optimizer().minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        losses = []
        for step in range(5):
            if step == 3:
                fluid.io.save_persistables(exe, str(tmp_path / "model"), main)
            losses.append(float(exe.run(main, feed=feeds(step, 0), fetch_list=[loss])[0]))
    with SavingJob(RANDOM, servers=servers, trainers=1, loaded=tmp_path / "model") as job:
        (again,) = job.go(feeds, 3, 5)
    assert again == losses[3:]


def test_a_lost_shard_is_noticed(tmp_path: Path) -> None:
    with SavingJob(SHARDS, servers=3) as job:
        job.go(feeds, 0, 3, save=(2, tmp_path / "model"))
    (tmp_path / "model" / "__lookup_table__" / "table_2").unlink()
    job = SavingJob(SHARDS, servers=1, loaded=tmp_path / "model")
    with pytest.raises(LoadError, match="is a shard missing"):
        job.serve(job.endpoints[0])


def test_a_whole_table_beside_shards_is_an_error_if_their_ages_are_unknown(tmp_path: Path) -> None:
    with SavingJob(SHARDS, servers=2) as job:
        job.go(feeds, 0, 3, save=(2, tmp_path / "model"))
    shard = selected_rows.read((tmp_path / "model" / "__lookup_table__" / "table_0").read_bytes())
    assert shard.array is not None
    (tmp_path / "model" / "table").write_bytes((tmp_path / "model" / "fc_0.w_0").read_bytes())
    job = SavingJob(SHARDS, servers=2, loaded=tmp_path / "model")
    with pytest.raises(LoadError, match="both a file table and shards"):
        job.serve(job.endpoints[0])


def test_a_load_uses_the_newer_of_a_whole_table_and_its_shards(tmp_path: Path) -> None:
    """Three servers, two, one process, two servers, all over one directory: each finds what was saved last.

    Files of earlier forms stay, since a save deletes nothing that another program wrote.
    """
    model = tmp_path / "model"

    def files() -> list[str]:
        return sorted(path.relative_to(model).as_posix() for path in model.rglob("*table*") if path.is_file())

    with SavingJob(SHARDS, servers=3, trainers=1) as job:
        (losses,) = job.go(feeds, 0, 6, save=(2, model))
    shards = [f"__lookup_table__/table_{server}" for server in range(3)]
    assert files() == shards
    with SavingJob(SHARDS, servers=2, trainers=1, loaded=model) as job:
        assert job.go(feeds, 2, 4, save=(3, model)) == [losses[2:4]]
    assert files() == shards
    with fresh_programs(SEED) as (main, startup):
        loss = embedded(is_distributed=False, initial=constant())
        SHARDS.optimizer().minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.load_persistables(exe, str(model), main)
        assert float(exe.run(main, feed=feeds(3, 0), fetch_list=[loss])[0]) == losses[3]
        fluid.io.save_persistables(exe, str(model), main)
    assert files() == [*shards, "table"]
    with SavingJob(SHARDS, servers=2, trainers=1, loaded=model) as job:
        assert job.go(feeds, 4, 6, save=(5, model)) == [losses[4:]]
    assert files() == [*shards, "table"]
    with SavingJob(SHARDS, servers=3, trainers=1, loaded=model) as job:
        assert job.go(feeds, 5, 6) == [losses[5:]]
    with fresh_programs(SEED) as (main, startup):
        loss = embedded(is_distributed=False, initial=constant())
        SHARDS.optimizer().minimize(loss)
        exe.run(startup)
        fluid.io.load_persistables(exe, str(model), main)
        assert float(exe.run(main, feed=feeds(5, 0), fetch_list=[loss])[0]) == losses[5]
    assert fluid.io.verify(str(model))
