"""Tables on a CPU that a save reads between steps, while the steps write rows of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import LoDTensor, row_changes
from paddlelike.core.row_changes import OldRows, find_tables, keep_old_rows
from paddlelike.errors import OperatorError
from paddlelike.formats.elements import view_elements

jax = pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)
pytestmark = pytest.mark.slow

ROWS = 5000


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tables of some kilobytes count, and are read in pieces of 7 rows."""
    monkeypatch.setattr(row_changes, "LEAST", 0)
    monkeypatch.setattr(row_changes, "_PIECE", 7 * 64)
    fluid.set_flags({"FLAGS_backend": "jax"})
    with fluid.scope_guard(fluid.Scope()):
        yield


def build(write: Callable[[Any, Any], Any], *, is_sparse: bool = True) -> fluid.Program:
    """Return a program whose loss is of the rows that are looked up in a table; ``write`` adds to it."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None, 2], "int64")
        words = fluid.embedding(ids, [ROWS, 16], is_sparse=is_sparse, param_attr="table")
        loss = fluid.layers.mean(fluid.layers.square(words))
        write(loss, main.global_block().var("table"))
    if fluid.global_scope().find_var("table") is None:
        fluid.Executor().run(startup)
    return main


def train(loss: Any, table: Any) -> None:
    fluid.optimizer.SGD(0.5).minimize(loss)


def run(main: fluid.Program, ids: Any) -> None:
    fluid.Executor().run(main, feed={"ids": np.asarray(ids, "int64")})


def get_tensor() -> LoDTensor:
    found: LoDTensor = fluid.global_scope().find_var("table").get_tensor()
    return found


def read() -> bytes:
    return bytes(view_elements(np.array(get_tensor().borrow())))


def keep() -> OldRows | None:
    borrowed = get_tensor().borrow()
    return keep_old_rows(find_tables(), view_elements(borrowed.held_array))


def clip(loss: Any, table: Any) -> None:
    fluid.optimizer.SGD(0.5, grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0)).minimize(loss)


def write_whole(loss: Any, table: Any) -> None:
    fluid.layers.assign(fluid.layers.scale(table, 3.0), table)


def train_dense(loss: Any, table: Any) -> None:
    fluid.optimizer.SGD(0.5, regularization=fluid.regularizer.L2Decay(0.1)).minimize(loss)


def fail(main: fluid.Program) -> None:
    with pytest.raises(OperatorError):
        run(main, [[1, ROWS + 7]])


def replace(main: fluid.Program) -> None:
    get_tensor().set(np.ones((ROWS, 16), "float32"))
    run(main, [[0, 4]])


BETWEEN: dict[str, Callable[[fluid.Program], None]] = {
    "a step": lambda main: run(main, [[3, 4999], [0, 4999]]),
    "another program that writes rows": lambda main: run(build(train), [[2, 3]]),
    "a program that writes all": lambda main: run(build(write_whole), [[2, 3]]),
    "a dense gradient": lambda main: run(build(train_dense, is_sparse=False), [[2, 3]]),
    "a program that reads": lambda main: run(build(lambda loss, table: None), [[2, 3]]),
    "a step that fails": fail,
    "a value that is set": replace,
    "numpy": lambda main: (fluid.set_flags({"FLAGS_backend": "numpy"}), run(main, [[3, 2]])),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("what", BETWEEN)
def test_a_snapshot_of_a_table_is_unchanged_after_later_steps(what: str) -> None:
    main = build(clip if what == "a step" else train)
    run(main, [[0, 1]])
    run(main, [[0, 1]])
    expected = read()
    old = keep()
    assert old is not None
    pieces = iter(old)
    found = bytes(next(pieces))
    BETWEEN[what](main)
    found += next(pieces)
    run(main, [[1, 9], [ROWS - 1, 20]])
    for piece in pieces:
        found += piece
    old.close()
    assert found == expected
    assert read() != expected


def also_write(loss: Any, table: Any) -> None:
    train(loss, table)
    write_whole(loss, table)


@pytest.mark.parametrize(
    ("write", "is_sparse"), [(train_dense, True), (also_write, True), (train, False), (train_dense, False)]
)
def test_a_table_changed_outside_of_updates_is_copied_whole(
    write: Callable[[Any, Any], None], is_sparse: bool
) -> None:
    """By one step in place of some rows: all of it may change."""
    main = build(write, is_sparse=is_sparse)
    run(main, [[0, 1]])
    run(main, [[0, 1]])
    expected = read()
    old = keep()
    assert old is not None
    pieces = iter(old)
    found = bytes(next(pieces))
    run(main, [[1, 9], [ROWS - 1, 20]])
    found += next(pieces)
    run(main, [[2, 9], [ROWS - 1, 20]])
    for piece in pieces:
        found += piece
    old.close()
    assert found == expected
    assert read() != expected


def test_a_save_keeps_its_values_while_devices_train_together() -> None:
    if len(jax.local_devices(backend="cpu")) < 2:  # as many as JAX makes when it is imported
        this = f"{__file__}::test_a_save_keeps_its_values_while_devices_train_together"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-m", "slow", this],
            env={**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout
        assert "1 passed" in done.stdout
        return
    main = build(train)
    run(main, [[0, 1]])
    run(main, [[0, 1]])
    expected = read()
    old = keep()
    assert old is not None
    places = [fluid.CPUPlace(), fluid.CPUPlace()]
    loss = main.global_block().var("mean_0.tmp_0")
    both = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, places=places)
    fluid.Executor().run(both, feed={"ids": np.array([[0, 5], [4, 3]])})
    assert b"".join(old) == expected
    old.close()
    assert read() != expected
