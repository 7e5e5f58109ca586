"""Jobs on a real Ray cluster of this machine: processes and their actors are killed, and the job goes on."""

from __future__ import annotations

import importlib.util
import os
import signal
from pathlib import Path

import pytest

from tests.distributed.collective.jobs import find_reports, run_workers
from tests.distributed.launch.launcher import Launcher, is_gone, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray: pip install ray"),
]

READY = """
Path(name + ".parent").write_text(str(os.getppid()))
ready()
"""


def test_a_job_runs_and_survives_the_loss_of_a_process_and_of_an_actor(tmp_path: Path) -> None:
    script = (
        READY
        + """
print(os.environ["TRAINING_ROLE"], sys.argv[1:], flush=True)
Path(name + ".token").write_text(os.environ["PADDLELIKE_JOB_TOKEN"])
if server: time.sleep(200)
until("let_workers_end", 200)
"""
    )
    options = ["--engine=ray", "--server_num=1", "--worker_num=2", "--grace=2"]
    with Launcher(tmp_path, script, *options) as launcher:
        names = ["server0", "worker0", "worker1"]
        first = {name: launcher.pid(name) for name in names}
        assert len({(tmp_path / f"{name}.token").read_text() for name in names}) == 1

        os.kill(first["worker1"], signal.SIGKILL)
        wait_until(lambda: all(launcher.pid(name) != first[name] for name in names), "a first restart")
        second = {name: launcher.pid(name) for name in names}
        assert all(is_gone(pid) for pid in first.values())

        os.kill(int((tmp_path / "server0.parent").read_text()), signal.SIGKILL)  # the actor
        wait_until(lambda: is_gone(second["server0"]), "the process of an actor to die with it")
        wait_until(lambda: all(launcher.pid(name) != second[name] for name in names), "a second restart")
        third = {name: launcher.pid(name) for name in names}

        (tmp_path / "let_workers_end").touch()
        code, said = launcher.end()
        assert code == 0, said
        for pid in [*second.values(), *third.values()]:
            wait_until(lambda pid=pid: is_gone(pid), "every process to be gone")  # type: ignore[misc]
    assert "worker 1 was killed by SIGKILL" in said
    assert "server 0 was killed by SIGKILL" in said
    assert "restart 2 of 3" in said
    assert (tmp_path / "log" / "workerlog.0").read_text().count("TRAINER ['--lr', '0.1']") == 3


def test_workers_without_servers_find_each_other_and_continue_from_their_last_checkpoint(
    tmp_path: Path,
) -> None:
    pytest.importorskip("jax", reason="workers exchange through JAX's distributed runtime")
    programs = Path(__file__).parents[1] / "collective" / "programs.py"
    script = f"""
import runpy
sys.argv[1:] = ["train_fleet", "{{}}", "model", "5"]
runpy.run_path({str(programs)!r}, run_name="__main__")
"""
    options = ["--engine=ray", "--run_mode=collective", "--worker_num=2", "--grace=2"]
    with Launcher(tmp_path, script, *options) as launcher:
        code, said = launcher.end()
    assert code == 0, said
    assert "worker 1 was killed by SIGKILL" in said
    (interrupted,) = find_reports((tmp_path / "log" / "workerlog.0").read_text())
    whole = run_workers(2, "train_fleet")[0].reports[0]
    assert interrupted == {"losses": whole["losses"][5:], "values": whole["values"]}


def test_an_error_of_the_script_ends_the_job_and_shows_the_log(tmp_path: Path) -> None:
    script = """
if server: time.sleep(200)
raise ValueError("no such column")
"""
    options = ["--engine=ray", "--server_num=1", "--worker_num=1", "--grace=2"]
    with Launcher(tmp_path, script, *options) as launcher:
        code, said = launcher.end()
    assert code == 1
    assert "ValueError: no such column" in said
    assert launcher.starts("worker0") == 1


def test_the_driver_can_be_interrupted(tmp_path: Path) -> None:
    options = ["--engine=ray", "--server_num=1", "--worker_num=1", "--grace=5"]
    with Launcher(tmp_path, READY + "time.sleep(200)", *options) as launcher:
        pids = [launcher.pid("server0"), launcher.pid("worker0")]
        launcher.process.terminate()
        code, said = launcher.end()
        assert code == 128 + signal.SIGTERM, said
        assert all(is_gone(pid) for pid in pids)
