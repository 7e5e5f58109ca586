"""A trainer that dies, hangs, comes late or comes twice: the job ends with the same bits."""

from __future__ import annotations

import signal

import pytest

from tests.distributed.faults.conftest import Result

pytestmark = pytest.mark.slow

KILL_AT = {
    "it computes": {"at": "trainer.push", "number": 4},
    "one server has its push": {"at": "trainer.push", "number": 4, "server": 1},
    "its push is under way": {"at": "trainer.push.mid", "number": 4},
    "every server has its push": {"at": "trainer.commit", "number": 4},
    "it has committed to one server": {"at": "trainer.commit", "number": 4, "server": 1},
    "the round is applied": {"at": "trainer.commit.done", "number": 4},
    "it joins": {"at": "trainer.pull"},
    "it leaves": {"at": "trainer.complete", "server": 1},
}


@pytest.mark.parametrize("moment", KILL_AT)
def test_a_job_gives_the_same_bits_when_a_trainer_is_killed_at_any_moment(moment, run, undisturbed):
    # Servers that all trainers have left wait that long for one that died before it left the others.
    job = run(faults={"trainer 1": KILL_AT[moment] | {"do": "kill"}}, settings={"PADDLELIKE_LEASE": "60"})
    assert Result(job.finish()) == undisturbed()
    assert job.restarts >= 1


@pytest.mark.parametrize(
    "moment", [{"at": "trainer.pull", "number": 6}, {"at": "trainer.pull.done", "number": 6}]
)
def test_a_job_survives_trainer_0_being_killed_while_it_saves(moment, run, undisturbed):
    job = run(faults={"trainer 0": moment | {"do": "kill"}})
    job.until_said("trainer 0", "exit")
    said = [one["saved"] for one in job.everyone[2].said if "saved" in one]
    assert said == [3]
    assert Result(job.finish()) == undisturbed()
    assert job.processes["trainer 0"].last("saved") == 9


def test_a_trainer_lost_while_leaving_delays_no_server(run, undisturbed):
    job = run(faults={"trainer 1": {"at": "trainer.leave", "server": 1, "do": "kill"}}, restart=False)
    assert job.codes(["server 0", "server 1", "trainer 0"]) == [0, 0, 0]
    assert Result(job.ends()).rows == undisturbed().rows


def test_a_job_without_rollback_starts_again_when_a_trainer_is_killed(run, undisturbed):
    fault = {"at": "trainer.commit", "number": 4, "do": "kill"}
    job = run(faults={"trainer 1": fault}, settings={"PADDLELIKE_RESUME_POLICY": "exit"})
    assert Result(job.finish()) == undisturbed()
    assert job.restarts == 1


def test_a_job_ends_with_the_same_bits_when_every_trainer_is_killed(run, undisturbed):
    job = run(
        faults={
            "trainer 0": {"at": "trainer.commit", "number": 5, "do": "kill"},
            "trainer 1": {"at": "trainer.push.mid", "number": 5, "do": "kill"},
        }
    )
    assert Result(job.finish()) == undisturbed()


@pytest.mark.parametrize("moment", ["trainer.push", "trainer.push.mid", "trainer.commit"])
def test_the_job_waits_for_a_trainer_that_hangs_in_a_round(moment, run, undisturbed):
    job = run(faults={"trainer 1": {"at": moment, "number": 4, "do": "stop"}})
    hung = job.until_stopped("trainer 1")
    job.until_said("trainer 0", "silent", [1])
    hung.send(signal.SIGCONT)
    assert Result(job.finish()) == undisturbed()
    assert job.restarts == 0


def test_the_job_waits_for_a_late_trainer(run, undisturbed):
    job = run(late=("trainer 1",))
    job.until_said("trainer 0", "missing", [1])
    job.start("trainer 1")
    assert Result(job.finish()) == undisturbed()


@pytest.mark.obeys("two processes have this trainer id; the one that started later continues")
def test_the_older_of_two_processes_with_one_id_ends(run, undisturbed):
    job = run(think=0.2)
    job.until_said("trainer 1", "done", 2)
    older = job.processes["trainer 1"]
    job.start("trainer 1")
    assert Result(job.finish()) == undisturbed()
    assert job.code_of(older) == 75
    assert "another process has taken its place" in older.errors
    assert "two processes have this trainer id; the one that started later continues" in older.errors


def test_a_hung_trainer_that_was_replaced_is_fenced_when_it_wakes(run, undisturbed):
    job = run(faults={"trainer 1": {"at": "trainer.commit", "number": 4, "do": "stop"}})
    older = job.until_stopped("trainer 1")
    job.start("trainer 1")
    job.until_said("trainer 1", "done", 7)
    older.send(signal.SIGCONT)
    assert Result(job.finish()) == undisturbed()
    assert job.code_of(older) == 75


@pytest.mark.obeys(
    "resume from the last save; FLAGS_worker_update_interval_secs is how long trainers wait",
    "start the job again from its last save; see FLAGS_worker_update_interval_secs",
)
def test_a_trainer_that_never_returns_is_named_and_the_job_resumes_from_its_save(run, undisturbed):
    settings = {"FLAGS_worker_update_interval_secs": "5", "PADDLELIKE_LEASE": "1"}
    fault = {"at": "trainer.push", "number": 4, "do": "kill"}
    job = run(faults={"trainer 1": fault}, settings=settings, restart=False)
    assert job.codes(["trainer 0", "server 0", "server 1"]) == [75, 75, 75]
    errors = job.processes["trainer 0"].errors
    assert "waits for trainers [1]" in errors
    assert "no sign of life from [1]" in errors
    assert "resume from the last save; FLAGS_worker_update_interval_secs is how long" in errors
    for name in ("server 0", "server 1"):
        assert "start the job again from its last save; see FLAGS_wor" in job.processes[name].errors
    for name in job.names:
        job.start(name)
    assert Result(job.finish()) == undisturbed()


def test_lost_answers_are_requested_again(run, undisturbed):
    job = run(faults={"trainer 0": {"lose": 5}, "trainer 1": {"lose": 7}})
    assert Result(job.finish()) == undisturbed()
    assert job.restarts == 0
