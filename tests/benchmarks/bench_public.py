"""Training steps and predictions of small networks in the manner of public models, beside Fluid 1.8.5.

    PADDLELIKE_FLUID185_PYTHON=... python -m tests.benchmarks.bench_public [--rounds 5] [--only graph,beam]

Images, sequences, loops, ranking, graphs (``families/networks.py``), and images of real sizes
(``families/images.py``, ``classifiers.py``), each with a small batch. Both libraries are processes that stay, on
one thread, and take turns within rounds; Fluid runs with its program cache, this package with numpy alone and
(``fast``) with the extra of that name. Shown are processor milliseconds, the best of the rounds, and the medians
of the ratios to Fluid within a round. Without the variable this package runs alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys

from tests.benchmarks.bench_nets import OURS, Library
from tests.benchmarks.families.contender import NETWORKS

FLUID, FAST = "fluid", "fast"
KINDS = ("train", "predict")


def ask(library: Library, network: str, kind: str, count: int) -> float:
    """Return the processor seconds of a step, over ``count`` steps."""
    seconds: float = library.ask(f"{network} {kind} {count}")["cpu"]
    return seconds


def measure(
    network: str, kind: str, libraries: list[Library], rounds: int, seconds: float
) -> dict[str, list[float]]:
    """Return the processor milliseconds of a step by library, in the order of the rounds."""
    counts = {}
    for library in libraries:
        ask(library, network, kind, 2)
        counts[library.name] = max(1, int(seconds / ask(library, network, kind, 1)))
    times: dict[str, list[float]] = {library.name: [] for library in libraries}
    for index in range(rounds):
        turn = index % len(libraries)
        for library in libraries[turn:] + libraries[:turn]:
            times[library.name].append(ask(library, network, kind, counts[library.name]) * 1e3)
    return times


def format_times(times: dict[str, list[float]]) -> str:
    """Return the best of each library, and the medians of the ratios to Fluid."""
    cells = [f"{min(each):9.2f}" for each in times.values()]
    if FLUID in times:
        for ours in (OURS, FAST):
            ratios = [a / b for a, b in zip(times[ours], times[FLUID], strict=True)]
            cells.append(f"{statistics.median(ratios):6.2f}")
    return " ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="of processor time for each measurement")
    parser.add_argument("--only", default=",".join(NETWORKS), help="networks, separated by commas")
    given = parser.parse_args()
    pythons = {OURS: sys.executable, FAST: sys.executable}
    if os.environ.get("PADDLELIKE_FLUID185_PYTHON"):
        pythons[FLUID] = os.environ["PADDLELIKE_FLUID185_PYTHON"]
    libraries = [Library(name, python, "families/contender.py") for name, python in pythons.items()]
    width = 10 * len(libraries) + 14
    print(
        f"{'':14}" + "   ".join(f"{kind + ': ' + ', '.join(pythons) + ', ratios':{width}}" for kind in KINDS)
    )
    for network in given.only.split(","):
        found = [measure(network, kind, libraries, given.rounds, given.seconds) for kind in KINDS]
        print(f"{network:14}" + "   ".join(f"{format_times(times):{width}}" for times in found), flush=True)
    for library in libraries:
        library.close()


if __name__ == "__main__":
    main()
