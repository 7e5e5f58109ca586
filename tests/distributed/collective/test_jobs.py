"""Workers in processes of their own: their numbers, and what happens when one is lost."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.distributed.collective.classes import train_classes
from tests.distributed.collective.jobs import Ended, find_reports, run_workers

pytest.importorskip("jax", reason="workers exchange through JAX's distributed runtime")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def whole() -> list[Ended]:
    """Two workers that train with fleet, undisturbed."""
    return run_workers(2, "train_fleet")


@pytest.mark.parametrize(("backend", "count"), [("numpy", 2), ("jax", 2), ("numpy", 4)])
def test_workers_have_the_losses_of_one_process_with_the_whole_batch(backend: str, count: int) -> None:
    environ = {"FLAGS_backend": backend}
    (alone,) = run_workers(1, "train", environ=environ)
    workers = run_workers(count, "train", environ=environ)
    assert [one.code for one in [alone, *workers]] == [0] * (1 + count), workers[0].errors
    losses = np.mean([one.reports[0]["losses"] for one in workers], axis=0)
    np.testing.assert_allclose(losses, alone.reports[0]["losses"], rtol=1e-6)
    assert workers[0].reports[0]["values"] == workers[1].reports[0]["values"]


@pytest.mark.obeys(
    "run the startup program that was transpiled, or start the script by python -m "
    "paddlelike.distributed.launch --run_mode collective",
    "run it by fluid.Executor",
    "CompiledProgram.with_data_parallel runs several copies in one process; collective_mode = "
    "'grad_allreduce' trains with several processes",
    "run the program itself; with_data_parallel is for config.mode = 'nccl2'",
    "let trainer_id and the number of trainers come from the environment, as the job's do",
)
def test_workers_that_follow_the_hints_of_their_mistakes_train() -> None:
    workers = run_workers(2, "take_hints")
    assert [one.code for one in workers] == [0, 0], workers[0].errors
    (alone,) = run_workers(1, "train")
    for worker in workers:
        (report,) = worker.reports
        starts = [
            "run the startup program that",
            "run it by fluid.Ex",
            "CompiledProgram.with_data_parallel runs",
        ]
        starts += ["run the program itself; with_data_parallel", "let trainer_id and the number of trainers"]
        assert [hint[: len(start)] for hint, start in zip(report["hints"], starts, strict=True)] == starts
        assert report["sums"] == [3, 3]
    losses = [one.reports[0]["copied"] for one in workers]
    assert np.mean(losses) == pytest.approx(alone.reports[0]["losses"][0], rel=1e-5)


@pytest.mark.obeys(
    "run the startup program before anything else that computes, or set PADDLE_TRAINER_ENDPOINTS and "
    "PADDLE_TRAINER_ID, by which a process joins when JAX is loaded"
)
def test_workers_whose_jax_computed_before_they_joined_are_refused() -> None:
    """The first test of this module joins before."""
    workers = run_workers(2, "join_late")
    assert all(one.code for one in workers)
    assert "run the startup program before anything else that computes" in workers[0].errors


def test_workers_that_split_a_layer_by_columns_end_with_the_error_of_worker_0() -> None:
    workers = run_workers(2, "train_split")
    assert [one.code for one in workers] == [1, 75], workers[0].errors
    assert "lost worker 0 (127.0.0.1" in workers[1].errors  # which waited for nothing of worker 0
    with fluid.scope_guard(fluid.Scope()):
        losses = train_classes(["alone"], 0)
        whole = np.array(fluid.global_scope().find_var("own").get_tensor())
    for worker, columns in zip(workers, np.split(whole, 2, 1), strict=True):
        (report,) = worker.reports
        np.testing.assert_allclose(report["losses"], losses, rtol=1e-6)
        own = np.frombuffer(bytes.fromhex(report["own"]), "float32").reshape(columns.shape)
        np.testing.assert_allclose(own, columns, rtol=1e-5)  # float32 sums of another order, 8 steps


def test_local_sgd_takes_the_mean_of_the_changes() -> None:
    one, other = run_workers(2, "train", "LocalSGD")
    assert (one.code, other.code) == (0, 0), one.errors
    mine, theirs = one.reports[0]["values"], other.reports[0]["values"]
    assert mine["fc_0.w_0"] == theirs["fc_0.w_0"]
    assert mine["fc_0.w_0@SNAPSHOT"] == mine["fc_0.w_0"]
    velocity = next(name for name in mine if name.startswith("fc_0.w_0_velocity"))
    assert mine[velocity] != theirs[velocity]  # each worker's own


@pytest.mark.parametrize("options", [{}, {"sync_batch_norm": True}], ids=["nccl2", "sync_batch_norm"])
def test_fleet_trains_as_one_process(options: dict[str, Any], whole: list[Ended]) -> None:
    (alone,) = run_workers(1, "train_fleet", json.dumps(options))
    workers = run_workers(2, "train_fleet", json.dumps(options)) if options else whole
    assert [one.code for one in [alone, *workers]] == [0, 0, 0], workers[0].errors
    losses = np.mean([one.reports[0]["losses"] for one in workers], axis=0)
    # The sums of float32 have another order.
    np.testing.assert_allclose(losses, alone.reports[0]["losses"], rtol=2e-6)
    assert workers[0].reports[0]["values"] == workers[1].reports[0]["values"]


def test_a_checkpoint_has_the_bytes_of_the_last_run_and_of_one_process(
    tmp_path: Path, whole: list[Ended]
) -> None:
    again = run_workers(2, "train_fleet", "{}", str(tmp_path / "model"))
    assert [one.reports for one in again] == [one.reports for one in whole]
    saved = sorted((tmp_path / "model").iterdir())[-1] / "_paddle_fleet_param__"
    # One process goes on from it: all steps are done, and what it saves of these values are the same bytes.
    (alone,) = run_workers(1, "train_fleet", "{}", str(tmp_path / "model"), "", str(tmp_path / "copy"))
    assert alone.code == 0, alone.errors
    assert alone.reports == [{"losses": [], "values": whole[0].reports[0]["values"]}]
    assert (tmp_path / "copy" / "all").read_bytes() == saved.read_bytes()


def test_sharded_optimizer_state_is_saved_whole_and_resumed_by_three_workers(
    tmp_path: Path, whole: list[Ended]
) -> None:
    runs = {}
    for strategy in (0, 1):
        options = json.dumps({"reduce_strategy": strategy})
        paths = [str(tmp_path / f"{strategy}"), "", str(tmp_path / f"{strategy} last")]
        runs[strategy] = run_workers(2, "train_fleet", options, *paths)
        assert [one.code for one in runs[strategy]] == [0, 0], runs[strategy][0].errors
    assert [one.reports for one in runs[1]] == [one.reports for one in whole]
    for folder, others in (("0", "1"), ("0 last", "1 last")):
        mine, theirs = (read_files(tmp_path / name) for name in (folder, others))
        assert mine == theirs
        assert len(mine) > 2
    shutil.rmtree(sorted((tmp_path / "1").iterdir())[-1])
    shutil.rmtree(sorted((tmp_path / "0").iterdir())[-1])
    goes_on = run_workers(3, "train_fleet", json.dumps({"reduce_strategy": 1}), str(tmp_path / "1"))
    (alone,) = run_workers(1, "train_fleet", "{}", str(tmp_path / "0"))
    losses = [one.reports[0]["losses"] for one in goes_on]
    # Parts of 6, 5 and 5 samples; the sums of float32 have another order.
    weighted = np.average(losses, axis=0, weights=[6, 5, 5])
    np.testing.assert_allclose(weighted, alone.reports[0]["losses"], rtol=2e-6)


@pytest.mark.skipif(sys.platform != "linux", reason="bytes read are counted by /proc")
def test_workers_read_only_their_own_state(tmp_path: Path) -> None:
    source = tmp_path / "3" / "trained"
    first = run_workers(3, "restore_share", "", str(tmp_path / "3"), "")
    assert [one.code for one in first] == [0, 0, 0], first[0].errors
    for count in (2, 1):
        done = run_workers(count, "restore_share", str(source), str(tmp_path / f"{count}"), "01")
        assert [one.code for one in done] == [0] * count, done[0].errors
        assert read_files(tmp_path / f"{count}" / "loaded") == read_files(source)  # before any step
        sizes = {path.name: path.stat().st_size for path in source.iterdir() if "manifest" not in path.name}
        skipped = [one.reports[0]["skipped"] for one in done]
        for one, names in zip(done, skipped, strict=True):
            assert one.reports[0]["is_good"]
            own = sum(sizes.values()) - sum(sizes[name] for name in names)
            # Headers, the manifest, and files of /proc are read as well, and this module's source.
            assert own <= one.reports[0]["read"] < own + 200_000
        state = {name for name in sizes if "moment" in name or "beta" in name}
        assert sorted(itertools.chain(*skipped)) == (sorted(state) if count == 2 else [])
    assert read_files(tmp_path / "2" / "trained").keys() == sizes.keys()


@pytest.mark.obeys("each reads its own part: let every worker load")
def test_all_workers_fail_if_only_one_loaded_its_state(tmp_path: Path) -> None:
    run_workers(1, "restore_share", "", str(tmp_path / "1"), "")
    done = run_workers(2, "restore_share", str(tmp_path / "1" / "trained"), str(tmp_path / "2"), "1")
    assert all(one.code for one in done)
    assert "only worker 1 of 2 loaded the state, which the workers divide" in done[1].errors
    assert "each reads its own part: let every worker load" in done[0].errors
    done = run_workers(2, "restore_share", str(tmp_path / "1" / "trained"), str(tmp_path / "3"), "01")
    assert [one.code for one in done] == [0, 0], done[0].errors
    assert read_files(tmp_path / "3" / "loaded") == read_files(tmp_path / "1" / "trained")


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files but manifests, which have times."""
    files = [path for path in folder.rglob("*") if path.is_file() and "manifest" not in path.name]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_worker_0_may_wait_for_the_ports_of_the_others() -> None:
    workers = run_workers(3, "wait_for_ports")
    assert [one.code for one in workers] == [0, 0, 0], workers[0].errors


