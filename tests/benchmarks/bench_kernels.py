"""Operators of detection and of sequences, beside Fluid 1.8.5: with numpy alone, and with compiled kernels.

    PADDLELIKE_FLUID185_PYTHON=... python -m tests.benchmarks.bench_kernels [--rounds 5] [--only nms,crf]

Each library is a process of its own that stays (``nets/operators.py``), on one thread, and they take turns
within a round. Shown are processor milliseconds of a run, the best of the rounds; the median ratio of the
compiled kernels to the others in the same round; and the sum of what was computed, as a check.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.benchmarks.nets.operators import OPERATORS

PROGRAM = Path(__file__).with_name("nets") / "operators.py"


def start(library: str) -> subprocess.Popen[str]:
    """Start a process that runs operators with ``fluid``, ``numpy`` or ``fast``."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    python = os.environ["PADDLELIKE_FLUID185_PYTHON"] if library == "fluid" else sys.executable
    if library != "fluid":
        env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        env["FLAGS_use_fast_kernels"] = str(int(library == "fast"))
    env |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [python, "-W", "ignore", str(PROGRAM), library],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=env,
        cwd="/tmp",
    )


def ask(process: subprocess.Popen[str], operator: str) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(operator + "\n")
    process.stdin.flush()
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(OPERATORS), help="operators, separated by commas")
    given = parser.parse_args()
    names = ["numpy", "fast"] + ["fluid"] * bool(os.environ.get("PADDLELIKE_FLUID185_PYTHON"))
    libraries = {name: start(name) for name in names}
    for operator in given.only.split(","):
        rounds = []
        for turn in range(given.rounds):
            order = names[turn % len(names) :] + names[: turn % len(names)]
            rounds.append({name: ask(libraries[name], operator) for name in order})
        print(f"\n{operator}")
        for name in names:
            times = [each[name]["cpu"] for each in rounds]
            ratio = statistics.median(each["fast"]["cpu"] / each[name]["cpu"] for each in rounds)
            told = "" if name == "fast" else f"fast / {name}: {ratio:.2f}"
            print(
                f"  {name:8}{min(times) * 1e3:10.3f} ms  sum {rounds[0][name]['sum']:.9g}  {told}", flush=True
            )
    for process in libraries.values():
        process.stdin.close()  # type: ignore[union-attr]
        process.wait(30)


if __name__ == "__main__":
    main()
