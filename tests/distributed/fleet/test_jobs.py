"""Scripts of fleet as real jobs: servers and trainers that the launcher starts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.saved_files import read_variables

PROJECT = Path(__file__).parents[3]
JOB = Path(__file__).parent / "driver.py"

pytestmark = pytest.mark.slow


def run_job(home: Path, mode: str, first: int, last: int, load: str, save: str, *options: str) -> str:
    command = [sys.executable, "-m", "paddlelike.distributed.launch", "--max_restarts=0", *options, str(JOB)]
    done = subprocess.run(
        [*command, mode, str(first), str(last), load, save],
        cwd=home,
        env=os.environ | {"PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def losses(home: Path, worker: int) -> list[float]:
    log = (home / "log" / f"workerlog.{worker}").read_text()
    assert log.endswith("stopped\n")
    return [float(text) for text in re.findall(r"loss (\S+)", log)]


@pytest.mark.parametrize("mode", ["sync", "async", "half_async"])
def test_a_job_learns_and_its_servers_end(mode: str, tmp_path: Path) -> None:
    run_job(tmp_path, mode, 0, 80, "-", "models")
    for worker in range(2):
        found = losses(tmp_path, worker)
        assert len(found) == 80
        assert np.mean(found[-10:]) < 0.5  # of a target whose variance is above 4
    for server in range(2):
        assert (tmp_path / "log" / f"serverlog.{server}").read_text() == "served\n"
    saved = read_variables(tmp_path / "models")
    assert {"embedding_0.w_0", "embedding_0.w_0_moment_0", "fc_0.w_0", "@LR_DECAY_COUNTER@"} <= set(saved)
    exported = read_variables(tmp_path / "models.model")
    assert set(exported) == {"__model__", "embedding_0.w_0", "fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"}
    if mode == "sync":  # otherwise the other trainer may have trained on between the two
        assert all(exported[name] == saved[name] for name in set(exported) - {"__model__"})
    learned_and_exported(tmp_path / "models.model")


def learned_and_exported(directory: Path) -> None:
    exe = fluid.Executor(fluid.CPUPlace())
    program, feeds, fetches = fluid.io.load_inference_model(str(directory), exe)
    rng = np.random.RandomState(7)
    x, ids = rng.uniform(-1, 1, (500, 13)).astype("float32"), rng.randint(0, 3000, (500, 1))
    (found,) = exe.run(program, feed=dict(zip(feeds, (x, ids), strict=True)), fetch_list=fetches)
    expected = x.sum(1, keepdims=True) + 0.1 * (ids % 7)
    assert np.mean((found - expected) ** 2) < 0.5 * np.var(expected)


def test_another_number_of_servers_goes_on_where_the_save_was(tmp_path: Path) -> None:
    run_job(tmp_path, "sync", 0, 20, "-", "first")
    run_job(tmp_path, "sync", 20, 40, "first", "second", "--server_num=3")
    resumed = losses(tmp_path, 0)
    run_job(tmp_path, "sync", 0, 40, "-", "whole")
    assert losses(tmp_path, 0)[20:] == resumed
    assert read_variables(tmp_path / "second") == read_variables(tmp_path / "whole")


def test_a_job_can_be_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECONDS_A_STEP", "0.05")  # a job of more than the five seconds between two lines
    said = run_job(tmp_path, "sync", 0, 130, "-", "models", "--progress")
    servers = re.findall(r"servers (\S+),(\S+), 2 workers", said)[0]
    seen = [line for line in said.splitlines() if "worker 0: step" in line]
    assert seen, said
    assert all(f"{server}: round" in seen[-1] for server in servers)
    assert re.search(r"round [1-9]\d*, \d+\.\d/s, in \d+\.\d\d MB/s, out", seen[-1])