def test_every_collective_operator_computes_its_sum_or_copy_on_all_workers() -> None:
    workers = run_workers(2, "operators")
    assert [one.code for one in workers] == [0, 0], workers[0].errors
    x = np.stack([np.arange(8, dtype="float32").reshape(4, 2) - rank for rank in range(2)])
    ids = np.stack([np.arange(3) * 2**40 + rank for rank in range(2)])
    for rank, worker in enumerate(workers):
        expected: dict[str, Any] = {
            "sum": x.sum(0),
            "max": x.max(0),
            "min": x.min(0),
            "prod": x.prod(0),
            "ints": ids.sum(0),
            "old": x.max(0),
            "gather": x.reshape(8, 2),
            "scatter": x.sum(0)[2 * rank : 2 * rank + 2],
            "later": 2 * x.sum(0),
            "root": 3 * x[1],
            "old root": 4 * x[1],
        }
        assert worker.reports == [{name: value.tolist() for name, value in expected.items()}]


def test_repeated_sums_of_large_rows_are_exact() -> None:
    """By ``psum_scatter`` of jaxlib 0.10.2 over gloo 1 of 30 such sums is wrong."""
    workers = run_workers(2, "scatter_large", "60")
    assert [one.reports for one in workers] == [[{"wrong": 0}]] * 2, workers[0].errors


