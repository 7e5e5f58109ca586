"""What a save of changed rows writes, what a load of a chain takes, and what noting rows costs a step.

    python -m tests.benchmarks.saves.bench_deltas [--rows 2000000] [--width 16] [--rounds 5] [--where DIR]

A table is trained with Adagrad on 2000 Zipf ids a step. Loads: a chain of 41 daily bases and 16 hourly links
against the same values saved whole, by processor time in turns; then the system calls, checksums and copies
of one table alone ("bare chain"), and with links that are in memory already ("bare rows"). Steps: the same feeds
with and without notes of the rows, each first by turns, medians of the ratios.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import xxhash

import paddlelike as fluid
from paddlelike.core import row_changes
from paddlelike.core.memory import Arena

_STEPS = 20
_DAYS, _HOURS, _SHARE = 41, 16, 4310  # bases, hours after them, the share of the rows that an hour changes


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
    dice = np.random.default_rng(1)
    save("replay", delta="base")  # type: ignore[operator]
    for hours, kind in [(24, "base")] * _DAYS + [(1, True)] * _HOURS:
        for tensor in tensors:
            with tensor.writing() as array:
                array[dice.choice(rows, hours * rows // _SHARE, replace=False)] += 1
        save("replay", delta=kind)  # type: ignore[operator]
    save("whole")  # type: ignore[operator]

    def load(path: str) -> None:
        with fluid.scope_guard(fluid.Scope()):
            fluid.io.load_persistables(exe, home / path, program)

    folder, shape = home / "replay" / "__deltas__", np.asarray(tensors[0]).shape
    paths = sorted(folder.glob("emb.*"), key=lambda path: int(path.suffix[1:]))
    room = np.empty(rows * shape[1] * 4, np.uint8)
    held = [_read_link(path, np.empty(path.stat().st_size + 4, np.uint8), shape[1]) for path in paths[1:]]
    contenders: dict[str, Callable[[], object]] = {
        "whole": lambda: load("whole"),
        "chain": lambda: load("replay"),
        "bare whole": lambda: _load_bare(paths[0], shape, ()),
        "bare chain": lambda: _load_bare(
            paths[0], shape, (_read_link(path, room, shape[1]) for path in paths[1:])
        ),
        "bare rows": lambda: _load_bare(paths[0], shape, held),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(1 + 3 * rounds):
        for name, run in contenders.items():
            begin = time.process_time()
            run()
            seconds[name].append(time.process_time() - begin)
    for name in ("chain", "bare chain", "bare rows"):
        beside = seconds["bare whole" if "bare" in name else "whole"]
        ratios = [one / other for one, other in zip(seconds[name][1:], beside[1:], strict=True)]
        print(
            f"{name}: {statistics.median(ratios):.2f} of the whole value ({statistics.median(beside):.3f} s)"
        )


def _load_bare(path: Path, shape: tuple[int, ...], links: Iterable[tuple[np.ndarray, np.ndarray]]) -> None:
    """Read and verify a whole value, then set the rows of links, by system calls, xxhash and numpy alone."""
    array = Arena(size := 4 * shape[0] * shape[1]).empty((size,), np.dtype(np.uint8))
    with path.open("rb", buffering=0) as file:
        file.seek(-size, os.SEEK_END)
        for at in range(0, size, 1 << 20):
            file.readinto(array[at : at + (1 << 20)])
            xxhash.xxh3_128_digest(array[at : at + (1 << 20)])
    table = array.view(f"V{4 * shape[1]}")
    for ids, rows in links:
        table.put(ids, rows)


def _read_link(path: Path, room: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids and the rows of a link, verified; they are stored in ``room``."""
    with path.open("rb", buffering=0) as file:
        size = file.readinto(room[4:])  # its ids are aligned
    xxhash.xxh3_128_digest(room[4 : 4 + size])
    count = int.from_bytes(room[8:16].tobytes(), "little")
    ids, rows = room[16 : 16 + 8 * count], room[4 + size - 4 * width * count : 4 + size]
    return ids.view(np.int64), rows.view(f"V{4 * width}")


if __name__ == "__main__":
    main()
