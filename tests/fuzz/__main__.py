"""Fuzz every reader: ``python -m tests.fuzz --count 100000 --seed 0 [--target NAME] [--seconds N]``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from tests.fuzz.campaign import Outcome, replay, run_target
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Run the campaign that the command line asks for; 1 when there were faults."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Hostile files for every reader."
    )
    parser.add_argument("--count", type=int, default=100_000, help="inputs of all targets together")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other inputs")
    parser.add_argument(
        "--target", action="append", choices=sorted(TARGETS), help="only this one; may be repeated"
    )
    parser.add_argument("--seconds", type=float, help="stop after this time, however many inputs there were")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument(
        "--keep", type=Path, default=Path("fuzz-faults"), help="where inputs with a fault are put"
    )
    parser.add_argument("--replay", type=Path, help="run this one input of --target")
    given = parser.parse_args()
    chosen = [TARGETS[name] for name in given.target or TARGETS]
    if given.replay is not None:
        if len(chosen) != 1:
            parser.error("--replay needs one --target")
        return int(not isinstance(replay(chosen[0], given.replay.read_bytes()), bool))
    total = Outcome()
    weights = sum(target.weight for target in chosen)
    begin = time.monotonic()
    for target in chosen:
        share = target.weight / weights
        count = max(given.count * target.weight // weights, 1) + (target is chosen[-1]) * len(chosen)
        until = None if given.seconds is None else time.monotonic() + share * given.seconds
        outcome = _run(target, given, count if until is None else 1 << 40, until)
        total.add(outcome)
    print(f"fuzz: {total} ({time.monotonic() - begin:.0f} s, seed {given.seed})")
    return int(total.fault_count > 0)


def _run(target, given, count, until) -> Outcome:
    begin = time.monotonic()

    def progress(done: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{target.name}: {done:,}", end="", file=sys.stderr, flush=True)

    outcome = run_target(
        target, seed=given.seed, count=count, jobs=given.jobs, until=until, progress=progress
    )
    seconds = time.monotonic() - begin
    print(f"{target.name:16} {outcome} ({seconds:.0f} s)", flush=True)
    for found, count in outcome.faults.values():
        given.keep.mkdir(parents=True, exist_ok=True)
        path = given.keep / found.file_name
        path.write_bytes(found.data)
        print(f"  {count}x {found.what}\n     at {found.where or '?'}")
        print(f"     python -m tests.fuzz --target {target.name} --replay {path}", flush=True)
    return outcome


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))  # and end the workers on the way
    sys.exit(main())
