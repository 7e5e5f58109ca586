"""Whole jobs that are lost and resume from their save, also on another number of servers; random kills."""

from __future__ import annotations

import random
import signal
import time

import pytest

from tests.distributed.faults.conftest import Result

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_a_job_killed_as_a_whole_resumes_from_its_save(servers, run, undisturbed, tmp_path):
    first = run(restart=False)
    first.until_said("trainer 0", "at", 7)
    first.kill(*first.names)
    first.__exit__()
    second = run(servers=servers, settings={"PADDLELIKE_CHECKPOINT_DIR": str(first.saves)})
    ended = Result(second.finish())
    assert ended.parameters == undisturbed().parameters
    if servers == 2:
        assert ended == undisturbed()
    for number in range(2):
        begun = [one["at"] for one in second.processes[f"trainer {number}"].said if "at" in one]
        assert begun[0] == 6


def test_a_job_of_three_servers_and_three_trainers_survives_the_loss_of_one_of_each(run, undisturbed):
    size = {"servers": 3, "trainers": 3}
    faults = {
        "server 2": {"at": "server.apply.mid", "number": 5, "do": "kill"},
        "trainer 1": {"at": "trainer.commit", "number": 5, "server": 1, "do": "kill"},
    }
    job = run(faults=faults, **size)
    assert Result(job.finish()) == undisturbed(**size)
    assert job.restarts >= 2


@pytest.mark.parametrize(
    ("seed", "signals"),
    [
        (1, [signal.SIGKILL, signal.SIGSTOP]),
        (2, [signal.SIGKILL, signal.SIGSTOP]),
        (3, [signal.SIGTERM, signal.SIGINT, signal.SIGSTOP]),
        (4, [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGSTOP]),
        (5, [signal.SIGTERM, signal.SIGINT]),
    ],
)
def test_a_job_ends_with_the_same_bits_after_random_signals(seed, signals, run, undisturbed):
    """Signals to anybody at any time; the seed chooses them, not their timing."""
    choose = random.Random(seed)
    options = {"steps": 60, "every": 5, "think": 0.02}
    expected = undisturbed(**options)
    job = run(**options)
    job.until_said("trainer 0", "done", 2)
    for _ in range(6):
        if (job.processes["trainer 0"].last("done") or 0) > 40:
            break  # whoever has left cannot be called back
        name = choose.choice(job.names)
        process = job.processes[name]
        process.send(number := choose.choice(signals))
        if number == signal.SIGSTOP:
            time.sleep(choose.random() * 1.5)
            process.send(signal.SIGCONT)
        end = time.monotonic() + choose.uniform(0.2, 1.0)
        try:
            job.until(lambda *_, end=end: time.monotonic() > end, 1.0)
        except AssertionError:
            continue  # nobody said anything: all wait for who was hurt
    assert Result(job.finish(150)) == expected, job.describe()