def test_workers_that_exchange_different_shapes_fail_with_the_reason() -> None:
    workers = run_workers(2, "differ", environ={"PADDLELIKE_LEASE": "3"})
    assert all(one.code for one in workers)
    texts = "".join(one.errors for one in workers)
    assert "exchanges a sum of float32 [3, 2]" in texts or "exchanges a sum of float32 [4, 2]" in texts
    assert "all workers run the same programs in the same order" in texts


@pytest.mark.parametrize(
    ("fault", "victim"), [("SIGKILL", 0), ("SIGTERM", 1), ("SIGSTOP", 1), ("an error", 0), ("an error", 1)]
)
def test_the_others_end_with_an_error_that_names_the_lost_worker(fault: str, victim: int) -> None:
    environ, stopped = {"PADDLELIKE_LEASE": "2"}, victim if fault == "SIGSTOP" else None
    workers = run_workers(3, "train", "GradAllReduce", fault, str(victim), environ=environ, lost=stopped)
    assert workers[victim].reports == [{"fault": fault}]
    assert workers[victim].code == {"SIGSTOP": -9, "SIGKILL": -9, "SIGTERM": -15, "an error": 1}[fault]
    for rank, worker in enumerate(workers):
        if rank != victim:
            assert worker.code == 75, worker.errors
            assert worker.reports == []
            assert f"lost worker {victim} (127.0.0." in worker.errors


