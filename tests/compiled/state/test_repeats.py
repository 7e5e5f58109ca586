"""A run like the last one goes on with what that left; any other looks at all values again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from paddlelike.compiled.pieces.piece import Piece
from paddlelike.errors import OperatorError
from tests.compiled.harness.nets import Net, batches, build, regression, train

pytestmark = pytest.mark.slow

L = fluid.layers

# One order of float32 sums or another.
CLOSE = {"rtol": 1e-4, "atol": 1e-6}


def adam() -> Any:
    return fluid.optimizer.Adam(0.01)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The pieces whose values were looked at, by their lengths."""
    found: list[int] = []
    collect = Piece._collect

    def note(piece: Piece, frame: Any) -> Any:
        found.append(len(piece))
        return collect(piece, frame)

    monkeypatch.setattr(Piece, "_collect", note)
    return found


def values(net: Net) -> dict[str, Any]:
    names = [v.name for v in net.main.list_vars() if v.persistable]
    return {name: np.array(net.scope.find_var(name).get_tensor()) for name in names}


def assert_like_numpy(net: Net, act: Callable[[Net, str], list[Any]], make: Callable[[], Net]) -> None:
    """Compare what ``act`` returns, and all persistables, with those of numpy alone."""
    other = make()
    got, want = act(net, "jax"), act(other, "numpy")
    np.testing.assert_allclose(np.ravel(got), np.ravel(want), **CLOSE)
    for name, value in values(other).items():
        np.testing.assert_allclose(values(net)[name], value, err_msg=name, **CLOSE)


def test_only_the_first_run_reads_all_values_from_the_scope(looks: list[int]) -> None:
    net = build(regression, adam)
    assert_like_numpy(net, lambda one, by: train(one, batches(6), by), lambda: build(regression, adam))
    assert len(looks) == 1


def test_changing_batch_sizes_train_as_with_numpy(looks: list[int]) -> None:
    feeds = [feed for rows in (16, 16, 5, 5, 16) for feed in batches(1, rows)]
    net = build(regression, adam)
    assert_like_numpy(net, lambda one, by: train(one, feeds, by), lambda: build(regression, adam))
    assert len(looks) == 3


