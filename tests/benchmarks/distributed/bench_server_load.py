"""How fast servers load their rows, and how fast trainer 0 saves what servers keep.

    python -m tests.benchmarks.distributed.bench_server_load [--mb 2000] [--servers 4] [--rounds 5] [--only load]

A table of that size, cut for so many servers. Every measurement is a new process; within a round the
contenders follow one another. Files are in the page cache. Loads are measured in processor time, saves by the
clock.

load   server 0 loads its rows, against plain reads of the same bytes of the same file into memory of the same
       kind, and against reading the file whole
save   trainer 0 gathers the table from its servers, which are threads of the same process, through the real
       wire; and the servers write it themselves; against writing and hashing an array of that size
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.io.partition import get_partition
from tests.helpers.fresh import fresh_programs

WIDTH = 64


def network(rows: int) -> Any:
    ids = fluid.data("ids", [None, 1], "int64")
    y = fluid.data("y", [None, 1])
    found = fluid.layers.embedding(ids, [rows, WIDTH], is_sparse=True, param_attr="table")
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(found, 1), y))


def transpiled(rows: int, endpoints: list[str]) -> Any:
    network_loss = network(rows)
    fluid.optimizer.SGD(0.1).minimize(network_loss)
    t = fluid.DistributeTranspiler()
    t.transpile(trainer_id=0, pservers=",".join(endpoints), trainers=1)
    return t, network_loss


def names(count: int) -> list[str]:
    return [f"127.0.0.1:{6170 + number}" for number in range(count)]


def save_table(home: Path, rows: int) -> None:
    with fresh_programs() as (main, startup):
        network(rows)
        fluid.Executor().run(startup)
        fluid.io.save_persistables(fluid.Executor(), str(home / "model"), main, checksum="crc32")


def load_rows(home: Path, rows: int, servers: int, *, in_place: bool) -> float:
    with fresh_programs():
        t, _ = transpiled(rows, names(servers))
        main = t.get_pserver_program(names(servers)[0])
        startup = t.get_startup_program(names(servers)[0], main)
        exe = fluid.Executor()
        if in_place:
            exe.run(startup)
        assert get_partition(main) is not None  # imports are not part of a load
        begin = time.process_time()
        report = fluid.io.load_persistables(exe, str(home / "model"), main, in_place=in_place)
        seconds = time.process_time() - begin
        assert report
        (block,) = [moved for name, moved in report.loaded.items() if name.startswith("table.block")]
        assert block.shape == (-(-rows // servers), WIDTH)
        return seconds


def plain(home: Path, rows: int, servers: int, *, in_place: bool) -> float:
    """The same bytes in runs of 16 MB by as many threads as the load takes, and nothing else."""
    from concurrent.futures import ThreadPoolExecutor

    from paddlelike.core import memory

    memory.keep_freed_memory()
    count = -(-rows // servers)
    array = memory.empty((count, WIDTH), np.dtype("float32"))
    if in_place:
        array.fill(1)
    begin = time.process_time()
    if not in_place:
        array = memory.empty((count, WIDTH), np.dtype("float32"))
    view = memoryview(array.reshape(-1).view(np.uint8))
    fd = os.open(home / "model" / "table", os.O_RDONLY)

    def read(at: int) -> None:
        end = min(at + (16 << 20), len(view))
        while at < end:
            at += os.preadv(fd, [view[at:end]], 28 + at)

    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        list(pool.map(read, range(0, len(view), 16 << 20)))
    seconds = time.process_time() - begin
    os.close(fd)
    return seconds


def whole(home: Path, rows: int, servers: int) -> float:
    with fresh_programs() as (main, _):
        network(rows)
        begin = time.process_time()
        fluid.io.load_persistables(fluid.Executor(), str(home / "model"), main)
        return time.process_time() - begin


def gather(home: Path, rows: int, servers: int, *, by_servers: bool) -> float:
    import threading

    from tests.distributed.jobs import free_endpoints

    endpoints = free_endpoints(servers)
    os.environ["PADDLELIKE_CHECKPOINT_DIR"] = str(home)  # servers write below it
    with fresh_programs() as (_, startup):
        t, loss = transpiled(rows, endpoints)
        running = []
        for endpoint in endpoints:
            main, scope, exe = t.get_pserver_program(endpoint), fluid.Scope(), fluid.Executor()
            exe.run(t.get_startup_program(endpoint, main), scope=scope)
            thread = threading.Thread(target=exe.run, args=(main,), kwargs={"scope": scope})
            thread.start()
            running.append(thread)
        exe = fluid.Executor()
        program = t.get_trainer_program()
        exe.run(startup)
        feed = {"ids": np.zeros((1, 1), "int64"), "y": np.zeros((1, 1), "float32")}
        exe.run(program, feed=feed, fetch_list=[loss])
        target = home / f"saved{by_servers}"
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.perf_counter()
        fluid.io.save_persistables(exe, str(target), program, checksum="crc32", by_servers=by_servers)
        seconds = time.perf_counter() - begin
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        exe.close()
        for thread in running:
            thread.join()
        shutil.rmtree(target)
    print(f"    peak memory rose by {more / 1024:.0f} MB", file=sys.stderr)
    return seconds


def write(home: Path, rows: int, servers: int) -> float:
    """What a process does for an array of its own."""
    with fresh_programs() as (main, startup):
        network(rows)
        fluid.Executor().run(startup)
        begin = time.perf_counter()
        fluid.io.save_persistables(fluid.Executor(), str(home / "written"), main, checksum="crc32")
        seconds = time.perf_counter() - begin
        shutil.rmtree(home / "written")
        return seconds


CONTENDERS: dict[str, Any] = {
    "load, new memory: plain reads": lambda *a: plain(*a, in_place=False),
    "load, new memory: server 0": lambda *a: load_rows(*a, in_place=False),
    "load, in place: plain reads": lambda *a: plain(*a, in_place=True),
    "load, in place: server 0": lambda *a: load_rows(*a, in_place=True),
    "load: the whole file": whole,
    "save: one process": write,
    "save: gathered": lambda *a: gather(*a, by_servers=False),
    "save: by servers": lambda *a: gather(*a, by_servers=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=2000)
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="load, or save")
    parser.add_argument("--home")
    parser.add_argument("--one")
    options = parser.parse_args()
    rows = (options.mb << 20) // (4 * WIDTH)
    if options.one:
        home = Path(options.home)
        if options.one == "prepare":
            save_table(home, rows)
            return
        print(json.dumps(CONTENDERS[options.one](home, rows, options.servers)))
        return
    with tempfile.TemporaryDirectory(dir=options.home) as home:
        again = [sys.executable, "-m", "tests.benchmarks.distributed.bench_server_load", "--home", home]
        again += ["--mb", str(options.mb), "--servers", str(options.servers), "--one"]
        subprocess.run([*again, "prepare"], check=True)
        found: dict[str, list[float]] = {name: [] for name in CONTENDERS if name.startswith(options.only)}
        for _ in range(options.rounds):
            for name in found:
                done = subprocess.run([*again, name], check=True, stdout=subprocess.PIPE, text=True)
                found[name].append(float(done.stdout))
    for name, seconds in found.items():
        print(f"{name:32} {statistics.median(seconds):7.3f} s")
    for kind in ("new memory", "in place") if options.only != "save" else ():
        mine, limit = found[f"load, {kind}: server 0"], found[f"load, {kind}: plain reads"]
        ratio = statistics.median(a / b for a, b in zip(mine, limit, strict=True))
        print(f"load, {kind}: {ratio:.2f} of the plain reads")


if __name__ == "__main__":
    main()
