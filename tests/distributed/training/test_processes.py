"""Real processes: a script with roles from the environment; servers that end; deaths that are survived."""

from __future__ import annotations

import functools
import signal
from pathlib import Path

import numpy as np
import pytest

from tests.distributed.jobs import MOMENTUM, Job, perceptron_feeds
from tests.distributed.processes import Processes
from tests.distributed.training.test_sync import recorded

pytestmark = pytest.mark.slow


@functools.cache
def undisturbed(steps: int) -> list[list[float]]:
    """The losses of the job of this module when nothing happens."""
    with Job(MOMENTUM).start() as job:
        return job.train(perceptron_feeds, steps)


def test_a_script_started_by_hand_has_the_losses_of_real_fluid() -> None:
    with Processes({"steps": 10}) as job:
        servers, trainers = job.start()
        assert [one.wait() for one in [*trainers, *servers]] == [0, 0, 0, 0], trainers[0].errors
        losses = [one.last("losses") for one in trainers]
    assert losses == undisturbed(10)
    # Sums in float32 go in another order than in Eigen: a few units in the last place after ten steps.
    np.testing.assert_allclose(losses, recorded("mlp_momentum_sync_2x2")["losses_uninterrupted"], rtol=2e-6)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["terminate", "ctrl-c"])
def test_a_signal_ends_a_server_cleanly(fork_server: str, number: signal.Signals) -> None:
    run = {"steps": 1000, "slow": 0.05}
    with Processes(run, servers=1, trainers=1, fork_server=fork_server, FLAGS_rpc_deadline="3000") as job:
        (server,), (trainer,) = job.start()
        trainer.says(step=2)
        server.popen.send_signal(number)
        assert server.wait() == 0, server.errors
        assert server.said[-1] == {"served": job.endpoints[0]}
        assert trainer.wait() == 75


def test_trainers_of_a_killed_server_end_with_code_75_and_name_it() -> None:
    with Processes({"steps": 1000, "slow": 0.02}, FLAGS_rpc_deadline="4000") as job:
        servers, trainers = job.start()
        trainers[0].says(step=5)
        servers[1].popen.kill()
        codes = [one.wait() for one in trainers]
    assert codes == [75, 75]
    for one in trainers:
        assert job.endpoints[1] in one.errors
        assert "FaultError" in one.errors


def test_a_job_rolls_back_to_the_same_bits_after_a_server_is_killed(fork_server: str, tmp_path: Path) -> None:
    run = {"steps": 20, "slow": 0.02, "follow": True, "save": str(tmp_path), "save_every": 5}
    more = {"PADDLELIKE_RESUME_POLICY": "rollback", "PADDLELIKE_CHECKPOINT_DIR": str(tmp_path)}
    with Processes(run, fork_server=fork_server, **more) as job:
        servers, trainers = job.start()
        trainers[0].says(saved=10)
        servers[1].popen.kill()
        servers[1].wait()
        servers[1] = job.server(1)
        assert [one.wait() for one in [*trainers, *servers]] == [0, 0, 0, 0], trainers[0].errors
        assert [one.last("losses") for one in trainers] == undisturbed(20)
        steps = [one["step"] for one in trainers[0].said if "step" in one]
    assert sorted(set(steps)) == list(range(20))
    assert len(steps) > 20, "nobody went back"


@pytest.mark.parametrize("policy", ["exit", "rollback"])
def test_trainers_of_another_run_are_refused(fork_server: str, policy: str) -> None:
    with Processes(
        {"steps": 1000, "slow": 0.02}, fork_server=fork_server, PADDLELIKE_RESUME_POLICY=policy
    ) as job:
        _, trainers = job.start()
        trainers[0].says(step=5)
        for one in trainers:
            one.popen.kill()
        late = [job.trainer(trainer) for trainer in range(2)]  # their script begins at step 0
        assert [one.wait() for one in late] == [75, 75]
    for one in late:
        assert one.said == []
        assert f"{job.endpoints[0]} began at round 0 and is at round " in one.errors
        assert "They belong to another run" in one.errors


def test_a_server_whose_trainers_are_gone_names_them_and_ends(fork_server: str) -> None:
    more = {"FLAGS_worker_update_interval_secs": "6", "PADDLELIKE_LEASE": "1", "PADDLELIKE_LOG_INTERVAL": "1"}
    with Processes(
        {"steps": 1000, "slow": 0.02}, servers=1, trainers=1, fork_server=fork_server, **more
    ) as job:
        (server,), (trainer,) = job.start()
        trainer.says(step=100)  # two seconds at least, so that the server has said a line of the good times
        trainer.popen.kill()
        assert server.wait() == 75
        lines = [line for line in server.errors.splitlines() if f" server {job.endpoints[0]}: round " in line]
    assert any("rounds/s" in line and "waits for" not in line for line in lines), server.errors
    assert any("waits for trainer 0 (last heard of " in line for line in lines), server.errors
    assert f"the server at {job.endpoints[0]} ends at round" in server.errors
    assert "from trainer 0 (last heard of" in server.errors


def test_a_trainer_that_follows_the_step_of_the_servers_joins_a_running_job(fork_server: str) -> None:
    with Processes({"steps": 12, "slow": 0.02}, servers=1, trainers=1, fork_server=fork_server) as job:
        (server,), (trainer,) = job.start()
        trainer.says(step=5)
        trainer.popen.kill()
        job.run = {"steps": 12, "follow": True}
        successor = job.trainer(0)
        assert (successor.wait(), server.wait()) == (0, 0), successor.errors
    steps = [one["step"] for one in successor.said if "step" in one]
    assert steps[0] >= 5
    assert steps == list(range(steps[0], 12))
