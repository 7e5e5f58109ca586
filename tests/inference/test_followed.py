"""A follower and its training under real signals: whole saves, in order, and the newest after a restart."""

from __future__ import annotations

import json
import random
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.helpers.fork_server import Forked
from tests.inference.following import TOKEN

pytestmark = pytest.mark.slow


class Job:
    """A training that saves all the time, and a follower that serves its saves."""

    def __init__(self, address: str, home: Path, stack: ExitStack) -> None:
        self._address, self._home, self._stack = address, home, stack
        self.answers = [0.0]
        self.train()

    def train(self) -> None:
        """Start the training, or start it again."""
        self.training = self._start("training")
        self.training.stdout.readline()

    def follow(self) -> None:
        """Start a follower."""
        self.follower = self._start("follower")
        self._url = self.follower.stdout.readline().strip().replace("/?", "/predict?")
        assert self._url.endswith(TOKEN), self.follower.errors

    def _start(self, role: str) -> Forked:
        given = {"ROLE": role, "HOME": str(self._home)}
        return self._stack.enter_context(closing(Forked(self._address, "tests.inference.following", given)))

    def ask(self, times: int = 1) -> None:
        """Find that answers are of one save each, and that none is older than the one before."""
        body = json.dumps({"inputs": {"ids": [[0], [7], [2999]]}}).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})
        for _ in range(times):
            with urllib.request.urlopen(request, timeout=60) as answer:
                (output,) = json.load(answer)["outputs"].values()
            (found,) = {value for row in output["values"] for value in row}
            assert found >= self.answers[-1]
            self.answers.append(found)

    def ask_until_newer(self) -> None:
        """Find that a later save is served."""
        before, end = self.answers[-1], time.monotonic() + 60
        while self.answers[-1] == before and time.monotonic() < end:
            self.ask()
        assert self.answers[-1] > before


@pytest.fixture
def job(fork_server: str, tmp_path: Path) -> Iterator[Job]:
    with ExitStack() as stack:
        yield Job(fork_server, tmp_path, stack)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP])
def test_a_follower_that_is_ended_or_stopped_serves_the_newest_save_again(
    job: Job, how: signal.Signals
) -> None:
    dice = random.Random(how)
    job.follow()
    for _ in range(2):
        job.ask(2)
        time.sleep(dice.random() / 4)  # at any moment of a load or an answer
        job.follower.send_signal(how)
        if how == signal.SIGSTOP:
            time.sleep(0.3)
            job.follower.send_signal(signal.SIGCONT)
        else:
            assert job.follower.wait(60) in (0, -how), job.follower.errors
            job.follow()
        job.ask_until_newer()
    assert job.training.poll() is None, job.training.errors


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP])
def test_a_training_that_is_ended_or_stopped_leaves_its_follower_a_whole_save(
    job: Job, how: signal.Signals
) -> None:
    dice = random.Random(how)
    job.follow()
    for _ in range(2):
        job.ask_until_newer()
        time.sleep(dice.random() / 4)  # at any moment of a save
        job.training.send_signal(how)
        if how == signal.SIGSTOP:
            job.ask(3)
            job.training.send_signal(signal.SIGCONT)
        else:
            job.training.wait(60)
            job.ask(3)
            job.train()
        job.ask_until_newer()
    assert job.follower.poll() is None, job.follower.errors
