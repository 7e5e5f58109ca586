"""A server that dies at any moment of its work, and is started again: the job ends with the same bits."""

from __future__ import annotations

import signal

import pytest

import paddlelike as fluid
from tests.distributed.faults.conftest import Result

pytestmark = pytest.mark.slow

KILL_AT = {
    "a push comes in": {"at": "server.push", "number": 4},
    "a push is staged": {"at": "server.commit", "number": 4},
    "a barrier is open": {"at": "server.apply", "number": 4},
    "a round is applied in part": {"at": "server.apply.mid", "number": 4},
    "a round is applied but not answered": {"at": "server.apply.done", "number": 4},
    "parameters are on their way": {"at": "server.commit.done", "number": 4},
    "nothing is saved yet": {"at": "server.push", "number": 1},
    "trainer 0 saves": {"at": "server.pull", "number": 6},
    "it reports its position for a save": {"at": "server.write", "number": 6},
    "a trainer says Hello": {"at": "server.hello.done"},
    "trainers leave": {"at": "server.complete", "number": 10},
}


@pytest.mark.parametrize("moment", KILL_AT)
def test_a_job_gives_the_same_bits_when_a_server_is_killed_at_any_moment(moment, run, undisturbed):
    job = run(faults={"server 1": KILL_AT[moment] | {"do": "kill"}})
    assert Result(job.finish()) == undisturbed()
    assert job.restarts >= 1


def test_a_job_ends_with_the_same_bits_when_the_server_of_a_table_part_is_killed(run, undisturbed):
    job = run(network="sparse", faults={"server 0": {"at": "server.apply.mid", "number": 4, "do": "kill"}})
    assert Result(job.finish()) == undisturbed(network="sparse")
    assert job.restarts >= 1


def test_an_interrupted_save_does_not_count_and_is_repeated(run, undisturbed):
    job = run(faults={"server 1": {"at": "server.pull", "number": 6, "do": "kill"}})
    assert Result(job.finish()) == undisturbed()
    said = job.processes["trainer 0"].said
    kept = [one for one in said if {"saved", "unsaved"} & set(one)]
    assert kept == [{"saved": 3}, {"unsaved": 6, "back": 3}, {"saved": 6}, {"saved": 9}]
    assert fluid.io.verify(str(job.saves))


def test_a_job_ends_with_the_same_bits_when_both_servers_are_killed(run, undisturbed):
    fault = {"at": "server.apply.mid", "number": 7, "do": "kill"}
    job = run(faults={"server 0": fault, "server 1": fault})
    assert Result(job.finish()) == undisturbed()
    assert job.restarts >= 2


def test_a_job_survives_a_server_that_is_killed_again_while_it_loads(run, undisturbed):
    job = run(faults={"server 0": {"at": "server.push", "number": 5, "do": "kill"}})
    job.until_said("trainer 0", "saved", 3)
    job.faults["server 0"] = {"at": "server.load", "do": "kill"}
    assert Result(job.finish()) == undisturbed()
    assert job.restarts >= 2


@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("server 0", "server.rollback"),
        ("server 0", "server.rollback.done"),
        ("trainer 0", "trainer.rollback"),
        ("trainer 1", "trainer.rollback.done"),
    ],
)
def test_a_job_survives_a_second_kill_during_a_rollback(name, point, run, undisturbed):
    first = {"at": "server.push", "number": 4, "do": "kill"}
    job = run(faults={"server 1": first, name: {"at": point, "do": "kill"}})
    assert Result(job.finish()) == undisturbed()
    assert job.restarts >= 1  # trainers race: the second fault may find nothing left to do


@pytest.mark.parametrize("moment", ["server.push", "server.apply.mid", "server.commit.done"])
def test_a_job_survives_a_server_that_hangs_longer_than_a_call_may_take(moment, run, undisturbed):
    settings = {"FLAGS_rpc_deadline": "1500", "FLAGS_rpc_retry_times": "20"}
    job = run(faults={"server 1": {"at": moment, "number": 4, "do": "stop"}}, settings=settings)
    hung = job.until_stopped("server 1")
    job.until_said("trainer 0", "failed", 1)
    hung.send(signal.SIGCONT)
    assert Result(job.finish()) == undisturbed()
    assert job.restarts == 0


@pytest.mark.obeys("resume from the last save; FLAGS_rpc_deadline (ms) is how long a trainer waits")
def test_every_trainer_names_a_server_that_never_returns_and_the_job_resumes_from_its_save(run, undisturbed):
    settings = {"FLAGS_rpc_deadline": "3000"}
    fault = {"at": "server.push", "number": 4, "do": "kill"}
    job = run(faults={"server 1": fault}, settings=settings, restart=False)
    assert job.codes(["trainer 0", "trainer 1"]) == [75, 75]
    for name in ("trainer 0", "trainer 1"):
        assert f"server {job.endpoints[1]} did not answer" in job.processes[name].errors
        assert "resume from the last save; FLAGS_rpc_deadline (ms)" in job.processes[name].errors
    resume(job)
    assert Result(job.finish()) == undisturbed()
    assert job.processes["trainer 0"].said[1] == {"at": 3}


def resume(job):
    """Start every process again; servers load the last save."""
    job.kill("server 0", "server 1")
    for name in job.names:
        job.start(name)


@pytest.mark.obeys("start the job again from its last save, or set PADDLELIKE_RESUME_POLICY=rollback")
def test_without_rollback_a_restarted_server_ends_the_job_and_the_job_resumes_from_its_save(run, undisturbed):
    exit_policy = {"PADDLELIKE_RESUME_POLICY": "exit"}
    fault = {"at": "server.push", "number": 7, "do": "kill"}
    job = run(faults={"server 1": fault}, settings=exit_policy, restart=False)
    job.until_said("server 1", "exit")
    job.start("server 1")
    assert job.codes(["trainer 0", "trainer 1"]) == [75, 75]
    for name in ("trainer 0", "trainer 1"):
        assert f"server {job.endpoints[1]} was restarted" in job.processes[name].errors
        assert "start the job again from its last save, or set PADDLELIKE_RES" in job.processes[name].errors
    resume(job)
    assert Result(job.finish()) == undisturbed()
    assert job.processes["trainer 0"].said[1] == {"at": 6}
