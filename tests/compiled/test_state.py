"""Persistables live on the device between runs; everybody else sees their values as ever."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from paddlelike.compiled.engine import Engine
from paddlelike.core import LoDTensor
from paddlelike.errors import OperatorError
from tests.compiled.harness.nets import Net, batches, build, regression, train

pytestmark = pytest.mark.slow

# One order of float32 sums or another; the golden runs hold the same to 1e-5.
CLOSE = {"rtol": 1e-4, "atol": 1e-6}


def adam() -> Any:
    rate = fluid.layers.exponential_decay(0.05, 3, 0.9)
    clip = fluid.clip.GradientClipByGlobalNorm(1.0)
    return fluid.optimizer.Adam(rate, regularization=fluid.regularizer.L2Decay(1e-3), grad_clip=clip)


@pytest.fixture
def net() -> Net:
    return build(regression, adam)


def values(net: Net) -> dict[str, Any]:
    names = [v.name for v in net.main.list_vars() if v.persistable]
    return {name: np.array(net.scope.find_var(name).get_tensor()) for name in names}


def test_training_with_dropout_clip_decay_and_schedule_matches_numpy(net: Net) -> None:
    other = build(regression, adam)
    feeds = batches(10)
    got, want = train(net, feeds), train(other, feeds, "numpy")
    np.testing.assert_allclose(np.ravel(got), np.ravel(want), **CLOSE)
    for name, value in values(other).items():
        np.testing.assert_allclose(values(net)[name], value, err_msg=name, **CLOSE)
    assert net.scope.generator.state == other.scope.generator.state


def test_the_same_run_gives_the_same_bits(net: Net) -> None:
    other = build(regression, adam)
    assert np.ravel(train(net, batches(5))).tobytes() == np.ravel(train(other, batches(5))).tobytes()
    assert {n: v.tobytes() for n, v in values(net).items()} == {
        n: v.tobytes() for n, v in values(other).items()
    }


def test_a_save_between_steps_changes_nothing_and_either_engine_resumes_it(net: Net, tmp_path: Path) -> None:
    feeds = batches(6)
    straight = build(regression, adam)
    want = train(straight, feeds)
    first = train(net, feeds[:3])
    with fluid.scope_guard(net.scope):
        fluid.io.save_persistables(net.exe, str(tmp_path), net.main)
    state = net.scope.generator.state
    assert np.ravel(first + train(net, feeds[3:])).tobytes() == np.ravel(want).tobytes()
    for backend in ("jax", "numpy"):
        fresh = build(regression, adam)
        with fluid.scope_guard(fresh.scope):
            fluid.io.load_persistables(fresh.exe, str(tmp_path), fresh.main)
        fresh.scope.generator.state = state
        rest = train(fresh, feeds[3:], backend)
        np.testing.assert_allclose(np.ravel(rest), np.ravel(want[3:]), **CLOSE)


def test_a_load_while_values_are_on_the_device_replaces_them(net: Net, tmp_path: Path) -> None:
    with fluid.scope_guard(net.scope):
        fluid.io.save_persistables(net.exe, str(tmp_path), net.main)
    state, before = net.scope.generator.state, values(net)
    first = train(net, batches(3))
    with fluid.scope_guard(net.scope):
        fluid.io.load_persistables(net.exe, str(tmp_path), net.main)
    assert {n: v.tobytes() for n, v in values(net).items()} == {n: v.tobytes() for n, v in before.items()}
    net.scope.generator.state = state
    assert np.ravel(train(net, batches(3))).tobytes() == np.ravel(first).tobytes()


def test_a_value_that_a_script_sets_is_used_by_the_next_run(net: Net) -> None:
    train(net, batches(1))
    tensor = net.scope.find_var("fc_1.b_0").get_tensor()
    tensor.set(np.full(1, 5, "float32"), fluid.CPUPlace())
    other = build(regression, adam)
    train(other, batches(1), "numpy")
    other.scope.find_var("fc_1.b_0").get_tensor().set(np.full(1, 5, "float32"), fluid.CPUPlace())
    got, want = train(net, batches(1)), train(other, batches(1), "numpy")
    np.testing.assert_allclose(got, want, **CLOSE)


def test_a_run_counts_as_a_write_only_of_updated_variables(net: Net) -> None:
    train(net, batches(1))
    versions = {name: net.scope.find_var(name).version for name in ("fc_0.w_0", "learning_rate_0")
                if net.scope.find_var(name) is not None}  # fmt: skip
    train(net, batches(1))
    assert net.scope.find_var("fc_0.w_0").version > versions["fc_0.w_0"]
    test = net.main.clone(for_test=True)
    version = net.scope.find_var("fc_0.w_0").version
    program = fluid.CompiledProgram(test).with_backend("jax")
    net.exe.run(program, feed=batches(1)[0], fetch_list=net.fetch, scope=net.scope)
    assert net.scope.find_var("fc_0.w_0").version == version


def test_both_engines_run_in_turn_on_one_scope(net: Net) -> None:
    other = build(regression, adam)
    feeds = batches(6)
    got = [train(net, [feed], backend)[0] for feed, backend in zip(feeds, ["jax", "numpy"] * 3, strict=True)]
    np.testing.assert_allclose(np.ravel(got), np.ravel(train(other, feeds, "numpy")), **CLOSE)


def test_a_fetched_parameter_does_not_change_later(net: Net) -> None:
    program = fluid.CompiledProgram(net.main).with_backend("jax")
    (weight,) = net.exe.run(program, feed=batches(1)[0], fetch_list=["fc_0.w_0"], scope=net.scope)
    kept = weight.copy()
    weight += 0  # it belongs to the caller
    train(net, batches(2))
    np.testing.assert_array_equal(weight, kept)
    assert np.abs(values(net)["fc_0.w_0"] - kept).max() > 0


def test_copies_and_pickles_of_a_tensor_on_the_device_hold_its_elements() -> None:
    tensor = LoDTensor(np.zeros(3))
    tensor.adopt_from_device(np.arange(3.0))
    assert pickle.loads(pickle.dumps(tensor)).array.tolist() == [0, 1, 2]
    tensor.adopt_from_device(np.arange(3.0) + 1)
    assert copy.deepcopy(tensor).array.tolist() == [1, 2, 3]
    assert tensor.find_on_device() is not None
    tensor.set(np.zeros(3))
    assert tensor.find_on_device() is None
    assert tensor.shape() == [3]


def test_numpy_runs_startup_programs_so_initial_values_match_paddle(net: Net) -> None:
    other = build(regression, adam)
    with fluid.scope_guard(other.scope):
        other.exe.run(fluid.CompiledProgram(other.startup).with_backend("jax"))
    for name in ("fc_0.b_0", "fc_1.w_0_moment1_0"):
        np.testing.assert_array_equal(values(net)[name], values(other)[name])


@pytest.mark.parametrize(
    "optimizer",
    [fluid.optimizer.Adam, fluid.optimizer.Adagrad, fluid.optimizer.Ftrl],
    ids=lambda o: o.__name__,
)
def test_tables_are_updated_by_rows_and_kept_when_an_id_is_wrong(optimizer: Callable[..., Any]) -> None:
    def make() -> Any:
        ids = fluid.data("ids", [None, 3], "int64")
        return fluid.layers.mean(
            fluid.layers.square(fluid.embedding(ids, [9, 2], is_sparse=True, param_attr="table") - 0.5)
        )

    lazy = {"lazy_mode": True} if optimizer is fluid.optimizer.Adam else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fluid.errors.QuirkWarning)
        ours, theirs = (build(make, lambda: optimizer(0.1, **lazy)) for _ in range(2))
    kept = [v.name for v in ours.main.list_vars() if v.persistable]
    feeds = [{"ids": np.array([[1, 1, 4], [7, 4, 1]])}, {"ids": np.array([[4, 0, 0]])}]
    train(ours, feeds)
    before = {name: np.array(ours.scope.find_var(name).get_tensor()) for name in kept}
    with pytest.raises(OperatorError, match="Ids hold a value outside of 0 to 8"):
        train(ours, [{"ids": np.array([[4, 9, 0]])}])
    train(theirs, feeds, "numpy")
    for name in kept:
        np.testing.assert_array_equal(np.array(ours.scope.find_var(name).get_tensor()), before[name])
        want = np.array(theirs.scope.find_var(name).get_tensor())
        # Of five float32 terms, in another order.
        np.testing.assert_allclose(before[name], want, rtol=1e-5, atol=1e-7, err_msg=name)


@pytest.mark.parametrize(
    "optimizer",
    [
        fluid.optimizer.SGD,
        fluid.optimizer.Adagrad,
        lambda rate: fluid.optimizer.Adam(rate, lazy_mode=True),  # of no effect on a dense gradient
        lambda rate: fluid.optimizer.Momentum(rate, 0.9, use_nesterov=True),
    ],
    ids=["SGD", "Adagrad", "Adam", "Momentum"],
)
def test_a_dense_update_of_a_large_table_does_not_copy_the_table(
    optimizer: Callable[..., Any],
) -> None:
    shape = (1 << 14, 8)

    def make() -> Any:
        ids, others = (fluid.data(name, [None, 3], "int64") for name in ("ids", "others"))
        first, second = (
            fluid.embedding(one, list(shape), padding_idx=2, param_attr="table") for one in (ids, others)
        )
        return fluid.layers.mean(fluid.layers.square(first * 2.0 + second - 0.5))

    ours, theirs = (build(make, lambda: optimizer(0.5)) for _ in range(2))
    before = np.array(ours.scope.find_var("table").get_tensor())
    feeds = [
        {"ids": np.array([[1, 1, 4], [7, 2, 1]]), "others": np.array([[9, 9, 1], [2, 5, 16383]])},
        {"ids": np.array([[4, 0, 0]]), "others": np.array([[8, 8, 8]])},
    ]
    losses, wanted = train(ours, feeds), train(theirs, feeds, "numpy")
    np.testing.assert_allclose(losses, wanted, rtol=1e-6)
    for name in (v.name for v in ours.main.list_vars() if v.persistable):
        found, want = (np.array(net.scope.find_var(name).get_tensor()) for net in (ours, theirs))
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-7)  # sums in another order
    after = np.array(ours.scope.find_var("table").get_tensor())
    touched = {0, 1, 4, 5, 7, 8, 9, 16383}
    assert set(np.flatnonzero((before != after).any(1))) == touched
    (piece,) = next(v for key, v in ours.main.plans.items() if key[0] == "engine").pieces
    for executable in piece.compiled._executables.values():
        assert executable.run.memory_analysis().temp_size_in_bytes < before.nbytes


def test_an_operator_that_prints_copies_no_parameter_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    brought: set[int] = set()
    bring = Engine._bring_to_host

    def note(frame: Any, position: int) -> None:
        brought.add(position)
        bring(frame, position)

    def make() -> Any:
        layers = fluid.layers
        x, y = fluid.data("x", [None, 6]), fluid.data("y", [None, 1])
        error = layers.square_error_cost(layers.fc(x, 1, param_attr="w"), y)
        return layers.mean(layers.Print(error, print_phase="forward"))

    monkeypatch.setattr(Engine, "_bring_to_host", staticmethod(note))
    net = build(make, lambda: fluid.optimizer.Adam(0.1))
    train(net, batches(3))
    (engine,) = (v for key, v in net.main.plans.items() if key[0] == "engine")
    assert brought
    assert brought.isdisjoint(engine.plan.layout.persistables)


@pytest.mark.parametrize("optimizer", ["SGD", "Adagrad"])
@pytest.mark.parametrize("rate", [np.inf, np.nan])
def test_a_nan_learning_rate_reaches_all_rows_of_a_table_with_a_dense_gradient(
    optimizer: str, rate: float
) -> None:
    ours, theirs = (build(looked_up, lambda: getattr(fluid.optimizer, optimizer)(0.5)) for _ in range(2))
    for net, by in ((ours, "jax"), (theirs, "numpy")):
        train(net, LOOKED_UP, by)
        net.scope.find_var("learning_rate_0").get_tensor().set(np.full(1, rate, "float32"))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            train(net, LOOKED_UP, by)
    found, want = (np.array(net.scope.find_var("table").get_tensor()) for net in (ours, theirs))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
    assert np.isnan(found).mean() > 0.99


@pytest.mark.parametrize("odd", [np.nan, -1.0])
def test_a_negative_moment_makes_only_its_own_element_nan(odd: float) -> None:
    ours, theirs = (build(looked_up, lambda: fluid.optimizer.Adagrad(0.5)) for _ in range(2))
    for net, by in ((ours, "jax"), (theirs, "numpy")):
        train(net, LOOKED_UP, by)
        moment = net.scope.find_var("table_moment_0").get_tensor()
        changed = np.array(moment)
        changed[77, 3] = odd
        moment.set(changed)
        with np.errstate(invalid="ignore"):
            train(net, LOOKED_UP * 2, by)
    found, want = (np.array(net.scope.find_var("table").get_tensor()) for net in (ours, theirs))
    assert np.argwhere(np.isnan(found)).tolist() == np.argwhere(np.isnan(want)).tolist() == [[77, 3]]
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-7)  # sums in another order


LOOKED_UP = [{"ids": np.array([[1, 1, 4], [7, 2, 1]])}]


def looked_up() -> Any:
    """Return a loss of some rows of a table that is large enough to be updated by rows."""
    rows = fluid.embedding(fluid.data("ids", [None, 3], "int64"), [1 << 14, 8], param_attr="table")
    return fluid.layers.mean(fluid.layers.square(rows - 0.5))
