"""Tables whose rows lie on disk beside tables in memory, by the share of ids that are in memory; and the stores.

A step looks ids up and updates their rows by SGD. ``--stores`` compares RocksDB with LMDB (package ``lmdb``)
alone: rows of 64 random bytes are written in random order, read, written again and read in order.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.distributed import growing_tables as tables
from paddlelike.storage.row_store import RowStore
from tests.helpers.fresh import fresh_programs

_SPREAD = 2654435761  # ids are not in a row
_BATCH = 20_000
_BLOCK = 1 << 16


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--hot", type=int, default=200_000, help="rows that stay in memory")
    parser.add_argument("--kinds", nargs="+", choices=["Memory", "SSD"], default=["Memory", "SSD"])
    parser.add_argument("--stores", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench_store") as folder:
        os.environ |= {"PADDLELIKE_TABLE_STORE": folder, "PADDLELIKE_HOT_ROWS": str(given.hot)}
        if given.stores:
            for store in (RowStore, _Lmdb):
                _measure_store(store, given.rows)
            return
        for kind in given.kinds:
            _measure_table(kind, given.rows, given.hot, Path(folder))


def _measure_table(kind: str, rows: int, hot: int, folder: Path) -> None:
    with fresh_programs() as (program, startup):
        ids = fluid.data("ids", [None, 1], "int64")
        attr = fluid.ParamAttr(name="emb", initializer=fluid.initializer.Uniform(-0.1, 0.1, seed=1))
        found = tables.sparse_embedding(ids, [1, 16], param_attr=attr, table_class=f"{kind}SparseTable")
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(found))
        exe = fluid.Executor()
        exe.run(startup)

        def step(numbers: Any) -> None:
            exe.run(program, feed={"ids": (numbers * _SPREAD).reshape(-1, 1)})

        begin = time.perf_counter()
        for start in range(0, rows, 10 * _BATCH):
            step(np.arange(start, min(start + 10 * _BATCH, rows)))
        print(f"{kind}: {rows:,} rows at {rows / (time.perf_counter() - begin):,.0f} rows/s")
        rng = np.random.default_rng(0)
        for share in (1.0, 0.99, 0.9, 0.5, 0.0) if kind == "SSD" else (1.0,):
            wall, processor = [], []
            for _ in range(6):
                near = rng.integers(rows - hot // 4, rows, int(_BATCH * share))
                far = rng.integers(0, rows - hot, _BATCH - len(near))
                begin, used = time.perf_counter(), time.process_time()
                step(np.concatenate([near, far]))
                wall.append(time.perf_counter() - begin)
                processor.append(time.process_time() - used)
            best, least = _BATCH / min(wall), _BATCH / min(processor)
            print(f"  {share:.0%} in memory: {best:,.0f} rows/s, {least:,.0f} a processor second")
        size = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(f"  {size >> 20:,} MiB on disk, {peak:,} MiB of memory at most")


class _Lmdb:
    """What RowStore does, by LMDB."""

    def __init__(self, width: int) -> None:
        import lmdb

        self._width, self._folder = width, tempfile.mkdtemp(dir=os.environ["PADDLELIKE_TABLE_STORE"])
        how = {"writemap": True, "sync": False, "metasync": False, "map_async": True, "readahead": False}
        self._env = lmdb.open(self._folder, map_size=1 << 38, lock=False, **how)

    def write(self, ids: Any, rows: Any) -> None:
        """Set rows."""
        for at in range(0, len(ids), _BLOCK):
            keys = ids[at : at + _BLOCK].astype(">i8").view("V8").tolist()
            data = rows[at : at + _BLOCK].view(f"V{self._width}").reshape(-1).tolist()
            with self._env.begin(write=True) as transaction, transaction.cursor() as cursor:
                cursor.putmulti(list(zip(keys, data, strict=True)))

    def read(self, ids: Any) -> Any:
        """Return the bytes of rows."""
        keys = ids.astype(">i8").view("V8").tolist()
        with self._env.begin() as transaction, transaction.cursor() as cursor:
            data = b"".join(row for _, row in cursor.getmulti(keys))
        return None, np.frombuffer(data, np.uint8).reshape(-1, self._width)

    def scan(self) -> Iterator[Any]:
        """Yield every row."""
        with self._env.begin() as transaction:
            for key, row in transaction.cursor():
                yield [key], row

    def close(self) -> None:
        """Remove the files."""
        self._env.close()
        shutil.rmtree(self._folder)


def _measure_store(make: Callable[[int], Any], count: int) -> None:
    store, rng = make(64), np.random.default_rng(0)
    ids = rng.permutation(np.arange(count) * _SPREAD)
    rows = rng.integers(0, 256, (count, 64), np.uint8)
    some = rng.choice(ids, min(count, 8 * _BLOCK), replace=False)

    def scan() -> None:
        for _ in store.scan():
            pass

    print(f"{make.__name__}: {count:,} rows, per second and per processor second")
    work: list[tuple[str, int, Callable[[], Any]]] = [
        ("write", count, lambda: store.write(ids, rows)),
        ("read", len(some), lambda: store.read(some)),
        ("write again", len(some), lambda: store.write(some, rows[: len(some)])),
        ("read in order", count, scan),
    ]
    for name, done, act in work:
        begin, used = time.perf_counter(), time.process_time()
        act()
        wall, processor = time.perf_counter() - begin, time.process_time() - used
        print(f"  {name}: {done / wall:,.0f}, {done / processor:,.0f}")
    folder = Path(os.environ["PADDLELIKE_TABLE_STORE"])
    size = sum(one.stat().st_blocks * 512 for one in folder.rglob("*") if one.is_file())
    print(f"  {size >> 20:,} MiB on disk for {count * 64 >> 20:,}")
    store.close()


if __name__ == "__main__":
    main()
