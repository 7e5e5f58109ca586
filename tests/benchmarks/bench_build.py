"""What programs cost before they run: building, minimize, bytes and back, clone, prune, the first plan.

    python -m tests.benchmarks.bench_build [--counts 2500,5000,10000,20000] [--rounds 3]

A chain of so many operators with a loss at its end; ``minimize`` about doubles it, and what follows is done to
the doubled program. Shown are processor seconds, the best of the rounds, and how much the largest program costs
for each operator beside the smallest: 1 is linear.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike import layers


class Stopwatch:
    """The best processor seconds of each step, by its name."""

    def __init__(self) -> None:
        self.best: dict[str, float] = {}

    def run(self, name: str, step: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Return what a step returns."""
        gc.collect()
        begin = time.process_time()
        result = step(*arguments, **keywords)
        seconds = time.process_time() - begin
        self.best[name] = min(self.best.get(name, seconds), seconds)
        return result


def build(count: int) -> tuple[Any, Any, Any]:
    """Return main program, startup program and loss of a chain of operators."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = layers.fc(fluid.data("x", [None, 8]), 8)
        for _ in range(count - 4):
            x = layers.scale(x, 1.0001)
        return main, startup, layers.mean(x)


def measure(count: int, rounds: int) -> dict[str, float]:
    """Return the best seconds of every step."""
    watch = Stopwatch()
    for _ in range(rounds):
        main, startup, loss = watch.run("build", build, count)
        with fluid.program_guard(main, startup):
            watch.run("minimize", fluid.optimizer.SGD(0.1).minimize, loss)
        data = watch.run("serialise", main.desc.serialize_to_string)
        parsed = watch.run("parse", fluid.Program.parse_from_string, data)
        watch.run("serialise what was parsed", parsed.desc.serialize_to_string)
        watch.run("clone", main.clone)
        watch.run("clone for test", main.clone, for_test=True)
        watch.run("prune", main._prune, [loss])
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(startup, scope=scope)
        feed = {"x": np.ones((1, 8), np.float32)}
        for name in ("first run", "second run"):
            watch.run(name, exe.run, main, feed=feed, fetch_list=[loss], scope=scope)
    return watch.best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--counts", default="2500,5000,10000,20000", help="operators before minimize")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    counts = [int(text) for text in given.counts.split(",")]
    found = [measure(count, given.rounds) for count in counts]
    print(f"{'operators':28}{''.join(f'{count:>10,}' for count in counts)}   linear is 1")
    for name in found[0]:
        growth = found[-1][name] / counts[-1] / (found[0][name] / counts[0])
        print(f"{name:28}{''.join(f'{one[name]:10.3f}' for one in found)}{growth:13.2f}")


if __name__ == "__main__":
    main()
