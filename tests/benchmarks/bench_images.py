"""Convolutions, pools and batch_norm in the shapes of well-known networks, beside Fluid 1.8.5 and torch.

    PADDLELIKE_TORCH_PYTHON=... PADDLELIKE_FLUID185_PYTHON=... \
        python -m tests.benchmarks.bench_images [--rounds 3] [--only vgg1,lenet2] [--without torch]

Each library is a process of its own that stays (``images/contender.py``), on one thread, and they take turns
within a round. An operator runs alone, with its input in C order; inside a network ours finds the channels of
images last in memory and need not move them. Shown are processor milliseconds, the best of the rounds, of the
operator and of the operator with all its gradients; and the ratios of the best.
"""

from __future__ import annotations

import argparse

from tests.benchmarks.bench_nets import OURS, Library, list_libraries
from tests.benchmarks.images.cases import CASES


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05, help="of processor time for each measurement")
    parser.add_argument("--only", default=",".join(CASES), help="cases, separated by commas")
    parser.add_argument("--without", default="", help="libraries, separated by commas")
    given = parser.parse_args()
    left_out = {"numpy", "jax", "compiled", *given.without.split(",")}
    libraries = [
        Library(name, python, "images/contender.py")
        for name, python in list_libraries().items()
        if name not in left_out
    ]
    names = [library.name for library in libraries]
    print(f"{'':28}{''.join(f'{name:>12}' for name in names)}   of {', '.join(names[1:])}")
    for case in given.only.split(","):
        for both in ("forward", "both"):
            best: dict[str, float] = {}
            for turn in range(given.rounds):
                first = turn % len(libraries)
                for library in libraries[first:] + libraries[:first]:
                    seconds = library.ask(f"{case} {both} {given.seconds}")["cpu"]
                    best[library.name] = min(best.get(library.name, seconds), seconds)
            ratios = "  ".join(f"{best[OURS] / best[name]:5.2f}" for name in names[1:])
            print(
                f"{case:20}{both:8}{''.join(f'{best[name] * 1e3:12.3f}' for name in names)}   {ratios}",
                flush=True,
            )
    for library in libraries:
        library.close()


if __name__ == "__main__":
    main()
