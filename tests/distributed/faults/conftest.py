"""The job that nothing happens to, once for each kind of it: what every other one must end with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.faults.jobs import Job


class Ends:
    """What a job ended with: the rows of every variable on its server, the parameters of trainers."""

    def __init__(self, said: dict[str, dict[str, Any]]) -> None:
        self.rows = {key: crc for one in said.values() for key, crc in one.get("rows", {}).items()}
        self.parameters = {one["parameters"] for one in said.values() if "parameters" in one}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ends) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Ends({self.rows}, {self.parameters})"


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the process that all others are forked from."""
    with opened(tmp_path_factory.mktemp("nursery") / "door") as (address, _):
        yield address


@contextmanager
def opened(door: Path, *within: str) -> Iterator[tuple[str, int]]:
    """A nursery's address and process id; ``within``: the command that is to run it."""
    limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    child = subprocess.Popen(
        [*within, sys.executable, "-m", "tests.distributed.faults.nursery", str(door)],
        cwd=Path(__file__).parents[3],
        env=os.environ | limits,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        with child.stdout as said:
            assert said.readline() == b"ready\n"
            yield str(door), child.pid
    finally:
        child.kill()
        child.wait()


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, nursery: str) -> Callable[..., Ends]:
    """``undisturbed(network=...)``: the ends of a job without faults; made once."""
    made: dict[str, Ends] = {}

    def ends(**options: Any) -> Ends:
        key = repr(sorted(options.items()))
        if key not in made:
            with Job(tmp_path_factory.mktemp("undisturbed"), nursery, **options) as job:
                made[key] = Ends(job.finish())
                assert job.restarts == 0, job.describe()
        return made[key]

    return ends


@pytest.fixture
def run(tmp_path: Path, nursery: str) -> Iterator[Callable[..., Job]]:
    """Starts jobs; whatever is left of them is killed."""
    jobs: list[Job] = []

    def start(**options: Any) -> Job:
        home = tmp_path / str(len(jobs))
        home.mkdir()
        jobs.append(Job(home, nursery, **options))
        return jobs[-1]

    try:
        yield start
    finally:
        for job in jobs:
            job.__exit__()
