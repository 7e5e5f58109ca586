"""A trainer exports what it trains for prediction: dense layers, tables in blocks, tables sharded by id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import NotInitializedError, SaveError
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.checkpoint.test_save import files_of
from tests.distributed.checkpoint.test_tables import BLOCKS, ROWS, SHARDS, embedded, feeds
from tests.distributed.jobs import SEED, Network
from tests.helpers.fresh import fresh_programs


def exporting(job: SavingJob, directory: Path, **options: Any) -> None:
    """Train two steps and export what computes the network's output."""
    programs, exe = job.trainer(0), fluid.Executor()
    exe.run(programs.startup)
    for step in range(2):
        exe.run(programs.main, feed=feeds(step, 0))
    target = programs.main.global_block().var("fc_0.tmp_1")
    fluid.io.save_inference_model(str(directory), ["ids"], [target], exe, programs.main, **options)
    exe.close()


@pytest.mark.parametrize("network", [BLOCKS, SHARDS], ids=["blocks", "shards"])
def test_an_export_predicts_without_servers(tmp_path: Path, network: Network) -> None:
    with SavingJob(network, servers=3, trainers=1) as job:
        exporting(job, tmp_path / "export")
    assert set(files_of(tmp_path / "export")) == {"__model__", "table", "fc_0.w_0", "fc_0.b_0"}
    assert fluid.io.verify(str(tmp_path / "export"))
    with fresh_programs():
        exe = fluid.Executor()
        program, names, targets = fluid.io.load_inference_model(str(tmp_path / "export"), exe)
        assert {op.type for op in program.global_block().ops} >= {"lookup_table", "mul"}
        table = np.array(fluid.global_scope().find_var("table").get_tensor())
        feed = {name: value for name, value in feeds(1, 0).items() if name in names}
        (found,) = exe.run(program, feed=feed, fetch_list=targets)
    placement = job.server(job.endpoints[0]).main._parameters_on_pservers
    expected = np.zeros((ROWS, 8), "float32")
    for one in placement.of("table"):
        value = job.scopes[one.endpoint].find_var("table" if network is SHARDS else one.name).value
        if network is SHARDS:
            expected[value.rows()] = value.array[: len(value.rows())]
        else:
            expected[one.first_row : one.first_row + one.rows] = value.array
    assert np.array_equal(table, expected)
    held = job.on_servers()
    ids, (lengths,) = np.array(feed["ids"]).ravel(), feed["ids"].recursive_sequence_lengths()
    ends = np.cumsum(lengths)
    pooled = np.stack([expected[ids[end - n : end]].sum(0) for n, end in zip(lengths, ends, strict=True)])
    np.testing.assert_allclose(found, pooled @ held["fc_0.w_0"] + held["fc_0.b_0"], rtol=1e-5)


def test_parameters_for_prediction_hold_the_whole_table(tmp_path: Path) -> None:
    """``save_params``: what a network without an optimizer loads."""
    with SavingJob(SHARDS, servers=2, trainers=1) as job:
        programs, exe = job.trainer(0), fluid.Executor()
        exe.run(programs.startup)
        exe.run(programs.main, feed=feeds(0, 0))
        fluid.io.save_params(exe, str(tmp_path / "params"), programs.main)
        exe.close()
    assert set(files_of(tmp_path / "params")) == {"table", "fc_0.w_0", "fc_0.b_0"}
    with fresh_programs(SEED) as (main, _):
        embedded(is_distributed=False)
        report = fluid.io.load_params(fluid.Executor(), str(tmp_path / "params"), main)
    assert set(report.loaded) == {"table", "fc_0.w_0", "fc_0.b_0"}


def test_rows_on_servers_are_not_exported_into_one_file(tmp_path: Path) -> None:
    with (
        SavingJob(BLOCKS, servers=2, trainers=1) as job,
        pytest.raises(SaveError, match="'table' is on param"),
    ):
        exporting(job, tmp_path / "export", params_filename="all")
    assert not (tmp_path / "export").exists()


def test_an_export_by_another_trainer_warns_and_writes_nothing(tmp_path: Path) -> None:
    with SavingJob(BLOCKS, servers=2) as job:
        program = job.trainer(1).main
        target = program.global_block().var("fc_0.tmp_1")
        with pytest.warns(UserWarning, match="trainer 0 saves for all trainers"):
            fluid.io.save_inference_model(
                str(tmp_path / "export"), ["ids"], [target], fluid.Executor(), program
            )
        job.go(feeds, 0, 1)
    assert not (tmp_path / "export").exists()


def test_fluid_save_refuses_variables_that_servers_keep(tmp_path: Path) -> None:
    """``fluid.save`` takes no executor, through which it could reach the servers."""
    with SavingJob(BLOCKS, servers=2, trainers=1) as job:
        programs, exe = job.trainer(0), fluid.Executor()
        exe.run(programs.startup)
        with pytest.raises(NotInitializedError, match=r"'table' cannot be saved.*\n.*save_persistables"):
            fluid.save(programs.main, str(tmp_path / "state"))
        exe.close()
    assert not list(tmp_path.iterdir())
