"""The operators of Fluid's own save programs, run as a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import VarType
from paddlelike.formats.paddle import lod_tensor, selected_rows
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.checkpoint.test_resume import ADAM
from tests.distributed.checkpoint.test_tables import SHARDS, feeds
from tests.distributed.jobs import Programs, perceptron_feeds


def recv_save(programs: Programs, origin: str, path: Path, **attrs: Any) -> fluid.Program:
    """The program that Fluid's ``save_persistables`` makes for one variable on the servers."""
    slices = programs.main._parameters_on_pservers.of(origin)
    program = fluid.Program()
    program.global_block().append_op(
        type="recv_save",
        attrs={
            "trainer_id": 0,
            "shape": list(slices[0].whole),
            "dtype": int(VarType.FP32),
            "file_path": str(path),
            "slice_shapes": [",".join(map(str, one.shape)) for one in slices],
            "slice_varnames": [one.name for one in slices],
            "remote_varnames": [one.name for one in slices],
            "endpoints": [one.endpoint for one in slices],
            **attrs,
        },
    )
    return program


@pytest.mark.parametrize("origin", ["fc_0.w_0_moment1_0", "fc_0.w_0_beta1_pow_acc_0"])
def test_recv_save_writes_a_whole_variable_once(tmp_path: Path, origin: str) -> None:
    with SavingJob(ADAM, servers=3, trainers=1) as job:
        programs, exe = job.trainer(0), fluid.Executor()
        exe.run(programs.startup)
        exe.run(programs.main, feed=perceptron_feeds(0, 0))
        exe.run(recv_save(programs, origin, tmp_path / origin))
        with pytest.raises(fluid.core.EnforceNotMet, match="exists, and overwrite is false"):
            exe.run(recv_save(programs, origin, tmp_path / origin, overwrite=False))
        exe.close()
    saved = lod_tensor.read((tmp_path / origin).read_bytes()).array
    assert saved is not None
    assert np.array_equal(saved, job.on_servers()[origin])


def test_checkpoint_notify_writes_a_file_for_each_server(tmp_path: Path) -> None:
    with SavingJob(SHARDS, servers=2, trainers=1) as job:
        programs, exe = job.trainer(0), fluid.Executor()
        exe.run(programs.startup)
        exe.run(programs.main, feed=feeds(0, 0))
        program = programs.main.clone()
        program.global_block().ops.clear()
        attrs = {"epmap": job.endpoints, "dir": str(tmp_path / "tables"), "lookup_table": "table"}
        program.global_block().append_op(type="checkpoint_notify", attrs=attrs)
        exe.run(program)
        exe.close()
    for number, endpoint in enumerate(job.endpoints):
        shard = selected_rows.read((tmp_path / "tables" / f"table_{number}").read_bytes())
        held = job.scopes[endpoint].find_var("table").get_selected_rows()
        assert shard.rows() == held.rows()
        assert np.array_equal(shard.array, held.array)


def test_a_prediction_network_loads_a_sharded_table(tmp_path: Path) -> None:
    """Rows that no trainer has met are zero there, as they are for ``lookup_sparse_table`` in test mode."""
    with SavingJob(SHARDS, servers=2, trainers=1) as job:
        job.go(feeds, 0, 3, save=(2, tmp_path / "model"))
    ids = fluid.data("ids", [None, 1], "int64")
    rows = fluid.layers.embedding(ids, [2500, 8], is_sparse=True, param_attr="table")
    exe = fluid.Executor()
    report = fluid.io.load_persistables(exe, str(tmp_path / "model"))
    assert set(report.loaded) == {"table"}
    found = exe.run(feed={"ids": np.arange(2500).reshape(-1, 1)}, fetch_list=[rows])[0]
    for number in range(2):
        path = tmp_path / "model" / "__lookup_table__" / f"table_{number}"
        shard = selected_rows.read(path.read_bytes())
        assert np.array_equal(found[shard.rows()], shard.array[: len(shard.rows())])
        found[shard.rows()] = 0
    assert not found.any()
