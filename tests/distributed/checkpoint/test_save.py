"""Trainer 0 saves one complete directory."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import VarType
from paddlelike.distributed.checkpoint.gather import Gathering, gather_files
from paddlelike.distributed.placement import Kind, Placement, Slice
from paddlelike.distributed.server.position import read_position
from paddlelike.errors import LoadError, SaveError
from paddlelike.storage.local.transaction import Transaction
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.checkpoint.test_resume import ADAM
from tests.distributed.checkpoint.test_tables import SHARDS, feeds as table_feeds
from tests.distributed.jobs import MOMENTUM, Network, perceptron, perceptron_feeds, sgd


def files_of(directory: Path) -> dict[str, bytes]:
    paths = [path for path in directory.rglob("*") if path.is_file()]
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in paths
        if path.name != "__manifest__"
    }


def test_every_file_is_a_whole_variable_and_verifies(tmp_path: Path) -> None:
    with SavingJob(ADAM, servers=3) as job:
        job.go(perceptron_feeds, 0, 2, save=(2 - 1, tmp_path / "model"))
    assert fluid.io.verify(str(tmp_path / "model"))
    assert set(files_of(tmp_path / "model")) == set(job.saved.saved)
    state = fluid.io.load_program_state(str(tmp_path / "model"))
    assert state["fc_0.w_0_moment1_0"].shape == (130, 320)
    assert state["fc_0.w_0_beta1_pow_acc_0"].shape == (1,)
    assert state["@LR_DECAY_COUNTER@"].tolist() == [0]


@pytest.mark.parametrize("checksum", ["xxh3_128", "sha256", None])
def test_rows_written_by_servers_give_the_same_files_as_gathered_ones(tmp_path: Path, checksum: Any) -> None:
    """All the large files are written at their places by three servers, the same bytes as if gathered."""
    found = []
    for by_servers in (False, True):
        with SavingJob(ADAM, servers=3, trainers=1) as job:
            path = tmp_path / f"model{by_servers}"
            job.go(perceptron_feeds, 0, 2, save=(1, path), by_servers=by_servers, checksum=checksum)
        found.append(files_of(path))
        verified = fluid.io.verify(str(path))
        assert verified if checksum else verified.unchecked
    assert found[0] == found[1]


def test_the_manifest_records_the_round(tmp_path: Path) -> None:
    with SavingJob(MOMENTUM) as job:
        job.go(perceptron_feeds, 0, 4, save=(3, tmp_path / "model"))
    position = read_position(tmp_path / "model", job.endpoints[1])
    assert position is not None
    assert position["round"] == 3
    assert read_position(tmp_path / "model", "other:1") == {"round": 3}


def test_a_trainer_other_than_0_saves_nothing_and_says_why(tmp_path: Path) -> None:
    with SavingJob(MOMENTUM) as job:
        program = job.trainer(1).main
        with pytest.warns(UserWarning, match="trainer 0 saves for all trainers"):
            report = fluid.io.save_persistables(fluid.Executor(), str(tmp_path / "model"), program)
        job.go(perceptron_feeds, 0, 1)
    assert not report
    assert "trainer 0 saves" in str(report)
    assert not (tmp_path / "model").exists()


def test_a_server_does_not_save_its_rows_over_the_model(tmp_path: Path) -> None:
    with SavingJob(MOMENTUM) as job:
        program = job.server(job.endpoints[0]).main
        with pytest.raises(SaveError, match=r"parameter server 127.0.0.1:\d+ is not saved by itself"):
            fluid.io.save_persistables(fluid.Executor(), str(tmp_path / "model"), program)
        job.go(perceptron_feeds, 0, 1)


def test_saving_all_variables_in_one_file_is_refused(tmp_path: Path) -> None:
    with SavingJob(MOMENTUM) as job, pytest.warns(UserWarning, match="filename= is ignored"):
        job.go(perceptron_feeds, 0, 2, save=(1, tmp_path / "model"), filename="all")
    assert "fc_0.w_0_velocity_0" in files_of(tmp_path / "model")


def test_a_background_save_of_servers_is_refused(tmp_path: Path) -> None:
    with SavingJob(MOMENTUM, trainers=1) as job, pytest.raises(SaveError, match="from several rounds"):
        job.go(perceptron_feeds, 0, 2, save=(1, tmp_path / "model"), blocking=False)


def test_saving_only_parameters_needs_no_server(tmp_path: Path) -> None:
    """``save_params`` of a trainer: its own values, which are those of the last round."""
    with SavingJob(Network(perceptron, sgd), trainers=1) as job:
        programs = job.trainer(0)
        exe = fluid.Executor()
        exe.run(programs.startup)
        exe.run(programs.main, feed=perceptron_feeds(0, 0))
        fluid.io.save_params(exe, str(tmp_path / "params"), programs.main)
        exe.close()
    state = fluid.io.load_program_state(str(tmp_path / "params"))
    assert set(state) == {"fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"}
    held = job.on_servers()
    assert all(np.array_equal(state[name], held[name]) for name in state)


def test_a_load_by_a_trainer_does_not_change_the_losses(tmp_path: Path) -> None:
    with SavingJob(MOMENTUM) as job:
        losses = job.go(perceptron_feeds, 0, 4, save=(2, tmp_path / "model"))

    class Loading(SavingJob):
        def trainer(self, number: int) -> Any:
            programs = super().trainer(number)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exe, scope = fluid.Executor(), fluid.Scope()
                with fluid.scope_guard(scope):
                    report = fluid.io.load_persistables(exe, str(tmp_path / "model"), programs.main)
            assert any("from the servers" in note for note in report.notes)
            return programs

    with Loading(MOMENTUM, servers=3, loaded=tmp_path / "model") as job:
        again = job.go(perceptron_feeds, 2, 4)
    assert again == [one[2:] for one in losses]


def test_thousands_of_variables_are_received_in_a_few_calls(tmp_path: Path) -> None:
    calls = []

    class Counting:
        def pull(self, wanted: Any) -> Any:
            calls.append(len(wanted))
            return [np.full(2, int(name[1:]), "float32") for _, name in wanted]

    slices = [
        Slice(f"v{n}", f"v{n}", "127.0.0.1:1", 0, 0, (2,), (2,), VarType.FP32, Kind.OPTIMIZER)
        for n in range(5000)
    ]
    table = Placement(slices, endpoints=["127.0.0.1:1"])
    with Transaction(tmp_path / "model") as transaction:
        for extra in gather_files(Counting(), table, table.origins(), Gathering()):  # type: ignore[arg-type]
            transaction.add(extra.name, extra.buffers, extra.facts)
    assert calls == [2000, 2000, 1000]
    assert len(files_of(tmp_path / "model")) == 5000
    assert fluid.io.load_slice(str(tmp_path / "model"), "v4321", (0, 2)).tolist() == [4321, 4321]


def test_rows_that_no_server_has_are_an_error(tmp_path: Path) -> None:
    part = Slice("v", "v.block1", "127.0.0.1:1", 1, 2, (2, 3), (5, 3), VarType.FP32, Kind.OPTIMIZER)
    for slices in ([part], [dataclasses.replace(part, first_row=0)]):
        table = Placement(slices, endpoints=["127.0.0.1:1"])
        with pytest.raises(SaveError, match="no server has rows"):
            gather_files(None, table, ["v"], Gathering())  # type: ignore[arg-type]


def test_verify_finds_damage_in_the_rows_of_another_server(tmp_path: Path) -> None:
    """A load compares the pieces of a file that it reads, and this file has one."""
    with SavingJob(MOMENTUM) as job:
        job.go(perceptron_feeds, 0, 2, save=(1, tmp_path / "model"))
    path = tmp_path / "model" / "fc_0.w_0"
    data = bytearray(path.read_bytes())
    data[40] ^= 1  # in the first block
    path.write_bytes(data)
    endpoint = job.server(job.endpoints[0]).main._parameters_on_pservers.of("fc_0.w_0")[1].endpoint
    program = job.server(endpoint).main
    assert fluid.io.load_persistables(fluid.Executor(), str(tmp_path / "model"), program, verify=False)
    for verify in (None, True):
        with pytest.raises(LoadError, match=rf"the server at {endpoint}: .*\n  fc_0\.w_0"):
            fluid.io.load_persistables(fluid.Executor(), str(tmp_path / "model"), program, verify=verify)


@pytest.mark.parametrize("network", [ADAM, SHARDS], ids=["dense", "shards"])
def test_a_directory_behind_a_url_is_saved_and_loaded(network: Network, tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="fsspec is in the extra 'remote'")
    feeds = table_feeds if network is SHARDS else perceptron_feeds
    url = f"memory://{tmp_path.name}/model"
    with SavingJob(network, servers=2, trainers=1) as job:
        losses = job.go(feeds, 0, 4, save=(2, url))
    with SavingJob(network, servers=3, trainers=1, loaded=url) as job:
        assert job.go(feeds, 2, 4) == [losses[0][2:]]


def test_servers_do_not_write_behind_a_url(tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="fsspec is in the extra 'remote'")
    with SavingJob(ADAM, trainers=1) as job, pytest.raises(SaveError, match="a directory that all can see"):
        job.go(perceptron_feeds, 0, 2, save=(1, f"memory://{tmp_path.name}/model"), by_servers=True)
