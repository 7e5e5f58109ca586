"""Predictions: paddlelike's predictor in four ways beside onnxruntime, Fluid's with MKL-DNN, and Paddle 2.6.

    python -m tests.benchmarks.bench_inference --only resnet50,lstm --batch 1 --threads 1

Each contender is a process of its own; they take turns within the rounds. Figures are processor milliseconds a call,
the least of the rounds, and the median over the rounds of the ratio to onnxruntime; seconds until the first answer
are processor time of the process, the least of three starts. Interpreters: ``PADDLELIKE_FLUID185_PYTHON``,
``PADDLELIKE_PADDLE262_PYTHON``; engines without one are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.inference.models import MODELS, save

CONTENDER = Path(__file__).parent / "inference" / "contender.py"
ENGINES = {
    "onnxruntime": sys.executable,
    "plain": sys.executable,
    "paddlelike": sys.executable,
    "fast": sys.executable,
    "engine": sys.executable,
    "fluid": os.environ.get("PADDLELIKE_FLUID185_PYTHON"),
    "paddle2": os.environ.get("PADDLELIKE_PADDLE262_PYTHON"),
}


class Contender:
    """A process that has opened a model and given a first answer."""

    def __init__(self, engine: str, python: str, folder: Path, threads: int) -> None:
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
        self._process = subprocess.Popen(
            [python, str(CONTENDER), engine, str(folder), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **one},
        )
        self.first = self._read()

    def measure(self) -> float:
        """Return the processor seconds of a call."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._read())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> Any:
        """Return a line of JSON. Raises EOFError where the process has ended: the engine refuses the model."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line[0] in "[0123456789":
                return json.loads(line)
        raise EOFError


def run(name: str, folder: Path, given: argparse.Namespace) -> None:
    """Print a line for each engine."""
    save(name, folder, given.batch)
    contenders, starts = {}, {}
    for engine, python in ENGINES.items():
        if python is None or (given.engines and engine not in given.engines.split(",")):
            continue
        try:
            contenders[engine] = Contender(engine, python, folder, given.threads)
        except EOFError:
            print(f"{name:<12} {engine:<12} stops", flush=True)
            continue
        again = [Contender(engine, python, folder, given.threads) for _ in range(given.starts - 1)]
        starts[engine] = min(one.first[0] for one in (contenders[engine], *again))
        for one in again:
            one.close()
    figures: dict[str, list[float]] = {engine: [] for engine in contenders}
    for _ in range(given.rounds + 1):
        for engine, contender in contenders.items():
            figures[engine].append(contender.measure())
    for engine, seconds in figures.items():
        del seconds[0]  # of one call
        base = figures.get("onnxruntime", seconds)
        ratio = statistics.median(a / b for a, b in zip(seconds, base, strict=True))
        print(
            f"{name:<12} {engine:<12} {min(seconds) * 1e3:9.4f} ms  {ratio:5.2f}  first {starts[engine]:.2f} s"
        )
        contenders[engine].close()
    sys.stdout.flush()


def main() -> None:
    """Run the models that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(MODELS), help="models, separated by commas")
    parser.add_argument("--engines", help="engines, separated by commas")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--starts", type=int, default=3)
    given = parser.parse_args()
    for name in given.only.split(","):
        with tempfile.TemporaryDirectory() as folder:
            run(name, Path(folder), given)


if __name__ == "__main__":
    main()
