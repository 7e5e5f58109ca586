"""Compare the paths of the executor: ``python -m tests.fuzz.training --first 0 --count 200 --path jax``."""

from __future__ import annotations

import argparse
import os
import sys

from tests.fuzz.training.compare import find_differences
from tests.fuzz.training.paths import PATHS, TOLERANCES
from tests.fuzz.training.scenario import run_scenario


def main() -> int:
    """Run the scenarios that the command line asks for; 1 when any differ or fail."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.training", description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=100, help="how many seeds")
    parser.add_argument("--actions", type=int, default=6, help="actions of a scenario")
    parser.add_argument(
        "--path", action="append", choices=PATHS, help="compared with `plan`; may be repeated"
    )
    parser.add_argument("--devices", type=int, default=0, help="how many some of the runs take, CPUs of JAX")
    given = parser.parse_args()
    if given.devices:  # before JAX is imported
        count = f"--xla_force_host_platform_device_count={given.devices}"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {count}"
    paths = ["plan", *(given.path or ["plain", "eager", "unrolled", "profiled"])]
    faulty = 0
    for seed in range(given.first, given.first + given.count):
        try:
            records = run_scenario(seed, paths, actions=given.actions, devices=given.devices)
            lines = [
                f"{path}: {line}"
                for path in paths
                for line in find_differences(records["plan"], records[path], TOLERANCES[path])
            ]
        except Exception as error:
            lines = [f"{type(error).__name__}: {error}"]
        faulty += bool(lines)
        for line in lines[:3]:
            print(f"seed {seed}: {line}", flush=True)
    print(f"{given.count} seeds, {faulty} with a fault")
    return int(faulty > 0)


if __name__ == "__main__":
    sys.exit(main())
