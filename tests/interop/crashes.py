"""Real Paddle reads every directory as a killed saver left it: ``python -m tests.interop.crashes``.

PADDLELIKE_FLUID185_PYTHON names the interpreter that has Paddle. It reads in one process that lives through
all kills, before anything of ours has looked at the directory: all old or all new is asked for, without a
journal being followed. Where a commit has several steps, the table says how many kills left a mix; there our
own next load decides.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.crash import tracer
from tests.crash.harness import run
from tests.crash.models import Model
from tests.crash.networks import NETWORKS
from tests.interop.real import DRIVERS

__all__ = ["Reader", "main", "read_after_kills", "reader"]

VARIABLE = "PADDLELIKE_FLUID185_PYTHON"


class Reader:
    """The process with real Paddle, and what it found, counted."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []

    def look(self, model: Model, place: Path, when: str) -> None:
        """Let Paddle read what is there."""
        if not place.exists():
            assert model.fresh, f"{when}: there is nothing for Paddle to read"
            self.counts["nothing yet"] += 1
            return
        answer = self._ask(model, place)
        digests: list[int] = model.paddle.digests[:2]
        if answer.get("digest") in digests:
            self.counts[("old", "new")[digests.index(answer["digest"])]] += 1
            return
        self.counts["error" if "error" in answer else "mix"] += 1
        self.faults.append(f"{when}: {answer}")

    def _ask(self, model: Model, place: Path) -> dict[str, int]:
        job = {"directory": str(place), "form": model.paddle.form, "shapes": model.paddle.shapes}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the process with Paddle has ended"
        answer: dict[str, int] = json.loads(line)
        return answer


@contextlib.contextmanager
def reader(python: str) -> Iterator[Reader]:
    """A process with real Paddle, inside the ``with``."""
    quiet = {"GLOG_minloglevel": "3", "OMP_NUM_THREADS": "1", "CPU_NUM": "1"}
    process = subprocess.Popen(
        [python, str(DRIVERS / "driver_reading.py")],
        env={**os.environ, **quiet},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield Reader(process)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait(60)
        process.stdout.close()


def read_after_kills(
    python: str, model: Model, *, every: int, times: int, seed: int, home: str | None = None
) -> Reader:
    """Kill the saver of a model, let Paddle read after each kill, and return the reader with its counts."""
    with reader(python) as found, tempfile.TemporaryDirectory(dir=home) as place:
        run(model, Path(place), every=every, times=times, seed=seed, look=found.look)
    return found


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", help="one or several; all without it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="kill at every n-th call only")
    parser.add_argument("--times", type=int, default=30, help="kills at random times")
    parser.add_argument("--home", help="where to work (another file system)")
    options = parser.parse_args(arguments)
    python = os.environ.get(VARIABLE)
    reason = tracer.usable() if python else f"{VARIABLE} names no Python"
    if reason or not python:
        sys.stdout.write(f"skipped: {reason}\n")
        return 77
    bad = 0
    for name in options.model or NETWORKS:
        model = NETWORKS[name](options.seed)
        begin = time.perf_counter()
        found = read_after_kills(
            python,
            model,
            every=options.every,
            times=options.times,
            seed=options.seed,
            home=options.home,
        )
        counts = ", ".join(f"{number} {what}" for what, number in sorted(found.counts.items()))
        seconds = time.perf_counter() - begin
        sys.stdout.write(f"{name}, seed {options.seed}: Paddle read {counts}; {seconds:.1f} s\n")
        sys.stdout.write("".join(f"  {fault}\n" for fault in found.faults[:5]))
        sys.stdout.flush()
        bad += len(found.faults) if model.one_step else 0
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
