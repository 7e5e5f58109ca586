"""Whatever kills a saver, the old set or the new one is there, whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash import tracer

ROOT = Path(__file__).parents[2]
SHORT = ["new", "foreign", "shrinks", "journal-kept", "journal-shrinks", "fluid-combined"]
ALL = [
    "new", "over", "foreign", "kept", "one", "shrinks", "journal", "journal-kept", "journal-shrinks",
    "undo", "undo-shrinks", "recovery", "power", "spare", "spare-shrinks",
    "fluid-new", "fluid-over", "fluid-alone", "fluid-kept", "fluid-power", "fluid-thread", "fluid-spare",
    "fluid-combined", "fluid-export", "fluid-pickles", "fluid-journal",
]  # fmt: skip


def harness(*arguments: str) -> str:
    """Run the harness in a process of its own, whose forks have no threads of the test's."""
    command = [sys.executable, "-m", "tests.crash.harness", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("model", SHORT)
def test_killed_at_some_calls(model: str) -> None:
    said = harness("--model", model, "--every", "29", "--times", "3")
    assert "kills" in said


@pytest.mark.slow
@pytest.mark.parametrize("model", ALL)
def test_killed_at_every_call(model: str) -> None:
    said = harness("--model", model, "--seed", "1", "--times", "30")
    assert model in ("undo", "undo-shrinks", "recovery") or not (" 0 old" in said or " 0 new" in said)


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
