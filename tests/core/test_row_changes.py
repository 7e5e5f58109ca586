"""The rows of a table as they were when a save was asked for, while the table is trained."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from paddlelike.core import LoDTensor, memory, row_changes
from paddlelike.core.row_changes import (
    OldRows,
    find_tables,
    find_written_rows,
    keep_old_rows,
    note_rows,
    watch_rows,
)
from paddlelike.formats.elements import view_elements

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tables of some kilobytes count, and are read in pieces of 7 rows."""
    monkeypatch.setattr(row_changes, "LEAST", 0)
    monkeypatch.setattr(row_changes, "_PIECE", 7 * 64)
    yield
    assert not row_changes._kept


def make_table(rows: int) -> Array:
    """Return a table with numbers from 0 on, of which a row was updated."""
    table = memory.empty((rows, 16), np.dtype("float32"))
    table[...] = np.arange(table.size).reshape(table.shape)
    update(table, np.array([0]), 0)
    return table


def update(table: Array, rows: Array, number: float) -> None:
    (array,) = note_rows([table], rows)
    array[rows] += number


def keep(table: Array) -> OldRows:
    old = keep_old_rows(find_tables(), view_elements(table))
    assert old is not None
    return old


def test_a_reader_gets_the_old_rows_while_they_are_overwritten() -> None:
    """Before they are read, after it, twice, between two pieces."""
    table, rng = make_table(5000), np.random.default_rng(0)
    expected = table.tobytes()
    old, read = keep(table), b""
    update(table, np.arange(0, 5000, 3), 7)
    for piece in old:
        read += piece
        update(table, np.unique(rng.integers(0, 5000, 20)), 1)
    old.close()
    assert read == expected
    assert table.tobytes() != expected


def test_threads_update_rows_while_they_are_read() -> None:
    """The interpreter changes between three that write and one that reads as often as it can."""
    table, lock, done = make_table(5000), threading.Lock(), threading.Event()

    def train(seed: int) -> None:
        rng = np.random.default_rng(seed)
        while not done.is_set():
            with lock:  # which the reader holds at the instant of the save, and not while it reads
                update(table, np.unique(rng.integers(0, 5000, 300)), 1)

    threads = [threading.Thread(target=train, args=(seed,)) for seed in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            with lock:
                expected = table.tobytes()
                old = keep(table)
            read = b"".join(old)
            old.close()
            assert read == expected
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert expected != table.tobytes()


def test_a_table_overwritten_as_a_whole_is_copied_as_a_whole() -> None:
    table = make_table(2000)
    expected = table.tobytes()
    old = keep(table)
    pieces = iter(old)
    first = bytes(next(pieces))
    for number in (1, 2):
        (array,) = note_rows([table], None)
        array[...] = number
    assert (table == 2).all()
    assert first + b"".join(pieces) == expected
    with pytest.raises(RuntimeError, match="once"):
        list(old)
    old.close()


def test_unrecorded_writes_are_refused_or_go_to_new_memory() -> None:
    table = make_table(2000)
    expected = table.tobytes()
    tensor, other = LoDTensor(table), LoDTensor()
    old = keep(table)
    with pytest.raises(ValueError, match="read-only"):
        table[3] = 0
    with pytest.raises(ValueError, match="read-only"):
        np.add(table, 1, out=table)
    other._share_data_with(tensor)
    other._set_dims([1000, 32])
    other.set(np.zeros((1000, 32), "float32"))
    tensor.set(np.ones((2000, 16), "float32"))
    with tensor.writing() as array:
        array[...] = 2
    assert (np.asarray(tensor) == 2).all()
    assert b"".join(old) == expected
    old.close()
    table[3] = 0  # its memory is as it was


def test_a_table_whose_memory_others_may_write_keeps_no_old_rows() -> None:
    """A save takes a snapshot of it."""
    table = make_table(2000)
    tensor = LoDTensor(table)
    array = table[3:]
    assert keep_old_rows(find_tables(), view_elements(table)) is None
    del array
    with tensor.writing() as array:
        assert keep_old_rows(find_tables(), view_elements(table)) is None
    del array
    old = keep(table)
    assert keep_old_rows(find_tables(), view_elements(table)) is None  # two saves at once
    old.close()
    assert keep_old_rows(find_tables(), view_elements(make_table(2000)[1:])) is None  # not all of it
    narrow = memory.empty((50_000, 2), np.dtype("float32"))
    update(narrow, np.array([0]), 0)
    # The places of its rows would take half as much as they do.
    assert keep_old_rows(find_tables(), view_elements(narrow)) is None
    whole = memory.empty((5000, 16), np.dtype("float32"))
    assert keep_old_rows(find_tables(), view_elements(whole)) is None  # nobody notes its rows


def test_a_forked_process_writes_into_tables() -> None:
    table = make_table(2000)
    old = keep(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads: the child starts none
        child = os.fork()
    if child == 0:
        table[...] = 5
        update(table, np.array([1]), 1)
        os._exit(int(table.sum()) - 2000 * 16 * 5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 16
    assert b"".join(old) == table.tobytes()
    old.close()


def test_a_forked_process_records_rows_although_a_thread_of_its_parent_holds_the_lock() -> None:
    array = np.zeros((9, 2), "float32")
    tensor = LoDTensor(array)
    watch_rows(tensor)
    lock, held, forked = (
        row_changes._watched[id(array)].lock,
        threading.Event(),
        threading.Event(),
    )

    def hold() -> None:
        with lock.hold():
            held.set()
            forked.wait(30)

    other = threading.Thread(target=hold)
    other.start()
    held.wait(30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        signal.alarm(30)  # ends a child that waits forever
        note_rows([array], np.array([3, 1]))
        tensor.touch()
        found = find_written_rows(tensor, 0)
        os._exit(1 if found is not None and found.tolist() == [1, 3] else 0)
    forked.set()
    other.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