def test_two_programs_that_train_the_same_parameters_run_in_turn(looks: list[int]) -> None:
    def act(net: Net, by: str) -> list[Any]:
        with fluid.program_guard(other := fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            loss = regression() * 2.0
            fluid.optimizer.SGD(fluid.layers.fill_constant([1], "float32", 0.1)).minimize(loss)
        second = Net(other, net.startup, [loss], net.scope, net.exe)
        return [train(one, [feed], by)[0] for feed in batches(4) for one in (net, second)]

    assert_like_numpy(build(regression, adam), act, lambda: build(regression, adam))
    assert len(looks) == 2


@pytest.mark.parametrize("slide_steps", [0, 1])
def test_a_state_array_may_change_its_shape_after_the_first_run(slide_steps: int) -> None:
    """That of `auc` begins with a row for all steps, and holds one for each after the first."""

    def make() -> Net:
        return build(lambda: judge(slide_steps), adam)

    rng = np.random.default_rng(2)
    feeds = [
        {"x": rng.standard_normal((8, 6)).astype("float32"), "y": rng.integers(0, 2, (8, 1))}
        for _ in range(4)
    ]
    assert_like_numpy(make(), lambda net, backend: train(net, feeds, backend), make)


def judge(slide_steps: int) -> list[Any]:
    """Return a loss, and the AUC so far and of the last steps."""
    x, y = fluid.data("x", [None, 6]), fluid.data("y", [None, 1], "int64")
    share = L.fc(x, 2, act="softmax")
    area, of_steps, _ = L.auc(share, y, num_thresholds=15, slide_steps=slide_steps)
    return [L.mean(L.cross_entropy(share, y)), area, of_steps]


def test_a_variable_erased_and_set_again_is_read_anew() -> None:
    def act(net: Net, by: str) -> list[Any]:
        found = train(net, batches(2), by)
        net.scope.erase(["fc_0.b_0"])
        net.scope.var("fc_0.b_0").get_tensor().set(np.full(8, 2, "float32"))
        return found + train(net, batches(2), by)

    assert_like_numpy(build(regression, adam), act, lambda: build(regression, adam))


def test_a_replaced_value_is_read_by_the_next_run() -> None:
    def act(net: Net, by: str) -> list[Any]:
        found = train(net, batches(2), by)
        tensor = fluid.core.LoDTensor()
        tensor.set(np.full(8, 2, "float32"), fluid.CPUPlace())
        net.scope.find_var("fc_0.b_0").set_value(tensor)
        return found + train(net, batches(2), by)

    assert_like_numpy(build(regression, adam), act, lambda: build(regression, adam))


def test_a_run_uses_the_fed_value_of_a_persistable() -> None:
    def make() -> Any:
        scale = L.create_global_var([1], 3.0, "float32", persistable=True, name="scale")
        return L.reduce_sum(fluid.data("x", [None, 2]) * scale)

    feeds = [{"x": np.ones((3, 2), "float32"), "scale": np.full(1, n, "float32")} for n in (2, 2, 5)]
    assert np.ravel(train(build(make), feeds)).tolist() == [12, 12, 30]


def test_a_check_that_fails_later_leaves_the_persistables() -> None:
    def make() -> Any:
        rows = fluid.embedding(fluid.data("ids", [None, 3], "int64"), [9, 2], param_attr="table")
        return L.mean(L.square(rows - 0.5))

    good, bad = {"ids": np.array([[1, 1, 4]])}, {"ids": np.array([[4, 9, 0]])}
    net, other = build(make, adam), build(make, adam)
    train(net, [good] * 3)
    before = values(net)
    with pytest.raises(OperatorError, match="Ids hold a value outside of 0 to 8"):
        train(net, [bad])
    assert {n: v.tobytes() for n, v in values(net).items()} == {n: v.tobytes() for n, v in before.items()}
    np.testing.assert_allclose(train(net, [good])[-1], train(other, [good] * 4, "numpy")[-1], **CLOSE)


def test_every_run_counts_as_one_write() -> None:
    net = build(regression, adam)
    weight = net.scope.find_var("fc_0.w_0")
    seen = []
    for _ in range(4):
        train(net, batches(1))
        seen.append(weight.version)
    assert np.diff(seen).tolist() == [1, 1, 1]


ASYNCHRONOUS = """
import jax
jax.numpy.zeros(1).block_until_ready()  # from now on JAX computes in a thread of its own
import numpy as np
import paddlelike as fluid
L = fluid.layers
x = fluid.data("x", [512, 512])
kept = L.create_global_var([512, 512], 0.0, "float32", persistable=True, name="kept")
product = x
for _ in range(6):
    product = L.matmul(product, x)
L.assign(product, kept)
exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.global_scope()
exe.run(fluid.default_startup_program())
program = fluid.CompiledProgram(fluid.default_main_program()).with_backend("jax")
room = np.zeros(512 * 512 + 32, "float32")
start = -room.ctypes.data % 64 // 4  # XLA reads aligned arrays where they are
given = room[start : start + 512 * 512].reshape(512, 512)
want = np.linalg.matrix_power(np.eye(512) * 0.5, 7)
for _ in range(4):
    given[...] = np.eye(512) * 0.5
    exe.run(program, feed={"x": given})
    given.fill(9)
    np.testing.assert_allclose(np.array(scope.find_var("kept").get_tensor()), want, rtol=1e-6)
"""


def test_a_run_waits_for_every_result_before_the_caller_may_write_into_its_feeds() -> None:
    subprocess.run([sys.executable, "-c", ASYNCHRONOUS], check=True, timeout=100)
