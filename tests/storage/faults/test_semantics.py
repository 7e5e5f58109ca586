"""Several machines save into one directory without flock, exchange and, mostly, hard links."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.storage.faults.semantics import LEASE

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[3]


def start(home: Path, host: str, seconds: float, *semantics: str) -> subprocess.Popen[str]:
    module = "tests.storage.faults.semantics"
    command = [sys.executable, "-m", module, str(home), host, str(seconds), *semantics]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)


def check_counts(workers: list[subprocess.Popen[str]]) -> None:
    for worker in workers:
        counts = json.loads(worker.communicate()[0])
        assert set(counts) - {"stalled"} == {"saved", "loaded"}, counts


@pytest.mark.parametrize(
    "semantics", [("links",), (), ("slow", "late")], ids=lambda words: "-".join(words) or "plain"
)
def test_only_one_saver_holds_the_lock(semantics: tuple[str, ...], tmp_path: Path) -> None:
    workers = [start(tmp_path, f"host-{index % 2}", 5.0, *semantics) for index in range(4)]
    check_counts(workers)


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped for longer than the lease"]
)
def test_the_lease_of_a_silent_saver_expires(how: signal.Signals, tmp_path: Path) -> None:
    dice = random.Random(int(how))
    steady = [start(tmp_path, f"host-{index}", 10.0, "late") for index in range(2)]
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        victim = start(tmp_path, "host-2", 60)
        time.sleep(2 + dice.random())
        os.kill(victim.pid, how)
        if how == signal.SIGSTOP:
            time.sleep(2.5 * LEASE)
            os.kill(victim.pid, signal.SIGCONT)
            time.sleep(0.5)
            victim.kill()
        victim.wait()
        assert victim.stdout is not None
        victim.stdout.close()
    check_counts(steady)
