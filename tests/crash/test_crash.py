"""Whatever kills a saver, the old set or the new one is there, whole."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash import tracer
from tests.crash.models import MODELS
from tests.crash.networks import NETWORKS
from tests.crash.servers import SERVERS

ROOT = Path(__file__).parents[2]
SHORT = ["new", "shrinks", "journal-kept", "fluid-combined"]
MEMORY = Path("/dev/shm")  # a file system without a disk's waiting, where there is one


def run_harness(*arguments: str) -> str:
    """Run the harness in a process of its own, whose forks have no threads of the test's."""
    command = [sys.executable, "-m", "tests.crash.harness", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_a_save_killed_at_some_calls_leaves_the_old_or_the_new_files(tmp_path: Path) -> None:
    models = [argument for model in SHORT for argument in ("--model", model)]
    report = run_harness(*models, "--every", "60", "--times", "1", "--home", str(tmp_path))
    assert report.count("kills") == len(SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("model", [*MODELS, *NETWORKS, *SERVERS])
def test_a_save_killed_at_any_call_that_changes_files_leaves_the_old_or_the_new_files(model: str) -> None:
    home = ["--home", str(MEMORY)] if os.access(MEMORY, os.W_OK) else []
    report = run_harness("--model", model, "--seed", "1", "--times", "10", *home)
    only_one = " 0 old" in report or " 0 new" in report
    assert only_one == (model == "recovery"), report  # what is recovered is new after every kill


def test_the_tracer_kills_before_the_call(tmp_path: Path) -> None:
    reason = tracer.usable()
    if reason:
        pytest.skip(reason)

    def make() -> None:
        for number in range(5):
            (tmp_path / str(number)).mkdir()

    whole = tracer.kill_at(make, 1000)
    assert (whole.killed, whole.status) == (False, 0)
    assert whole.calls >= 5
    for number in range(5):
        (tmp_path / str(number)).rmdir()
    outcome = tracer.kill_at(make, whole.calls - 2)
    assert outcome.killed
    assert 0 < len(list(tmp_path.iterdir())) < 5


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of mkdir is x86-64's")
def test_a_system_call_wrongly_listed_as_harmless_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = tracer.usable()
    if reason:
        pytest.skip(reason)

    def make() -> None:
        for number in range(5):
            (tmp_path / str(number)).mkdir()
            (tmp_path / str(number)).stat()

    def state() -> list[Path]:
        return sorted(tmp_path.iterdir())

    whole = tracer.watched(make, state)
    assert whole.status == 0
    assert 5 <= whole.calls < whole.seen - 4
    for path in state():
        path.rmdir()
    mkdir = 83
    monkeypatch.setitem(tracer._READING, "x86_64", {*tracer._READING["x86_64"], mkdir})
    with pytest.raises(AssertionError, match="call 83 changed files"):
        tracer.watched(make, state)
