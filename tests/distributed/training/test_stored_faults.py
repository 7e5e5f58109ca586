"""Stores of rows that fail: each call of them, damage of their files, and full disks."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import rows as row_index
from paddlelike.distributed import growing_tables as tables
from paddlelike.errors import OperatorError, SaveError, StorageError
from paddlelike.ops.kernels.growing_rows import GrowingRows, RowRule
from paddlelike.storage import row_store
from paddlelike.storage.row_store import RowStore
from tests.helpers.fresh import fresh_programs

RULE = RowRule("uniform_random", -1.0, 1.0)
BYTE = np.dtype("u1")


@pytest.fixture(autouse=True)
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "stores"
    monkeypatch.setenv("PADDLELIKE_TABLE_STORE", str(folder))
    monkeypatch.setenv("PADDLELIKE_HOT_ROWS", "5")
    return folder


class Failing:
    """A face of an object; call number ``failing``, of all faces with one list of calls, raises OSError."""

    def __init__(self, inner: Any, calls: list[str], failing: int) -> None:
        self.inner, self.calls, self.failing = inner, calls, failing

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.inner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            self.calls.append(name)
            if len(self.calls) == self.failing:
                raise OSError(errno.EIO, f"{name} of a test")
            return function(*arguments, **options)

        return call if name in ("preadv", "posix_fallocate", "memmap") else function


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


def test_a_failing_store_call_gives_a_correct_table_or_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    right = use(GrowingRows(3, np.dtype("float32"), RULE))
    right["rows"] = dict(zip(right.pop("ids"), right["rows"], strict=True))
    seen = set()
    for number in range(1, 1000):
        calls: list[str] = []
        for name in ("os", "np"):
            monkeypatch.setattr(row_store, name, Failing(getattr(sys.modules[__name__], name), calls, number))
        try:
            table = GrowingRows(3, np.dtype("float32"), RULE, is_stored=True)
            assert table._cold is not None
            store = table._cold
            monkeypatch.setattr(store, "_file", Failing(store._file, calls, number))
            found = use(table)
        except StorageError as error:
            seen.add(calls[-1])
            assert "of a test" in str(error)  # noqa: PT017
            continue
        assert len(calls) < number  # no failure went unseen
        found["rows"] = dict(zip(found.pop("ids"), found["rows"], strict=True))
        found["sum"] = pytest.approx(found["sum"], rel=1e-6)
        assert found == right
        break
    assert seen >= {"preadv", "memmap"}


def flip(store: RowStore, at: int, bit: int) -> None:
    """Flip a bit of the file."""
    assert store._records.base is not None
    store._records.view(np.uint8).reshape(-1)[at] ^= np.uint8(1 << bit)


@pytest.mark.parametrize("width", [4, 12, 6])
def test_every_flipped_bit_of_a_store_file_is_an_error_of_a_scan_and_a_read(width: int, stores: Path) -> None:
    store, rows = RowStore(width, BYTE), np.random.default_rng(1).integers(0, 256, (3, width), np.uint8)
    ids = np.array([0, -5, 1 << 40])
    store.write(ids, rows)
    for at in range(3 * 4 * store._records.shape[1]):
        for bit in range(8):
            flip(store, at, bit)
            for read in (lambda: list(store.scan()), lambda: store.read(ids)):
                with pytest.raises(StorageError, match="cannot be read: the checksum of a row") as info:
                    read()
                assert "last save" in str(info.value.hint)
            flip(store, at, bit)
    np.testing.assert_array_equal(store.read(ids)[1], rows)


@pytest.mark.parametrize("damage", ["zeros", "exchange", "another", "cut"])
def test_a_store_file_with_lost_or_exchanged_records_is_an_error(damage: str, stores: Path) -> None:
    store, ids = RowStore(8, BYTE), np.arange(100_000)
    store.write(ids, np.zeros((len(ids), 8), np.uint8))
    if damage == "zeros":
        store._records[:4096] = 0
    elif damage == "exchange":
        store._records[[3, 70_000]] = store._records[[70_000, 3]]
    elif damage == "another":
        store._records[3] = store._records[4]
    else:
        os.ftruncate(store._file.fileno(), 1 << 16)
    for read in (lambda: list(store.scan()), lambda: store.read(ids), lambda: store.remove(ids[40_000:])):
        with pytest.raises(StorageError, match=r"the (checksum of a row|file ends too early)"):
            read()


def test_a_store_whose_rows_are_replaced_and_removed_holds_what_a_dict_holds(
    stores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_store, "_BLOCK", 100)
    rng, store = np.random.default_rng(3), RowStore(6, BYTE)
    expected: dict[int, bytes] = {}
    for _ in range(60):
        ids = rng.permutation(rng.integers(0, 900, 200) * (1 << 52))
        ids = ids[np.unique(ids, return_index=True)[1]]
        if rng.random() < 0.5:
            rows = rng.integers(0, 256, (len(ids), 6), np.uint8)
            store.write(ids, rows)
            expected.update(zip(ids.tolist(), map(bytes, rows), strict=True))
        else:
            store.remove(ids)
            for one in ids.tolist():
                expected.pop(one, None)
        asked = np.arange(900) * (1 << 52)
        there, rows = store.read(asked)
        assert dict(zip(asked[there].tolist(), map(bytes, rows), strict=True)) == expected
        scanned = [(ids.tolist(), list(map(bytes, rows))) for ids, rows in store.scan()]
        found = [pair for part in scanned for pair in zip(*part, strict=True)]
        assert dict(found) == expected
        assert len(found) == len(expected)
        assert store._count <= 900
        assert list(stores.iterdir()) == []


class Stop(BaseException):
    """Such an exception as KeyboardInterrupt."""


def stop_at(line: int, call: Callable[[], object]) -> bool:
    """Raise Stop before a line, counted as they run, of the store and its index; return whether it ran."""
    left = line

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in (row_store.__file__, row_index.__file__):
            return None
        left -= event == "line"
        if not left and event == "line":
            sys.settrace(None)
            raise Stop
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Stop:
        return True
    finally:
        sys.settrace(before)
    return False


def fill(ids: np.ndarray[Any, Any], version: int) -> Any:
    return (ids[:, None] * 10 + version).repeat(3, axis=1).astype(np.int32)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # Ctrl-C can leave this work to Python
@pytest.mark.parametrize("do", ["write", "remove", "clear"])
def test_a_call_that_ctrl_c_ends_leaves_each_row_old_or_new(do: str, stores: Path) -> None:
    """It also does all its work when it is called again."""
    every = np.arange(40)
    for line in range(1, 1000):
        store = RowStore(3, np.dtype("i4"))
        store.write(every[:10], fill(every[:10], 0))
        store.remove(np.array([2, 7]))
        calls: dict[str, tuple[Callable[[], object], set[int], int]] = {
            "write": (partial(store.write, every[5:30], fill(every[5:30], 1)), {0, 1, 3, 4, 5, 6, 8, 9}, 30),
            "remove": (partial(store.remove, np.array([0, 1, 3, 4, 9])), {5, 6, 8}, 10),
            "clear": (store.clear, set(), 10),
        }
        call, stay, come = calls[do]
        stopped = stop_at(line, call)
        for again in (False, True):
            if again:
                call()
            there, found = store.read(every)
            assert stay <= set(every[there].tolist()) <= set(range(come))
            for one, row in zip(every[there].tolist(), found.tolist(), strict=True):
                versions = (1,) if again and do == "write" and one >= 5 else (0, 1)
                assert row in [[one * 10 + version] * 3 for version in versions]
            scanned = [one for ids, _ in store.scan() for one in ids.tolist()]
            assert sorted(scanned) == every[there].tolist()
        if not stopped:
            break
    assert 20 < line < 999


def test_a_forked_process_and_its_parent_scan_a_store_at_the_same_time(stores: Path) -> None:
    store, ids = RowStore(8, BYTE), np.arange(300_000)
    store.write(ids, np.zeros((len(ids), 8), np.uint8))
    parts = store.scan()
    next(parts)
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if sum(len(some) for some, _ in store.scan()) == len(ids) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sum(len(some) for some, _ in parts) == len(ids) - row_store._BLOCK  # the child moved no offset


@pytest.mark.parametrize("writer", ["parent", "child"])
def test_a_process_refuses_rows_that_another_one_changed_after_a_fork(writer: str, stores: Path) -> None:
    store, ids = RowStore(3, np.dtype("i4")), np.arange(10)
    store.write(ids, fill(ids, 0))
    (go, went), (ready, told) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            if writer == "child":
                store.write(ids[:1], fill(ids[:1], 1))
                code = 0
            os.write(told, b"x")
            os.read(go, 1)
            code = _count_refusals(store) if writer == "parent" else code
        finally:
            os._exit(code)
    os.read(ready, 1)
    if writer == "parent":
        store.write(ids[:1], fill(ids[:1], 1))
    os.write(went, b"x")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert (_count_refusals(store), code) == ((0, 3) if writer == "parent" else (3, 0))


def _count_refusals(store: RowStore) -> int:
    refused, ids = 0, np.arange(10)
    for call in (lambda: store.read(ids), lambda: list(store.scan()), lambda: store.write(ids, fill(ids, 2))):
        try:
            call()
        except StorageError as error:
            refused += "shares them since a fork" in str(error)
    return refused


def test_a_removal_on_a_full_disk_removes_the_rows(stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, ids = RowStore(8, BYTE), np.arange(1000)
    store.write(ids, np.zeros((len(ids), 8), np.uint8))

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", fail)
        store.remove(ids[10:])
    assert store.read(ids)[0].nonzero()[0].tolist() == list(range(10))
    assert store._count == 1000
    store.remove(ids[:1])
    assert store._count == 9


def train(main: fluid.Program, exe: fluid.Executor, first: int, count: int) -> None:
    exe.run(main, feed={"ids": np.arange(first, first + count).reshape(-1, 1)})


def build() -> tuple[fluid.Program, fluid.Executor]:
    ids = fluid.data("ids", [None, 1], "int64")
    found = tables.sparse_embedding(ids, [1, 64], table_class="SSDSparseTable", param_attr="emb")
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(found))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return fluid.default_main_program(), exe


@pytest.mark.obeys(
    "load the last save in a new process", "{} holds the whole save of {}: load it in a new process"
)
def test_a_save_of_a_damaged_store_writes_nothing_and_names_the_last_save(
    tmp_path: Path, stores: Path
) -> None:
    with fresh_programs():
        main, exe = build()
        train(main, exe, 0, 20_000)
        train(main, exe, 20_000, 8)
        saved = str(tmp_path / "saved")
        fluid.io.save_persistables(exe, saved, main)
        before = {path.name: path.read_bytes() for path in Path(saved).iterdir()}
        values = gather_rows()
        store = fluid.global_scope().find_var("emb").value._cold  # type: ignore[union-attr]
        flip(store, 10_000 * store._records.itemsize * store._records.shape[1], 3)
        for delta in (False, True):
            with pytest.raises(SaveError, match=r"nothing was saved: .* checksum of a row") as info:
                fluid.io.save_persistables(exe, saved, main, delta=delta)
            assert f"{saved} holds the whole save of" in str(info.value.hint)
            with pytest.raises(SaveError) as info:
                fluid.io.save_persistables(exe, str(tmp_path / "other"), main, delta=delta)
            assert info.value.hint == "load the last save in a new process"
        assert {path.name: path.read_bytes() for path in Path(saved).iterdir()} == before
    with fresh_programs():
        main, exe = build()
        fluid.io.load_persistables(exe, saved, main)
        assert gather_rows() == values


def gather_rows() -> dict[int, bytes]:
    rows = fluid.global_scope().find_var("emb").value.gather()  # type: ignore[union-attr]
    return {int(one): row.tobytes() for one, row in zip(rows.row_array, rows.held_array, strict=True)}


@pytest.mark.obeys("free space, or let PADDLELIKE_TABLE_STORE name a folder on another disk")
def test_a_step_or_save_on_a_full_disk_is_refused_and_changes_nothing(
    stores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fresh_programs():
        main, exe = build()
        train(main, exe, 0, 8)
        table, counts = (fluid.global_scope().find_var(name).value for name in ("emb", "emb_counts"))
        before = [one.gather() for one in (table, counts)]  # type: ignore[union-attr]
        real = os.fstatvfs

        def fstatvfs(file: int) -> os.statvfs_result:
            facts = list(real(file))
            facts[4] = 100  # free blocks, for all but root
            return os.statvfs_result(facts)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fstatvfs", fstatvfs)
            with pytest.raises(OperatorError, match="0 MiB are left on its disk") as info:
                train(main, exe, 100, 8)
            with pytest.raises(SaveError, match=r"nothing was saved: .* 0 MiB are left on its disk") as save:
                fluid.io.save_persistables(exe, str(stores / "saved"), main)
        assert info.value.hint == "free space, or let PADDLELIKE_TABLE_STORE name a folder on another disk"
        assert save.value.hint == info.value.hint
        after = [one.gather() for one in (table, counts)]  # type: ignore[union-attr]
        for old, new in zip(before, after, strict=True):
            np.testing.assert_array_equal(old.row_array, new.row_array)
            np.testing.assert_array_equal(np.asarray(old.held_array), np.asarray(new.held_array))
        train(main, exe, 100, 8)
        assert table.count_rows() == 16  # type: ignore[union-attr]


@pytest.mark.parametrize("how", [{"days": 2, "show_click_decay_rate": 0.5}, None])
def test_a_table_with_a_damaged_counter_is_not_shrunk_in_part(
    how: dict[str, float] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_store, "_BLOCK", 100)
    with fresh_programs():
        main, exe = build()
        train(main, exe, 0, 1000)
        train(main, exe, 1000, 8)
        counts = fluid.global_scope().find_var("emb_counts").value  # type: ignore[union-attr]
        before = np.concatenate([rows for _, rows in counts.blocks()])
        bit = 950 * 4 * counts._cold._records.shape[1] + 9, 3
        flip(counts._cold, *bit)
        with pytest.raises(StorageError, match="the checksum of a row"):
            tables.age(main) if how is None else tables.shrink(program=main, **how)
        flip(counts._cold, *bit)
        np.testing.assert_array_equal(np.concatenate([rows for _, rows in counts.blocks()]), before)


_FULL = """
import resource, signal, sys, numpy as np
from paddlelike.errors import StorageError
from paddlelike.storage.row_store import RowStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = RowStore(1024, np.dtype("u1"))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))  # files end there, as on a full disk
try:
    for first in range(0, 10**6, 10_000):
        store.write(np.arange(first, first + 10_000), np.zeros((10_000, 1024), "u1"))
except StorageError as error:
    print("refused:", error)
"""


def test_a_store_that_cannot_write_is_refused_and_leaves_no_file_and_no_traceback(stores: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _FULL], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"refused: {stores} has no room for ")
    assert done.stderr == ""
    assert not list(stores.iterdir())
