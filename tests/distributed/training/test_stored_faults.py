"""Stores of rows that fail: each call of them, damage of their files, and full disks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed import growing_tables as tables
from paddlelike.errors import OperatorError, SaveError, StorageError
from paddlelike.ops.kernels.growing_rows import GrowingRows, RowRule
from paddlelike.storage import row_store
from paddlelike.storage.row_store import RowStore
from tests.helpers.fresh import fresh_programs

pytest.importorskip("rocksdict", reason="the extra store is not installed")

pytestmark = pytest.mark.slow  # the extra store is in test-all

RULE = RowRule("uniform_random", -1.0, 1.0)


@pytest.fixture(autouse=True)
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "stores"
    monkeypatch.setenv("PADDLELIKE_TABLE_STORE", str(folder))
    monkeypatch.setenv("PADDLELIKE_HOT_ROWS", "5")
    return folder


class Database:
    """RocksDB's face, whose call number ``failing`` raises as RocksDB does."""

    def __init__(self, inner: Any, failing: int) -> None:
        self.inner, self.failing, self.calls = inner, failing, 0

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.inner, name)

        def call(*arguments: Any) -> Any:
            self.calls += 1
            if self.calls == self.failing:
                raise Exception(f"IO error: {name} of a test")
            return function(*arguments)

        return call


def use(table: GrowingRows) -> dict[str, Any]:
    """All that a table does with its store; return what it holds."""
    table.add_rows(np.arange(20))
    table.find_rows(np.array([3, 17, 40]))
    table.find_rows(np.array([1]))
    table.forget(np.array([2, 5, 99]))
    table.find_rows(np.arange(8, 12))
    for _, rows in table.blocks(change=True):
        rows *= 2
    sums = sum(float(rows.sum()) for _, rows in table.blocks())
    whole = table.gather()
    return {"ids": whole.rows(), "rows": np.asarray(whole.held_array).tolist(), "sum": sums}


def test_a_failing_store_call_gives_a_correct_table_or_an_error() -> None:
    right, number = use(GrowingRows(3, np.dtype("float32"), RULE)), 0
    right["rows"] = [row for _, row in sorted(zip(right["ids"], right["rows"], strict=True))]
    right["ids"].sort()
    while True:
        number += 1
        table = GrowingRows(3, np.dtype("float32"), RULE, is_stored=True)
        assert table._cold is not None
        store = table._cold._store
        database = store._db = Database(store._db, number)
        if database.failing > number + 100:
            break
        try:
            found = use(table)
        except StorageError as error:
            assert "of a test" in str(error)  # noqa: PT017
            assert "last save" in str(error.hint)  # noqa: PT017
            continue
        assert database.calls < number  # no failure went unseen
        found["sum"] = right["sum"] = pytest.approx(found["sum"], rel=1e-6)
        assert found == right
        break
    assert number > 10


