"""What a save of changed rows writes, what a load of a chain takes, and what noting rows costs a step.

    python -m tests.benchmarks.saves.bench_deltas [--rows 2000000] [--width 16] [--rounds 5] [--where DIR]

A table is trained with Adagrad on 2000 Zipf ids a step. Loads: a chain of eight links against the same values
saved whole, in turns. Steps: the same feeds with and without notes of the rows, each first by turns, medians of
the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import paddlelike as fluid
from paddlelike.core import row_changes

_LINKS, _STEPS = 8, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--where")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.where) as home:
        measure(Path(home), options.rows, options.width, options.rounds)


def measure(home: Path, rows: int, width: int, rounds: int) -> None:
    program, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(program, startup):
        ids = fluid.data("ids", [None, 1], "int64")
        table = fluid.layers.embedding(ids, [rows, width], is_sparse=True, param_attr="emb")
        fluid.optimizer.Adagrad(0.1).minimize(fluid.layers.mean(fluid.layers.fc(table, 1)))
    exe, dice = fluid.Executor(), np.random.default_rng(0)
    exe.run(startup)

    feeds = [np.minimum(dice.zipf(1.2, (2000, 1)) - 1, rows - 1) for _ in range(_STEPS)]

    def step(at: int = 0) -> int:
        exe.run(program, feed={"ids": feeds[at]})
        return len(np.unique(feeds[at]))

    def save(path: str, **given: object) -> tuple[int, float]:
        begin = time.perf_counter()
        report = fluid.io.save_persistables(exe, home / path, program, **given)
        return report.written_bytes, time.perf_counter() - begin

    step()
    written, seconds = save("chain", delta=True)
    print(f"whole: {written / 1e6:.1f} MB in {seconds:.3f} s")
    for at in range(3):
        changed = step(at)
        written, seconds = save("chain", delta=True)
        ideal = changed * 2 * (width * 4 + 8)
        print(
            f"{changed} rows: {written} bytes in {seconds:.4f} s, {written / ideal:.3f} of rows and their ids"
        )

    measure_steps(lambda at: exe.run(program, feed={"ids": feeds[at]}), rounds)
    measure_loads(exe, program, home, rows, save, rounds)


def measure_steps(step: object, rounds: int) -> None:
    watched, ratios, noted = dict(row_changes._watched), [], []
    for turn in range(rounds * 20):
        seconds = {}
        for with_notes in (turn % 2 == 0, turn % 2 == 1):
            row_changes._watched.clear()
            row_changes._watched.update(watched if with_notes else {})
            begin = time.perf_counter()
            for at in range(_STEPS):
                step(at)  # type: ignore[operator]
            seconds[with_notes] = time.perf_counter() - begin
        ratios.append(seconds[True] / seconds[False])
        noted.append(seconds[True] / _STEPS)
    row_changes._watched.update(watched)
    print(
        f"a step: {statistics.median(noted) * 1e3:.2f} ms, {statistics.median(ratios):.3f} of one without notes"
    )


def measure_loads(exe: object, program: object, home: Path, rows: int, save: object, rounds: int) -> None:
    tensors = [fluid.global_scope().find_var(name).get_tensor() for name in ("emb", "emb_moment_0")]
    save("replay", delta="base")  # type: ignore[operator]
    per_link, dice = rows // 25, np.random.default_rng(1)
    for _ in range(_LINKS):
        for tensor in tensors:
            with tensor.writing() as array:
                array[dice.choice(rows, per_link, replace=False)] += 1
        save("replay", delta=True)  # type: ignore[operator]
    save("whole")  # type: ignore[operator]
    seconds: dict[str, list[float]] = {"replay": [], "whole": []}
    for _ in range(rounds):
        for path, found in seconds.items():
            with fluid.scope_guard(fluid.Scope()):
                begin = time.perf_counter()
                fluid.io.load_persistables(exe, home / path, program)
                found.append(time.perf_counter() - begin)
    chain, whole = (statistics.median(seconds[path]) for path in ("replay", "whole"))
    count = _LINKS * per_link * len(tensors)
    print(f"load: {whole:.3f} s whole, {chain:.3f} s with {count} rows in links: ", end="")
    print(f"{count / max(chain - whole, 1e-9) / 1e6:.1f} M rows/s, {count / chain / 1e6:.1f} M in all")


if __name__ == "__main__":
    main()
