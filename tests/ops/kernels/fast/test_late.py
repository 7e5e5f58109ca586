"""When compiled kernels are chosen, and what is said where they cannot be."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import row_changes
from paddlelike.errors import UnsupportedError
from paddlelike.ops.kernels.fast import late, sums
from paddlelike.ops.kernels.fast.late import FLAG, FastKernel, compile_late
from paddlelike.ops.update.momentum import momentum
from tests.helpers.fast_kernels import needs_numba
from tests.helpers.small_networks import run

LARGE = np.zeros(1 << 20, np.float32)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FLAG, raising=False)
    monkeypatch.setattr(late, "_faults", [])
    monkeypatch.setattr(late, "_work", [0])
    monkeypatch.setattr("paddlelike.framework.flags._flags", {})


def pretend_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late, "_look_for_numba", lambda: "numba is not installed")


def make_kernel(monkeypatch: pytest.MonkeyPatch, *, exact: bool, asked: int | None = None) -> FastKernel:
    monkeypatch.setattr(late, "_look_for_numba", lambda: None)
    monkeypatch.setattr(late, "compile_function", lambda function, *_, **__: function)
    monkeypatch.setattr(late, "KERNELS", {})
    return compile_late("void(T[::1])", least=1000, asked=asked, exact=exact)(lambda x: None)


def test_without_numba_every_operator_runs_on_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_missing(monkeypatch)
    assert sums.add_rows.choose(LARGE.size, LARGE) is None
    assert late.describe() == "none: numba is not installed"


def test_requesting_kernels_without_numba_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pretend_missing(monkeypatch)
    fluid.set_flags({FLAG: True})
    with pytest.raises(UnsupportedError, match="FLAGS_use_fast_kernels is True, but numba is not") as caught:
        run(fluid.layers.relu(fluid.data("x", [2, 3])), x=np.ones((2, 3), np.float32))
    assert "paddlelike[fast]" in str(caught.value)


def test_the_flag_may_be_set_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_missing(monkeypatch)
    monkeypatch.setenv(FLAG, "1")
    with pytest.raises(UnsupportedError):
        late.check_flag()
    monkeypatch.setenv(FLAG, "0")
    late.check_flag()


def test_array_size_and_flag_decide_whether_a_kernel_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = make_kernel(monkeypatch, exact=False)
    assert kernel.choose(999, LARGE) is None
    assert kernel.choose(1000, LARGE) is kernel.function
    fluid.set_flags({FLAG: False})
    assert kernel.choose(1000, LARGE) is None


@needs_numba
@pytest.mark.slow
def test_kernels_give_the_same_results_for_read_only_arrays() -> None:
    fluid.set_flags({FLAG: True})
    rows, values = np.arange(4096) % 7, np.random.default_rng(0).random((4096, 64), np.float32)
    expected = sums.sum_rows(rows, values, 9)
    values = values[:]
    values.flags.writeable = False
    assert (sums.sum_rows(rows, values, 9) == expected).all()
    assert sums.add_rows.choose(values.size, values) is not None
    assert not values.flags.writeable
    nobodys = np.frombuffer(values.tobytes(), np.float32).reshape(values.shape)
    assert sums.add_rows.choose(values.size, nobodys) is None


@needs_numba
@pytest.mark.slow
def test_a_step_during_a_save_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chains of a CRF read its transitions in a compiled kernel; numpy adds in another order."""
    fluid.set_flags({FLAG: True})
    fluid.default_startup_program().random_seed = 5
    monkeypatch.setattr(row_changes, "LEAST", 1 << 10)
    x, label = fluid.data("x", [None, 24], lod_level=1), fluid.data("label", [None, 1], "int64", lod_level=1)
    loss = fluid.layers.mean(fluid.layers.linear_chain_crf(x, label, fluid.ParamAttr("weights")))
    fluid.optimizer.Momentum(0.1, 0.9, regularization=fluid.regularizer.L2Decay(0.1)).minimize(loss)
    exe, rng = fluid.Executor(), np.random.default_rng(0)
    feed = {
        "x": fluid.create_lod_tensor(rng.random((600, 24), np.float32), [[60] * 10], fluid.CPUPlace()),
        "label": fluid.create_lod_tensor(rng.integers(0, 24, (600, 1)), [[60] * 10], fluid.CPUPlace()),
    }
    trained = []
    for is_saved in (False, True):
        with fluid.scope_guard(fluid.Scope()):
            exe.run(fluid.default_startup_program())
            weights = fluid.global_scope().find_var("weights").get_tensor()
            exe.run(feed=feed)
            before, calls = weights.array.tobytes(), late.count_calls()["sequence.sum_chains"]
            found = row_changes.find_tables() if is_saved else {}
            old = row_changes.keep_old_rows(found, weights.array.data)
            for _ in range(3):
                exe.run(feed=feed)
            assert late.count_calls()["sequence.sum_chains"] == calls + 3
            trained.append(weights.array.tobytes())
            if is_saved:
                assert old is not None
                assert b"".join(old) == before
                old.close()
    assert trained[0] == trained[1]


