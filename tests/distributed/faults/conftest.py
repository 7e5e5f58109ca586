"""The reference results: of jobs without faults, one of each kind; and fixtures that start jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.faults.jobs import Job


class Result:
    """The result of a job: the rows of every variable on its server, the parameters of trainers."""

    def __init__(self, said: dict[str, dict[str, Any]]) -> None:
        self.rows = {key: crc for one in said.values() for key, crc in one.get("rows", {}).items()}
        self.parameters = {one["parameters"] for one in said.values() if "parameters" in one}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Result({self.rows}, {self.parameters})"


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, fork_server: str) -> Callable[..., Result]:
    """Return a function from job options to the result of such a job without faults; each runs once."""
    results: dict[str, Result] = {}

    def run_undisturbed(**options: Any) -> Result:
        key = repr(sorted(options.items()))
        if key not in results:
            with Job(tmp_path_factory.mktemp("undisturbed"), fork_server, **options) as job:
                results[key] = Result(job.finish())
                assert job.restarts == 0, job.describe()
        return results[key]

    return run_undisturbed


@pytest.fixture
def run(tmp_path: Path, fork_server: str) -> Iterator[Callable[..., Job]]:
    """Return a function that starts a job; its processes are killed at the end."""
    jobs: list[Job] = []

    def start(**options: Any) -> Job:
        home = tmp_path / str(len(jobs))
        home.mkdir()
        jobs.append(Job(home, fork_server, **options))
        return jobs[-1]

    try:
        yield start
    finally:
        for job in jobs:
            job.__exit__()
