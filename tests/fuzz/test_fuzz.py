"""A short campaign against every reader, and the fuzzer itself: what it must notice, it notices."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from paddlelike.errors import FormatError
from tests.fuzz.campaign import make, run_one, run_target
from tests.fuzz.guard import Guard, watch_calls
from tests.fuzz.readers import Target
from tests.fuzz.targets import TARGETS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_inputs_raise_only_our_errors_within_limits(name: str) -> None:
    target = TARGETS[name]
    outcome = run_target(target, seed=1, count=50 * target.weight, jobs=2, until=None, progress=str)
    assert [(found.what, found.where, count) for found, count in outcome.faults.values()] == []
    assert outcome.inputs == 50 * target.weight
    assert outcome.refused or name == "explain"


@pytest.mark.parametrize("name", TARGETS)
def test_a_fuzz_input_depends_only_on_the_seed_and_its_number(name: str) -> None:
    first = [make(TARGETS[name], 7, number) for number in range(30)]
    assert [make(TARGETS[name], 7, number) for number in reversed(range(30))] == first[::-1]
    assert len(set(first)) > 10


def _spins(data: bytes, root: Path) -> None:
    end = time.process_time() + 30
    while time.process_time() < end:
        pass


def _waits(data: bytes, root: Path) -> None:
    ends = os.pipe()
    try:
        os.read(ends[0], 1)  # nobody writes
    finally:
        for end in ends:
            os.close(end)


def _takes(data: bytes, root: Path) -> None:
    bytearray(50 << 20)


def _runs(data: bytes, root: Path) -> None:
    try:
        eval("1 + 1")
    except FormatError:
        pass


def _writes_here(data: bytes, root: Path) -> None:
    (root / "new").write_bytes(b"")


def _reads_there(data: bytes, root: Path) -> None:
    Path(__file__).read_bytes()


def _wrong_error(data: bytes, root: Path) -> None:
    raise KeyError(data)


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (_spins, "it takes more than 0.2 seconds"),
        (_waits, "of waiting"),
        (_takes, "bytes of memory at the peak, 1000 are allowed"),
        (_runs, "compile"),
        (_writes_here, "is opened for writing"),
        (_reads_there, "is opened"),
        (_wrong_error, "KeyError"),
    ],
)
def test_a_fuzz_target_that_breaks_a_promise_is_reported(
    read, what: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("tests.fuzz.guard._WAITING", 0.3)
    target = Target("bad", lambda rng: b"", read, memory=0, base=1000 if read is _takes else 1 << 20)
    with watch_calls():
        found = run_one(target, Guard(tmp_path, seconds=0.2), b"x")
    assert not isinstance(found, bool)
    assert what in found.what


def _digits(rng: Random) -> bytes:
    return str(rng.getrandbits(60)).encode()


def test_a_crashed_fuzz_process_is_reported_and_the_others_continue() -> None:
    made = [make(Target("dies", _digits, lambda data, root: None), 0, number) for number in range(40)]
    deadly = set(made[::9])

    def dies(data: bytes, root: Path) -> None:
        if data in deadly:
            os._exit(3)
        if data in made[::2]:
            raise FormatError("even")

    outcome = run_target(Target("dies", _digits, dies), seed=0, count=40, jobs=2, until=None, progress=str)
    assert (outcome.inputs, outcome.fault_count) == (40, len(deadly))
    assert {(found.data in deadly, found.what) for found, _ in outcome.faults.values()} == {
        (True, "the process ended with 3")
    }


def test_the_fuzz_command_prints_totals(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.fuzz",
        "--count",
        "60",
        "--target",
        "explain",
        "--target",
        "schema",
    ]
    done = subprocess.run([*command, "--keep", str(tmp_path)], capture_output=True, text=True, check=False)
    last = done.stdout.splitlines()[-1]
    assert done.returncode == 0, done.stdout + done.stderr
    assert last.startswith("fuzz: 62 inputs, ")
    assert " 0 faults" in last
