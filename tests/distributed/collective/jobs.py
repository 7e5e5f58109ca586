"""Starts workers that train by collectives, and reads what they report."""

from __future__ import annotations

import atexit
import json
import os
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.distributed.jobs import free_endpoints
from tests.helpers.fork_server import Forked, start_fork_server

_SECONDS = 90
_IMPORTS = (
    "jax",
    "paddlelike.compiled.engine",
    "paddlelike.incubate.fleet.collective",
    "paddlelike.transpiler",
)


@cache
def find_server() -> str:
    """Return the address of a fork server that has imported JAX, which ends with this process."""
    stack = ExitStack()
    atexit.register(stack.close)
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    address, _ = stack.enter_context(start_fork_server(Path(folder) / "socket", imports=_IMPORTS))
    return address


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
    base = {name: value for name, value in os.environ.items() if not name.startswith("PADDLE")}
    base |= {"PROGRAM_OF_WORKER": json.dumps([program, *arguments]), **(environ or {})}
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(count))
        workers, outputs = [], []
        for rank in range(count):
            own = {"PADDLE_TRAINER_ENDPOINTS": endpoints, "PADDLE_TRAINER_ID": str(rank)}
            own["FLAGS_selected_gpus"] = str(rank)
            worker = Forked(find_server(), "tests.distributed.collective.programs", base | own)
            stack.callback(worker.close)
            workers.append(worker)
            outputs.append(pool.submit(worker.stdout.read))
        found: dict[int, Ended] = {}
        order = sorted(range(count), key=lambda rank: rank == lost)
        for rank in order:
            if rank == lost:
                workers[rank].kill()
            code = workers[rank].wait(_SECONDS)
            reports = [
                json.loads(line) for line in outputs[rank].result().splitlines()
            ]  # nothing else writes
            found[rank] = Ended(code, reports, workers[rank].errors)
    return [found[rank] for rank in range(count)]


def find_reports(text: str) -> list[dict[str, Any]]:
    """Return what a worker has reported, one for each line of JSON."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
