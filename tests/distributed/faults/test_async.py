"""Asynchronous jobs: every update that was acknowledged is applied once, whatever happens to trainers."""

from __future__ import annotations

import signal

import pytest

pytestmark = pytest.mark.slow

STEPS = 15


def updates(job):
    """Return the number of updates on each server at its end, and the number of steps of all trainers."""
    ended = job.finish()
    steps = sum("done" in one for process in job.everyone for one in process.said)
    return [ended[f"server {index}"]["end"] for index in range(len(job.endpoints))], steps


@pytest.fixture
def start(run):
    return lambda **options: run(mode="async", every=0, steps=STEPS, **options)


def test_without_faults_every_update_is_applied(start):
    assert updates(start()) == ([2 * STEPS] * 2, 2 * STEPS)


@pytest.mark.parametrize("moment", ["server.push", "server.apply", "server.apply.done"])
def test_every_update_is_applied_once_when_a_server_hangs(moment, start):
    settings = {"FLAGS_rpc_deadline": "3000", "FLAGS_rpc_retry_times": "20"}  # a slow start is not a fault
    fault = {"at": moment, "number": 5, "do": "stop"}
    job = start(faults={"server 1": fault}, settings=settings, together=True)  # nobody joins a hung server
    hung = job.until_stopped("server 1")
    job.until_said("trainer 0", "failed", 1)  # a call to it has taken longer than it may
    hung.send(signal.SIGCONT)
    assert updates(job) == ([2 * STEPS] * 2, 2 * STEPS)


def test_every_update_is_applied_once_when_a_trainer_is_late(start):
    job = start(late=("trainer 1",))
    job.until_said("trainer 0", "done", 8)
    job.start("trainer 1")
    assert updates(job) == ([2 * STEPS] * 2, 2 * STEPS)


def test_every_update_is_applied_once_when_answers_are_lost(start):
    job = start(faults={"trainer 0": {"lose": 5}, "trainer 1": {"lose": 7}})
    assert updates(job) == ([2 * STEPS] * 2, 2 * STEPS)
    assert job.restarts == 0


@pytest.mark.parametrize("moment", ["trainer.push", "trainer.push.done", "trainer.pull"])
def test_a_killed_trainer_restarts_its_count_and_loses_nothing(moment, start):
    job = start(faults={"trainer 1": {"at": moment, "number": 6 if "push" in moment else None, "do": "kill"}})
    held, steps = updates(job)
    assert job.restarts == 1
    for count in held:  # of the step under way a server may hold the update, or not
        assert steps <= count <= steps + 1


@pytest.mark.parametrize(
    "moment", ["server.push", "server.apply.mid", "server.apply.done", "server.pull.done"]
)
def test_a_killed_server_continues_from_its_save_and_applies_nothing_twice(moment, run):
    number = {"number": 20} if moment.startswith("server.apply") else {"number": 9}
    number = {} if moment == "server.pull.done" else number
    fault = {"at": moment, "do": "kill"} | number
    job = run(mode="async", every=3, steps=STEPS, think=0.05, faults={"server 1": fault})
    ended = job.finish()
    assert job.restarts == 1
    assert ended["server 0"]["end"] == 2 * STEPS
    assert sorted(last for _, _, last in ended["server 0"]["updates"]) == [STEPS, STEPS]
    assert ended["server 1"]["end"] <= 2 * STEPS  # what came after the save is lost, and nothing twice


def kill_a_server(job):
    """Kill server 1 while both trainers train."""
    for name in ("trainer 0", "trainer 1"):
        if job.processes[name].last("done") is None:
            job.until_said(name, "done")
    job.kill("server 1")
    job.until_said("server 1", "exit")


def test_a_server_that_never_returns_is_named(start):
    job = start(think=0.3, settings={"FLAGS_rpc_deadline": "3000"}, restart=False)
    kill_a_server(job)
    assert job.codes(["trainer 0", "trainer 1"]) == [75, 75]
    for name in ("trainer 0", "trainer 1"):
        assert f"server {job.endpoints[1]} did not answer" in job.processes[name].errors


def test_without_rollback_a_restarted_server_ends_the_job(start):
    job = start(think=0.3, settings={"PADDLELIKE_RESUME_POLICY": "exit"}, restart=False)
    kill_a_server(job)
    job.start("server 1")
    assert job.codes(["trainer 0", "trainer 1"]) == [75, 75]
    for name in ("trainer 0", "trainer 1"):
        assert f"server {job.endpoints[1]} was restarted" in job.processes[name].errors