def damage(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.fixture
def written(stores: Path) -> Iterator[tuple[RowStore, Path, np.ndarray[Any, Any]]]:
    """A store with 50,000 rows of 64 bytes, its one file, and the rows."""
    rows = np.random.default_rng(1).integers(0, 256, (50_000, 64), np.uint8)
    store = RowStore(64)
    store.write(np.arange(len(rows)), rows)
    store._db.flush()
    (path,) = stores.glob("paddlelike-rows-*/rows/*.sst")
    yield store, path, rows
    store.close()


@pytest.mark.parametrize("part", range(8))
def test_a_flipped_bit_in_a_store_file_is_an_error_in_every_scan_and_read(
    part: int, written: tuple[RowStore, Path, np.ndarray[Any, Any]]
) -> None:
    store, path, rows = written
    size = path.stat().st_size
    damage(path, 1000 + part * (size - 1000) // 8)
    ids = np.arange(len(rows))
    for read in (lambda: list(store.scan()), lambda: store.read(ids)):
        try:
            found = read()
        except StorageError as error:
            assert "cannot be read" in str(error)  # noqa: PT017
            continue
        # The bit is of what RocksDB has read already: then all rows are right.
        values = np.concatenate([part for _, part in found]) if isinstance(found, list) else found[1]
        np.testing.assert_array_equal(values, rows)


def test_a_store_scan_that_ends_early_is_an_error(
    written: tuple[RowStore, Path, np.ndarray[Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _, _ = written
    monkeypatch.setattr(row_store, "_BLOCK", 1000)
    inner = store._db

    class Short:
        def __getattr__(self, name: str) -> Any:
            if name == "items":
                return lambda: (pair for _, pair in zip(range(2500), inner.items(), strict=False))
            return getattr(inner, name)

    store._db = Short()
    with pytest.raises(StorageError, match="end too early"):
        list(store.scan())


def train(main: fluid.Program, exe: fluid.Executor, first: int, count: int) -> None:
    exe.run(main, feed={"ids": np.arange(first, first + count).reshape(-1, 1)})


def build() -> tuple[fluid.Program, fluid.Executor]:
    ids = fluid.data("ids", [None, 1], "int64")
    found = tables.sparse_embedding(ids, [1, 64], table_class="SSDSparseTable", param_attr="emb")
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(found))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return fluid.default_main_program(), exe


def test_a_save_of_a_damaged_store_writes_nothing_and_names_the_last_save(
    tmp_path: Path, stores: Path
) -> None:
    with fresh_programs():
        main, exe = build()
        train(main, exe, 0, 20_000)
        saved = str(tmp_path / "saved")
        fluid.io.save_persistables(exe, saved, main)
        before = {path.name: path.read_bytes() for path in Path(saved).iterdir()}
        store = fluid.global_scope().find_var("emb").value._cold._store  # type: ignore[union-attr]
        store._db.flush()
        path = max(stores.glob("paddlelike-rows-*/rows/*.sst"), key=lambda one: one.stat().st_size)
        damage(path, path.stat().st_size // 2)
        for delta in (False, True):
            with pytest.raises(SaveError, match=r"nothing was saved: .* checksum mismatch") as info:
                fluid.io.save_persistables(exe, saved, main, delta=delta)
            assert f"{saved} holds the whole save of" in str(info.value.hint)
        assert {path.name: path.read_bytes() for path in Path(saved).iterdir()} == before


def test_a_step_on_a_full_disk_is_refused_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with fresh_programs():
        main, exe = build()
        train(main, exe, 0, 8)
        table, counts = (fluid.global_scope().find_var(name).value for name in ("emb", "emb_counts"))
        before = [one.gather() for one in (table, counts)]  # type: ignore[union-attr]
        real = row_store.os.statvfs

        def statvfs(path: Any) -> Any:
            facts = list(real(path))
            facts[4] = 100  # free blocks, for all but root
            return row_store.os.statvfs_result(facts)

        with monkeypatch.context() as patch:
            patch.setattr(row_store.os, "statvfs", statvfs)
            with pytest.raises(OperatorError, match="MiB left on its disk") as info:
                train(main, exe, 100, 8)
        assert "PADDLELIKE_TABLE_STORE" in str(info.value.hint)
        after = [one.gather() for one in (table, counts)]  # type: ignore[union-attr]
        for old, new in zip(before, after, strict=True):
            np.testing.assert_array_equal(old.row_array, new.row_array)
            np.testing.assert_array_equal(np.asarray(old.held_array), np.asarray(new.held_array))
        train(main, exe, 100, 8)
        assert table.count_rows() == 16  # type: ignore[union-attr]


_FULL = """
import resource, signal, sys, numpy as np
from paddlelike.errors import StorageError
from paddlelike.storage.row_store import RowStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = RowStore(1024)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))  # files end there, as on a full disk
try:
    for first in range(0, 10**6, 10_000):
        store.write(np.arange(first, first + 10_000), np.zeros((10_000, 1024), "u1"))
except StorageError as error:
    print("refused:", error)
"""


def test_a_store_that_cannot_write_is_refused_and_leaves_no_folder_and_no_traceback(stores: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _FULL], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("refused: the rows in ")
    assert done.stderr == ""
    assert not list(stores.glob("paddlelike-rows-*"))
