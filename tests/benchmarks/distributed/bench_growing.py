"""Growing tables in one process and on servers, beside plain numpy by hand: rows a second, calls, bytes of saves.

    python -m tests.benchmarks.distributed.bench_growing [--rows 300000] [--batch 20000] [--servers 2]

Each trains ``sparse_embedding`` of width 16 by SGD: ids that are new, then ids at random, the median of ten steps. By
hand a dict finds the rows of an array, which doubles when it is full. Servers are threads of this process, so
their rates are those of one interpreter for all; the calls are those of the trainer.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.distributed import growing_tables as tables
from paddlelike.distributed.wire.channel import Channel
from tests.distributed.jobs import Job, Network

_WIDTH = 16
_NETWORK = Network(
    lambda: fluid.layers.mean(
        tables.sparse_embedding(fluid.data("ids", [None, 1], "int64"), [1, _WIDTH], param_attr="emb")
    ),
    lambda: fluid.optimizer.SGD(0.1),
)
_calls = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("rows", 300_000), ("batch", 20_000), ("servers", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    measure("numpy by hand", update_by_hand(), options)
    main_program, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main_program, startup):
        _NETWORK.optimizer().minimize(_NETWORK.build())
    train("one process", main_program, startup, options)
    _count_calls()
    with Job(_NETWORK, servers=options.servers, trainers=1).start() as job:
        programs = job.trainer(0)
        train(f"{options.servers} servers", programs.main, programs.startup, options)


def train(name: str, main_program: Any, startup: Any, options: argparse.Namespace) -> None:
    exe, scope = fluid.Executor(), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        measure(name, lambda ids: exe.run(main_program, feed={"ids": ids}), options)
        with tempfile.TemporaryDirectory() as home:
            for ids, delta in ((options.batch, "base"), (500, True)):
                exe.run(main_program, feed={"ids": np.arange(ids).reshape(-1, 1)})
                begin = time.perf_counter()
                written = fluid.io.save_persistables(exe, home, main_program, delta=delta).written_bytes
                print(f"  delta={delta!r}: {written:,} bytes in {time.perf_counter() - begin:.2f} s")
        exe.close()


def measure(name: str, step: Callable[[Any], object], options: argparse.Namespace) -> None:
    rng = np.random.default_rng(0)
    ids = (np.arange(options.rows) * np.int64(0x1E3779B97F4A7C15)).reshape(-1, options.batch, 1)
    begin = time.perf_counter()
    for batch in ids:
        step(batch)
    new = options.rows / (time.perf_counter() - begin)
    seconds, calls = [], _calls
    for _ in range(10):
        batch = rng.choice(ids.reshape(-1), (options.batch, 1))
        begin = time.perf_counter()
        step(batch)
        seconds.append(time.perf_counter() - begin)
    print(
        f"{name}: {new:,.0f} new rows/s, {options.batch / statistics.median(seconds):,.0f} known rows/s, "
        f"{(_calls - calls) / 10:g} calls a step"
    )


def update_by_hand() -> Callable[[Any], object]:
    places: dict[int, int] = {}
    table = np.full((1024, _WIDTH), 0.01, "float32")

    def step(ids: Any) -> None:
        nonlocal table
        unique, where = np.unique(ids, return_inverse=True)
        found = np.array([places.setdefault(one, len(places)) for one in unique.tolist()])
        while len(table) < len(places):
            table = np.concatenate([table, np.full_like(table, 0.01)])
        rows = table[found][where.reshape(-1)]
        slopes = np.zeros((len(unique), _WIDTH), "float32")
        np.add.at(slopes, where.reshape(-1), np.full_like(rows, 1 / rows.size))  # of the mean
        table[found] -= 0.1 * slopes

    return step


def _count_calls() -> None:
    def count(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **how: Any) -> Any:
            global _calls
            _calls += 1
            return real(*args, **how)

        return call

    for name in ("call", "start_direct"):
        setattr(Channel, name, count(getattr(Channel, name)))


if __name__ == "__main__":
    main()
