"""A training step of nine nets, beside numpy by hand, torch and Fluid 1.8.5, in one run.

    PADDLELIKE_TORCH_PYTHON=... PADDLELIKE_FLUID185_PYTHON=... \
        python -m tests.benchmarks.bench_nets [--rounds 7] [--only mlp,lstm] [--without torch]

Each library is a process of its own that stays (``nets/contender.py``), on one thread. Within a round the
libraries follow one another, each round begins with another one, and each trains for about ``--seconds`` of
processor time. Fluid runs with its program cache. ``paddlelike`` computes with numpy alone, ``fast`` is this
package with the extra of that name, ``compiled`` this package with ``FLAGS_backend=jax``, ``numpy`` and ``jax``
the same nets by hand, where the extra is installed; XLA computes on one thread, too. ``--only bert,resnet50``
names two nets that take seconds a step, for the compiled libraries and torch. Shown are processor milliseconds a
step, the median of the rounds and the best; the median of the ratios of this package to the others in the same
round; the loss of the first step, which is the same for Fluid, this package and numpy by hand, which begin with
the same parameters.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.benchmarks.nets.data import BATCHES

OURS = "paddlelike"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Library:
    """A process that works with one library: a program in a folder beside this file, which answers lines."""

    def __init__(self, name: str, python: str, program: str = "nets/contender.py", *arguments: str) -> None:
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        if python == sys.executable:
            env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        env.update(dict.fromkeys(THREADS, "1"))
        env["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
        self.name = name
        self._process = subprocess.Popen(
            [python, "-W", "ignore", str(Path(__file__).parent / program), name, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
            cwd="/tmp",
        )

    def train(self, net: str, count: int) -> dict[str, Any]:
        """Train for some steps. Return what was measured; nothing when the library lacks the net."""
        return self.ask(f"{net} {count}")

    def ask(self, line: str) -> dict[str, Any]:
        """Return the answer to a line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        told = self._process.stdout.readline()
        if not told:
            raise RuntimeError(f"{self.name} ended with {self._process.wait()} at {line}")
        found: dict[str, Any] = json.loads(told)
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def list_libraries() -> dict[str, str]:
    """Return the interpreter of every library that can run here."""
    found = {OURS: sys.executable, "numpy": sys.executable}
    torch = os.environ.get("PADDLELIKE_TORCH_PYTHON") or (
        importlib.util.find_spec("torch") and sys.executable
    )
    if torch:
        found["torch"] = torch
    if importlib.util.find_spec("numba"):
        found["fast"] = sys.executable
    if importlib.util.find_spec("jax"):
        found |= {"compiled": sys.executable, "jax": sys.executable}
    if os.environ.get("PADDLELIKE_FLUID185_PYTHON"):
        found["fluid"] = os.environ["PADDLELIKE_FLUID185_PYTHON"]
    return found


def measure(
    net: str, libraries: list[Library], rounds: int, seconds: float
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Return the processor seconds of a step by library, in the order of the rounds, and first answers."""
    first, counts = {}, {}
    for library in libraries:
        found = library.train(net, 3)
        if found:
            first[library.name] = found
            counts[library.name] = max(1, min(20_000, int(seconds / max(found["cpu"], 1e-7))))
    here = [library for library in libraries if library.name in first]
    times: dict[str, list[float]] = {library.name: [] for library in here}
    for index in range(rounds):
        turn = index % len(here)
        for library in here[turn:] + here[:turn]:
            times[library.name].append(library.train(net, counts[library.name])["cpu"])
    return times, first


def show(net: str, times: dict[str, list[float]], first: dict[str, Any]) -> None:
    print(f"\n{net}")
    for name, each in times.items():
        ratios = [
            f"{own} / {name}: {statistics.median(a / b for a, b in zip(times[own], each, strict=True)):.2f}"
            for own in (OURS, "fast")
            if own in times and own != name
        ]
        told = "  ".join(ratios)
        print(
            f"  {name:12}{statistics.median(each) * 1e3:10.3f} ms{min(each) * 1e3:10.3f} best"
            f"  build {first[name]['build']:6.3f} s  first {first[name]['first']:6.3f} s"
            f"  loss {first[name]['loss']:.6f}  {first[name]['memory']:7.0f} MiB  {told}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="of processor time for each measurement")
    parser.add_argument("--only", default=",".join(BATCHES), help="nets, separated by commas")
    parser.add_argument("--without", default="", help="libraries, separated by commas")
    given = parser.parse_args()
    found = list_libraries()
    libraries = [
        Library(name, python) for name, python in found.items() if name not in given.without.split(",")
    ]
    for net in given.only.split(","):
        show(net, *measure(net, libraries, given.rounds, given.seconds))
    for library in libraries:
        library.close()


if __name__ == "__main__":
    main()
