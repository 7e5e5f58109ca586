"""The live view: rates between looks, servers that do not answer, what workers said last."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from paddlelike.distributed.progress.render import last_lines, plain_line
from paddlelike.distributed.progress.watch import ServerView, Watch
from paddlelike.distributed.wire import Server
from tests.distributed.jobs import free_endpoints

PROJECT = Path(__file__).parents[3]


class Status:
    """A server's own words, as the test wants them."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}

    def begin(self, head: dict[str, Any]) -> None:
        return None

    def end(self, head: dict[str, Any], receiver: None) -> tuple[dict[str, Any], Iterable[Any]]:
        return self.said, ()


def test_rates_are_counts_per_second_between_two_polls() -> None:
    status, now = Status(), [100.0]
    (endpoint,) = free_endpoints(1)
    status.said = {"rounds": 10, "bytes_in": 1000, "bytes_out": 500, "silent": [1]}
    with Server(endpoint, {"Status": status}), Watch([endpoint], clock=lambda: now[0]) as watch:
        assert watch.look() == [ServerView(endpoint, True, rounds=10, silent=(1,))]
        status.said = {"rounds": 30, "bytes_in": 5000, "bytes_out": 1500, "silent": []}
        now[0] += 4
        assert watch.look() == [ServerView(endpoint, True, 30, rate=5.0, received=1000.0, sent=250.0)]
        status.said = {"rounds": 2, "bytes_in": 10, "bytes_out": 10, "silent": []}  # it was started again
        now[0] += 1
        (view,) = watch.look()
        assert (view.rounds, view.rate, view.received, view.sent) == (2, 0.0, 0.0, 0.0)


def test_a_server_without_an_answer_is_shown_as_silent() -> None:
    (endpoint,) = free_endpoints(1)
    with Watch([endpoint]) as watch:
        assert watch.look() == [ServerView(endpoint, answers=False)]
    assert plain_line([ServerView(endpoint, answers=False)], {}) == f"{endpoint}: does not answer"


def test_a_server_ended_by_the_launcher_is_not_shown_as_silent() -> None:
    (endpoint,) = free_endpoints(1)
    status, codes = Status(), dict[str, int | None]()
    status.said = {"rounds": 1, "bytes_in": 0, "bytes_out": 0, "silent": []}
    with Watch([endpoint], codes=codes) as watch:

        def state() -> str:
            (view,) = watch.look()
            return "answers" if view.answers else view.state

        codes[endpoint] = None
        assert [state(), state()] == ["is starting"] * 2
        with Server(endpoint, {"Status": status}):
            assert until_state(state, "answers")
        assert [state(), state()] == ["has not answered yet", "does not answer"]  # it hangs, or it was lost
        codes[endpoint] = 0
        assert state() == "has ended"
        codes[endpoint] = None  # it was started again
        assert state() == "is starting"
        codes[endpoint] = -9
        assert state() == "has ended with code -9"


def until_state(state: Callable[[], str], wanted: str) -> bool:
    """Look until a server is in a state: gRPC tries a lost connection again after a moment."""
    end = time.monotonic() + 60
    while state() != wanted:
        assert time.monotonic() < end
        time.sleep(0.05)
    return True


def test_trainers_that_are_silent_are_named() -> None:
    server = ServerView("a:1", True, rounds=3, silent=(0, 2))
    assert plain_line([server], {}).endswith("silent: trainers [0, 2]")


def test_the_last_line_of_the_log_of_each_worker_is_shown(tmp_path: Path) -> None:
    (tmp_path / "workerlog.0").write_text("step 1: loss 0.7\nstep 2: loss 0.6\n\n")
    (tmp_path / "workerlog.10").write_text("x" * 100_000 + "\nstep 9: loss 0.1")
    (tmp_path / "workerlog.2").write_bytes(b"\xff\xfe\n")
    (tmp_path / "workerlog.3").write_text("")
    (tmp_path / "serverlog.0").write_text("serving\n")
    assert last_lines(tmp_path) == {
        "worker 0": "step 2: loss 0.6",
        "worker 2": "\ufffd\ufffd",
        "worker 3": "",
        "worker 10": "step 9: loss 0.1",
    }


@pytest.mark.slow
def test_messages_are_passed_on_until_they_end(tmp_path: Path) -> None:
    (endpoint,) = free_endpoints(1)
    (tmp_path / "workerlog.0").write_text("loss 0.5\n")
    command = [sys.executable, "-m", "paddlelike.distributed.progress", "--messages", "--every", "0.1"]
    done = subprocess.run(
        [*command, "--servers", endpoint, "--log_dir", str(tmp_path)],
        input="worker 1 was killed\nrestart 1 of 3\n",
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lines = done.stderr.splitlines()
    assert lines[0] == f"{endpoint}: does not answer | worker 0: loss 0.5"
    assert [line for line in lines if "does not answer" not in line] == [
        "worker 1 was killed",
        "restart 1 of 3",
    ]


JOB = """
import os, sys, time
from paddlelike.distributed.wire import Server
class Status:
    def begin(self, head):
        return None
    def end(self, head, receiver):
        return {"rounds": 3, "bytes_in": 0, "bytes_out": 0, "silent": []}, ()
def until(path):
    while not os.path.exists(path):
        time.sleep(0.05)
if os.environ["TRAINING_ROLE"] == "PSERVER":
    with Server(os.environ["PADDLE_CURRENT_ENDPOINT"], {"Status": Status()}):
        until("trained")
else:
    until("evaluated")
"""


@pytest.mark.slow
def test_a_successful_job_ends_without_reports_of_silent_servers(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(JOB)
    command = [sys.executable, "-m", "paddlelike.distributed.launch", "--progress", "--server_num=2"]
    environment = os.environ | {"PYTHONPATH": str(PROJECT)}
    lines = []
    with subprocess.Popen(
        [*command, "train.py"], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as launcher:
        assert launcher.stderr is not None
        for line in launcher.stderr:
            lines.append(line)
            if line.count("round 3") == 2:
                (tmp_path / "trained").touch()  # the servers end, as they do when all trainers have left
            if line.count("has ended") == 2:
                (tmp_path / "evaluated").touch()
    assert launcher.returncode == 0, lines
    assert (tmp_path / "evaluated").exists(), lines
    assert "does not answer" not in "".join(lines)