@pytest.mark.parametrize(("moment", "victim"), [("before", 1), ("connected", 1), ("connected", 0)])
def test_a_worker_that_is_stopped_while_joining_is_named_in_time(moment: str, victim: int) -> None:
    environ = {"PADDLELIKE_LEASE": "4", "FLAGS_rpc_deadline": "12000"}
    workers = run_workers(2, "stop_while_joining", str(victim), moment, environ=environ, lost=victim)
    assert workers[victim].reports == [{"fault": moment}]
    other = workers[1 - victim]
    assert (other.code, other.reports) == (75, []), other.errors
    assert f"lost worker {victim} (127.0.0." in other.errors


@pytest.mark.parametrize(("error", "code"), [("None", 0), ("ValueError()", 1), ("FaultError('lost')", 75)])
def test_an_abort_of_jax_at_exit_does_not_change_the_exit_code(error: str, code: int) -> None:
    script = f"""
import os, sys, threading
from paddlelike.distributed.collective.job import make_job
from paddlelike.distributed.collective.jax_runtime import _exit_when_jax_aborts
from paddlelike.errors import FaultError
ending = threading.Event()
kept = _exit_when_jax_aborts(make_job(["127.0.0.1:1", "127.0.0.1:2"], 1), ending, ending)
ending.set()
error = {error}
if error is not None:
    sys.last_value = error
os.abort()
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == code


@pytest.mark.parametrize("strategy", [0, 1], ids=["all reduce", "shared out"])
@pytest.mark.parametrize("elastic", [False, True], ids=["as many", "fewer"])
def test_the_launcher_starts_a_job_again_from_its_last_checkpoint(
    tmp_path: Path, whole: list[Ended], elastic: bool, strategy: int
) -> None:
    options = ["--elastic", "1:2"] if elastic else ["--nproc_per_node", "2"]
    script = Path(__file__).parent / "programs.py"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "paddlelike.distributed.launch", "--log_dir", str(tmp_path / "log")),
            *(*options, str(script), "train_fleet", json.dumps({"reduce_strategy": strategy})),
            *(str(tmp_path / "model"), "5"),
        ],
        capture_output=True, text=True, timeout=90, env=os.environ | {"PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "worker 1 was killed by SIGKILL" in done.stderr
    assert f"restart 1 of 3, {'with 1 workers' if elastic else 'of the whole job'}" in done.stderr
    (report,) = find_reports((tmp_path / "log" / "workerlog.0").read_text())
    expected = whole[0].reports[0]
    done_before = 8 - len(report["losses"])
    # Worker 1 may be killed before the last save is complete, which is lost then.
    assert done_before in (4, 5)
    if elastic:  # the losses of the whole batch, of sums in another order
        both = np.mean([one.reports[0]["losses"] for one in whole], axis=0)
        np.testing.assert_allclose(report["losses"], both[done_before:], rtol=2e-6)
    else:
        assert report == {"losses": expected["losses"][done_before:], "values": expected["values"]}
