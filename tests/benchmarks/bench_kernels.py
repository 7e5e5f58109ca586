"""Operators of detection and of sequences, beside Fluid 1.8.5: with numpy alone, and with compiled kernels.

    PADDLELIKE_FLUID185_PYTHON=... python -m tests.benchmarks.bench_kernels [--rounds 5] [--only nms,iou]

Each library is a process of its own that stays (``nets/operators.py``), on one thread, and they take turns
within a round. Shown are processor milliseconds of a run, the best of the rounds; the median ratio of the
compiled kernels to the others in the same round; and the sum of what was computed, as a check.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys

from tests.benchmarks.bench_nets import Library
from tests.benchmarks.nets.operators import OPERATORS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(OPERATORS), help="operators, separated by commas")
    given = parser.parse_args()
    names = ["numpy", "fast"] + ["fluid"] * bool(os.environ.get("PADDLELIKE_FLUID185_PYTHON"))
    pythons = {"fluid": os.environ.get("PADDLELIKE_FLUID185_PYTHON")}
    libraries = {
        name: Library(name, pythons.get(name) or sys.executable, "nets/operators.py") for name in names
    }
    for operator in given.only.split(","):
        rounds = []
        for turn in range(given.rounds):
            order = names[turn % len(names) :] + names[: turn % len(names)]
            rounds.append({name: libraries[name].ask(operator) for name in order})
        print(f"\n{operator}")
        for name in names:
            times = [each[name]["cpu"] for each in rounds]
            ratio = statistics.median(each["fast"]["cpu"] / each[name]["cpu"] for each in rounds)
            told = "" if name == "fast" else f"fast / {name}: {ratio:.2f}"
            print(
                f"  {name:8}{min(times) * 1e3:10.3f} ms  sum {rounds[0][name]['sum']:.9g}  {told}", flush=True
            )
    for library in libraries.values():
        library.close()


if __name__ == "__main__":
    main()
