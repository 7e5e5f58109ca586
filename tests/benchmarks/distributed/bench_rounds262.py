"""Sparse rounds beside the servers of Paddle 2.6.2: python -m tests.benchmarks.distributed.bench_rounds262.

PADDLELIKE_PADDLE262_PYTHON names the interpreter. Two servers and a trainer that looks up, and updates by SGD,
IDS rows of width 16 a step; both systems by turns, medians, and of ratios within a turn. Paddle 2.6.2 runs
asynchronously alone: a synchronous program of it ends in its send_barrier.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from tests.distributed.jobs import free_endpoints

_JOB = Path(__file__).with_name("rounds262.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids", type=int, default=5000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=3)
    given = parser.parse_args()
    runs = [("real", "async"), ("ours", "async"), ("ours", "sync")]
    found = [[_run(*run, given.ids, given.steps) for run in runs] for _ in range(given.pairs)]
    for at, (kind, mode) in enumerate(runs):
        rate, used, *ratios = (
            statistics.median(values)
            for values in zip(
                *(
                    (
                        given.steps / one[at]["seconds"],
                        1000 * one[at]["processor"] / given.steps,
                        one[at]["seconds"] / one[0]["seconds"],
                        one[at]["processor"] / one[0]["processor"],
                    )
                    for one in found
                ),
                strict=True,
            )
        )
        text = f"{kind} {mode}: {rate:.1f} steps/s, {used:.2f} ms of the trainer's processor a step"
        print(f"{text}; of Paddle's: {ratios[0]:.2f} of the time, {ratios[1]:.2f} of the processor")


def _run(kind: str, mode: str, ids: int, steps: int) -> dict[str, float]:
    """Run a job; return what its trainer printed."""
    ends = free_endpoints(3)
    common = os.environ | {
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(ends[:2]), "PADDLE_TRAINERS_NUM": "1", "POD_IP": "127.0.0.1",
        "PADDLE_TRAINER_ENDPOINTS": ends[2], "PADDLE_TRAINER_ID": "0", "OMP_NUM_THREADS": "1", "GLOG_v": "0",
    }  # fmt: skip
    if kind == "real":
        common["PYTHONPATH"] = os.environ.get("PADDLELIKE_PADDLE262_PATH", "")
    python = os.environ["PADDLELIKE_PADDLE262_PYTHON"] if kind == "real" else sys.executable
    command = [python, str(_JOB), kind, mode, str(ids), str(steps)]
    servers = []
    try:
        for end in ends[:2]:
            host, _, port = end.rpartition(":")
            role = common | {"TRAINING_ROLE": "PSERVER", "PADDLE_PORT": port, "POD_IP": host}
            servers.append(
                subprocess.Popen(command, env=role, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
        role = common | {"TRAINING_ROLE": "TRAINER", "PADDLE_PORT": ends[2].rpartition(":")[2]}
        said = subprocess.run(command, env=role, capture_output=True, text=True, timeout=300, check=False)
        (line,) = [line for line in said.stdout.splitlines() if line.startswith('{"steps"')] or [
            said.stderr[-800:]
        ]
        found: dict[str, float] = json.loads(line)
        return found
    finally:
        for server in servers:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
