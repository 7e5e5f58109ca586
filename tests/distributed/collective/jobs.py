"""Starts workers that train by collectives, and reads what they report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from paddlelike.distributed.launch.processes_plan import free_endpoints

_SECONDS = 90


class Ended(NamedTuple):
    """A worker that has ended."""

    code: int
    reports: list[dict[str, Any]]
    errors: str


def run_workers(
    count: int,
    program: str,
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    lost: int | None = None,
) -> list[Ended]:
    """Run ``count`` workers to their ends; kill ``lost``, which is stopped, when the others have ended."""
    endpoints = ",".join(free_endpoints(count))
    command = [sys.executable, "-m", "tests.distributed.collective.programs", program, *arguments]
    base = {name: value for name, value in os.environ.items() if not name.startswith("PADDLE")}
    with ExitStack() as stack:
        workers = []
        for rank in range(count):
            own = {"PADDLE_TRAINER_ENDPOINTS": endpoints, "PADDLE_TRAINER_ID": str(rank)}
            own["FLAGS_selected_gpus"] = str(rank)
            worker = subprocess.Popen(
                command, env=base | own | dict(environ or {}), text=True, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )  # fmt: skip
            stack.callback(worker.wait)
            stack.callback(worker.kill)
            workers.append(worker)
        found: dict[int, Ended] = {}
        order = sorted(range(count), key=lambda rank: rank == lost)
        for rank in order:
            if rank == lost:
                workers[rank].kill()
            out, errors = workers[rank].communicate(timeout=_SECONDS)
            reports = [json.loads(line) for line in out.splitlines()]  # nothing else writes there
            found[rank] = Ended(workers[rank].returncode, reports, errors)
    return [found[rank] for rank in range(count)]


def find_reports(text: str) -> list[dict[str, Any]]:
    """Return what a worker has reported, one for each line of JSON."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
