"""Jobs with parameter servers: real Fluid 1.8.5 goes on with what our trainer 0 saved, and we with its saves.

PADDLELIKE_FLUID185_PYTHON names an interpreter that has paddlepaddle 1.8.5.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.jobs import Network, free_endpoints
from tests.interop.drivers.driver_servers import build, feeds, make_optimizer
from tests.interop.real import DRIVERS, FLUID185

pytestmark = FLUID185.needed

# A step differs by rounding only, in gradients and in the sums of two trainers.
LOSS = {"rtol": 1e-4, "atol": 1e-6}
FIRST, SAVED, LAST = 0, 3, 6


def ours(name: str) -> Network:
    return Network(lambda: build(fluid, name), lambda: make_optimizer(fluid, name))


def our_feeds(name: str) -> Any:
    return lambda step, trainer: feeds(fluid, name, step, trainer)


def real_job(
    name: str, place: Path, first: int, last: int, *, load: Path | None = None, save: Path | None = None
) -> list[list[float]]:
    """The losses of two real trainers with two real servers."""
    place.mkdir()
    quiet = {"GLOG_minloglevel": "3", "OMP_NUM_THREADS": "1", "CPU_NUM": "1", "FLAGS_rpc_deadline": "60000"}
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    common = {
        "network": name, "endpoints": free_endpoints(2), "trainers": 2, "first": first, "last": last,
        "load": load and str(load), "save": save and str(save), "save_at": SAVED,
    }  # fmt: skip
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for role in ("server", "trainer"):
            for number in range(2):
                which = f"{role}{number}"
                job = {**common, "role": role, "number": number, "out": str(place / which)}
                (place / f"{which}.json").write_text(json.dumps(job))
                with (place / f"{which}.log").open("wb") as log:
                    processes[which] = subprocess.Popen(
                        [
                            str(FLUID185.python),
                            str(DRIVERS / "driver_servers.py"),
                            str(place / f"{which}.json"),
                        ],
                        env=environment | quiet,
                        stdout=log,
                        stderr=log,
                    )
        end = time.monotonic() + 120
        for number in range(2):
            which = f"trainer{number}"
            code = processes[which].wait(max(1.0, end - time.monotonic()))
            assert code == 0, (place / f"{which}.log").read_text()[-2000:]
    finally:
        for process in processes.values():
            process.kill()  # real servers do not end by themselves
            process.wait()
    return [json.loads((place / f"trainer{number}").read_text()) for number in range(2)]


NAMES = ["mlp-momentum", "mlp-adam", "sparse-adagrad", "shards-sgd"]


@pytest.mark.parametrize("name", NAMES)
def test_real_servers_continue_from_our_saves(name: str, tmp_path: Path) -> None:
    with SavingJob(ours(name), servers=3) as job:
        losses = job.go(our_feeds(name), FIRST, LAST, save=(SAVED, tmp_path / "model"))
    loaded = tmp_path / "model"
    if name.startswith("shards"):  # a job of ours with two servers, for real Fluid takes no other number
        with SavingJob(ours(name), servers=2, loaded=loaded) as job:
            job.go(our_feeds(name), SAVED, SAVED + 1, save=(SAVED, tmp_path / "two"))
        loaded = tmp_path / "two"
    again = real_job(name, tmp_path / "real", SAVED, LAST, load=loaded)
    np.testing.assert_allclose(again, [one[SAVED:] for one in losses], **LOSS)


@pytest.mark.parametrize("name", NAMES)
def test_our_servers_continue_from_saves_of_real_servers(name: str, tmp_path: Path) -> None:
    losses = real_job(name, tmp_path / "real", FIRST, LAST, save=tmp_path / "model")
    with SavingJob(ours(name), servers=3, loaded=tmp_path / "model") as job:
        again = job.go(our_feeds(name), SAVED, LAST)
    np.testing.assert_allclose(again, [one[SAVED:] for one in losses], **LOSS)