def test_a_requested_kernel_is_chosen_for_less_work(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = make_kernel(monkeypatch, exact=False, asked=100)
    assert kernel.choose(100, LARGE) is None
    fluid.set_flags({FLAG: True})
    assert kernel.choose(100, LARGE) is kernel.function
    assert kernel.choose(99, LARGE) is None
    assert make_kernel(monkeypatch, exact=False).choose(100, LARGE) is None
    fluid.set_flags({FLAG: False})
    assert kernel.choose(100, LARGE) is None


def test_a_kernel_equal_to_numpy_is_compiled_only_when_worthwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = make_kernel(monkeypatch, exact=True)
    monkeypatch.delitem(sys.modules, "numba.core.registry", raising=False)
    monkeypatch.setattr(late, "_PAYS", 3000)
    assert [kernel.choose(1000, LARGE) is None for _ in range(4)] == [True, True, False, False]
    monkeypatch.setattr(late, "_work", [0])
    fluid.set_flags({FLAG: True})
    assert kernel.choose(1000, LARGE) is not None  # asked for: at once


def test_arrays_that_a_kernel_does_not_support_use_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = make_kernel(monkeypatch, exact=False)
    fixed = LARGE.copy()
    fixed.flags.writeable = False
    unaligned = np.zeros(4 * 2000 + 1, np.uint8)[1:].view(np.float32)
    for other in (LARGE[::2], LARGE.astype(np.float64), fixed, unaligned):
        assert kernel.choose(1 << 20, LARGE, other) is None
    assert kernel.choose(1 << 20, LARGE.astype(np.int64)) is None


def test_numba_is_not_tried_again_after_a_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kernel = make_kernel(monkeypatch, exact=False)

    def fail(*_: object, **__: object) -> None:
        raise ImportError("Numba needs NumPy 2.4 or less")

    monkeypatch.setattr(late, "compile_function", fail)
    with caplog.at_level(logging.WARNING):
        assert kernel.choose(1000, LARGE) is None
        assert kernel.choose(1000, LARGE) is None
    assert [record.getMessage().count("Numba needs NumPy") for record in caplog.records] == [1]
    fluid.set_flags({FLAG: True})
    with pytest.raises(UnsupportedError, match="Numba needs NumPy"):
        kernel.choose(1000, LARGE)


def test_the_kernel_cache_is_writable_only_by_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = late.find_cache()
    assert folder == tmp_path / "paddlelike" / "kernels"
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert late.find_cache() is None
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert late.find_cache() is None


def test_a_changed_file_with_equal_date_and_size_gets_another_cache_entry(tmp_path: Path) -> None:
    path, hashes = tmp_path / "kernel.py", set()
    for body in ("x + 1", "x - 1"):
        path.write_text(f"def kernel(x):\n    return {body}\n")
        os.utime(path, (0, 0))
        names: dict[str, Any] = {}
        exec(compile(path.read_text(), path, "exec"), names)
        hashes.add(late.hash_source(names["kernel"]))
    assert len(hashes) == 2


_SCRIPT = """
import sys, numpy as np, paddlelike as fluid
x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
fluid.optimizer.Adam(0.1).minimize(loss)
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
for _ in range(20):
    exe.run(feed={"x": np.ones((32, 13), "f"), "y": np.ones((32, 1), "f")}, fetch_list=[loss])
assert "numba" not in sys.modules and "llvmlite" not in sys.modules
"""


@needs_numba
@pytest.mark.slow
def test_a_small_network_does_not_import_numba() -> None:
    subprocess.run([sys.executable, "-c", _SCRIPT], check=True, env={**os.environ, FLAG: "1"}, timeout=120)


@needs_numba
@pytest.mark.slow
def test_explain_names_the_compiled_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    kernel = momentum.record({"use_nesterov": False}).dense
    assert kernel is not None
    monkeypatch.setattr(kernel, "_compiled", {})
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 200]), 500))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    exe = fluid.Executor()
    fluid.set_flags({FLAG: True})
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        told = exe.explain(main, {"x": np.ones((2, 200), np.float32)}, [loss])
    found = [step.compiled for step in told.steps if step.operators == ("momentum", "momentum")]
    assert found == [("momentum.momentum",)]
    assert "1 compiled" in str(told)
    assert list(tmp_path.rglob("*.nbi"))  # the next process finds it there
