"""Tables whose rows lie on disk beside tables in memory, by the share of ids that are in memory.

A step looks ids up and updates their rows by SGD.
``--servers 2`` has the tables on servers, which are processes, as the ``--trainers`` are; ``--hot`` is then of
all servers together, and a step is a synchronous round.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import threading
import time
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.distributed import growing_tables as tables
from tests.benchmarks.distributed.bench_rounds import answer_then_end, free_ports
from tests.benchmarks.meters import Child
from tests.helpers.fresh import fresh_programs

HERE = "tests.benchmarks.distributed.bench_store"
_SPREAD = 2654435761  # ids are not in a row
_BATCH = 20_000
_SHARES = {"Memory": (1.0,), "SSD": (1.0, 0.99, 0.9, 0.5, 0.0)}
_ROUNDS = 11


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--hot", type=int, default=200_000, help="rows that stay in memory")
    parser.add_argument("--kinds", nargs="+", choices=["Memory", "SSD"], default=["Memory", "SSD"])
    parser.add_argument("--servers", type=int, default=0, help="0: one process has the tables")
    parser.add_argument("--trainers", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench_store") as folder:
        each = given.hot // max(given.servers, 1)
        os.environ |= {"PADDLELIKE_TABLE_STORE": folder, "PADDLELIKE_HOT_ROWS": str(each)}
        for kind in given.kinds:
            if given.servers:
                _measure_job(kind, given)
            else:
                _measure_table(kind, given.rows, given.hot)


def _measure_table(kind: str, rows: int, hot: int) -> None:
    with fresh_programs() as (program, startup):
        _build(kind)
        exe = fluid.Executor()
        exe.run(startup)

        def step(numbers: Any) -> None:
            exe.run(program, feed={"ids": (numbers * _SPREAD).reshape(-1, 1)})

        begin = time.perf_counter()
        for start in range(0, rows, 10 * _BATCH):
            step(np.arange(start, min(start + 10 * _BATCH, rows)))
        print(f"{kind}: {rows:,} rows at {rows / (time.perf_counter() - begin):,.0f} rows/s")
        rng = np.random.default_rng(0)
        for share in _SHARES[kind]:
            wall, processor = [], []
            for _ in range(6):
                numbers = _choose(rng, rows, hot, share)
                begin, used = time.perf_counter(), time.process_time()
                step(numbers)
                wall.append(time.perf_counter() - begin)
                processor.append(time.process_time() - used)
            best, least = _BATCH / min(wall), _BATCH / min(processor)
            print(f"  {share:.0%} in memory: {best:,.0f} rows/s, {least:,.0f} a processor second")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(f"  {peak:,} MiB of memory at most")


def _build(kind: str) -> None:
    ids = fluid.data("ids", [None, 1], "int64")
    attr = fluid.ParamAttr(name="emb", initializer=fluid.initializer.Uniform(-0.1, 0.1, seed=1))
    found = tables.sparse_embedding(ids, [1, 16], param_attr=attr, table_class=f"{kind}SparseTable")
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(found))


def _choose(rng: np.random.Generator, rows: int, hot: int, share: float) -> Any:
    """Return numbers of rows, this share of them among those that were looked up last."""
    near = rng.integers(rows - hot // 4, rows, int(_BATCH * share))
    return np.concatenate([near, rng.integers(0, rows - hot, _BATCH - len(near))])


# Servers and trainers, each a process


def _measure_job(kind: str, given: argparse.Namespace) -> None:
    job = kind, ",".join(map(str, free_ports(given.servers))), str(given.trainers)
    servers = [Child(HERE, "serve", *job, str(number)) for number in range(given.servers)]
    trainers = [Child(HERE, "train", *job, str(number), hello=False) for number in range(given.trainers)]
    for one in trainers:  # all together: none is ready before the others
        one.receive()

    def ask(order: Any) -> list[float]:
        for one in trainers:
            one.tell(json.dumps([given.rows, given.hot, order]))
        return [max(seconds) for seconds in zip(*(one.receive() for one in trainers), strict=True)]

    peak = 0.0
    for share in (None, *_SHARES[kind]):
        for one in servers:
            one.ask("reset")
        seconds = ask(share)
        read = [one.ask("read") for one in servers]
        peak = max(peak, *(one["high"] for one in read))
        if share is None:
            print(f"{kind}: {given.rows:,} rows at {given.rows / sum(seconds):,.0f} rows/s", flush=True)
            continue
        looked = _BATCH * given.trainers
        used = sum(one["cpu"] for one in read) / _ROUNDS
        rounds = 1 / statistics.median(seconds)
        print(f"  {share:.0%} in memory: {rounds:.2f} rounds/s, {looked * rounds:,.0f} rows/s, ", end="")
        print(f"{looked / used:,.0f} a processor second of the servers", flush=True)
    print(f"  {int(peak) >> 20:,} MiB of memory at most in a server")
    for one in trainers:
        one.end()
    for one in servers:
        one.end()


def _transpile(kind: str, ports: str, trainers: str, me: int) -> tuple[Any, list[str]]:
    _build(kind)
    endpoints = [f"127.0.0.1:{port}" for port in ports.split(",")]
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(me, pservers=",".join(endpoints), trainers=int(trainers))
    return transpiler, endpoints


def _serve(kind: str, ports: str, trainers: str, me: str) -> None:
    transpiler, endpoints = _transpile(kind, ports, trainers, 0)
    program, startup = transpiler.get_pserver_programs(endpoints[int(me)])
    exe = fluid.Executor()
    exe.run(startup)
    threading.Thread(target=answer_then_end, daemon=True).start()
    exe.run(program)


def _train(kind: str, ports: str, trainers: str, me: str) -> None:
    """Carry out orders: None makes all rows, a share takes rounds with this share of ids in memory."""
    transpiler, _ = _transpile(kind, ports, trainers, int(me))
    program, exe, rng = transpiler.get_trainer_program(), fluid.Executor(), np.random.default_rng(int(me))
    exe.run(fluid.default_startup_program())
    print("[]", flush=True)
    for line in sys.stdin:
        rows, hot, share = json.loads(line)
        parts = [np.arange(at, min(at + 10 * _BATCH, rows)) for at in range(0, rows, 10 * _BATCH)]
        if share is None:
            numbers = [one[int(me) :: int(trainers)] for one in parts]
        else:
            numbers = [_choose(rng, rows, hot, share) for _ in range(_ROUNDS)]
        seconds = []
        for one in numbers:
            begin = time.perf_counter()
            exe.run(program, feed={"ids": (one * _SPREAD).reshape(-1, 1)})
            seconds.append(time.perf_counter() - begin)
        print(json.dumps(seconds), flush=True)
    exe.close()


if __name__ == "__main__":
    part = {"serve": _serve, "train": _train}.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if part is None:
        main()
    else:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        part(*sys.argv[2:])
