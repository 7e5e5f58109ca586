"""Dense gradients of embeddings that stay rows: all bits are those of the formula on the whole table.

But for the moments of Adam: an element of -0.0 stays so, where the formula on the table gives 0.0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import paddlelike as fluid
from paddlelike.errors import OperatorError
from paddlelike.executor import profile
from paddlelike.executor.plans import touched
from paddlelike.executor.plans.cached import get_plan

HEIGHT, WIDTH = 2048, 32
PADDING = 3
ODD = [0.0, -0.0, 1e-41, -1e-45, 3e38, np.inf, -np.inf, np.nan]  # with denormals

Rule = Callable[..., None]


def descend(p: Any, m: Any, g: Any, lr: Any) -> None:
    """SGD over the whole table."""
    p -= lr * g


def adapt(p: Any, m: Any, g: Any, lr: Any) -> None:
    """Adagrad over the whole table."""
    m += g * g
    p -= lr * g / (np.sqrt(m) + np.float32(1e-6))


def roll(p: Any, m: Any, g: Any, lr: Any) -> None:
    """Momentum over the whole table."""
    m *= np.float32(0.9)
    m += g
    p -= lr * m


SGD, ADAGRAD = fluid.optimizer.SGD, fluid.optimizer.Adagrad
RULES: dict[str, tuple[Any, Rule]] = {
    "sgd": (SGD, descend),
    "adagrad": (ADAGRAD, adapt),
    "momentum": (lambda rate: fluid.optimizer.Momentum(rate, 0.9), roll),
}


def build(
    optimizer: Any = SGD, lookups: int = 1, height: int = HEIGHT, use: Any = None, **options: Any
) -> tuple[Any, Any, Any]:
    """Return a program whose gradient of what is looked up is fed, its startup program, and its loss."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        losses = []
        for k in range(lookups):
            ids = fluid.data(f"ids{k}", [None], "int64")
            looked_up = fluid.embedding(
                ids, [height, WIDTH], padding_idx=PADDING, param_attr=fluid.ParamAttr(name="table"), **options
            )
            grad = fluid.data(f"grad{k}", [None, WIDTH])
            losses.append(fluid.layers.reduce_sum(looked_up * grad))
        rate = fluid.data("rate", [1])
        loss = fluid.layers.sums(losses)
        optimizer(rate).minimize(loss)
    return main, startup, loss


def count_by_rows(main: Any, fetches: Any = (), feed: Any = None) -> int:
    """Return how many steps of a run work on rows alone."""
    names = [v.name for v in main.global_block().vars.values() if v.is_data]
    plan = get_plan(main, feed or dict.fromkeys(names), list(fetches), None)
    return sum(step.kernel == "rows" for step in plan.steps)


def order_of_parts(main: Any) -> list[str]:
    """Return the ids whose gradients are added up, in the order of the program."""
    ops = main.global_block().ops
    of_grad = {op.output("W@GRAD")[0]: op.input("Ids")[0] for op in ops if op.type == "lookup_table_v2_grad"}
    sums = [op.input("X") for op in ops if op.type == "sum" and set(op.input("X")) <= set(of_grad)]
    return [of_grad[name] for name in (sums[0] if sums else of_grad)]


PROGRAMS = {name: {n: build(made, n) for n in (1, 3)} for name, (made, _) in RULES.items()}
ADAM = [build(lambda rate, lazy=lazy: fluid.optimizer.Adam(rate, lazy_mode=lazy)) for lazy in (False, True)]
few_ids = st.lists(st.sampled_from([0, 1, 2, PADDING, 5, 700, HEIGHT - 1]), max_size=12)
ids_strategy = st.one_of(few_ids, few_ids, few_ids, st.just([*range(0, HEIGHT, 2), 6]))  # half of the table


@settings(max_examples=50, deadline=None)
@given(
    name=st.sampled_from(sorted(RULES)),
    batches=st.lists(ids_strategy, min_size=1, max_size=3).filter(lambda b: len(b) != 2),
    rates=st.lists(st.sampled_from([0.1, 0.1, 0.1, 0.0, -0.0, -0.1, np.inf, np.nan]), min_size=1, max_size=3),
    odd_grads=st.booleans(),
    state=st.sampled_from([0.0, 0.0, -0.0, -1.0, np.nan, np.inf]),
    seed=st.integers(0, 1 << 16),
)
def test_sparse_updates_have_the_same_bits_as_the_dense_formula(
    name: str, batches: Any, rates: Any, odd_grads: bool, state: float, seed: int
) -> None:
    _, rule = RULES[name]
    main, startup, _ = PROGRAMS[name][len(batches)]
    assert count_by_rows(main) == (2 if len(batches) == 1 else len(batches) + 2)
    rng = np.random.default_rng(seed)
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    table = rng.standard_normal((HEIGHT, WIDTH)).astype("float32")
    table[[1, 6, 9]] = np.resize(np.float32(ODD), WIDTH)
    scope.find_var("table").get_tensor().set(table)
    moments = [n for n in scope.local_var_names() if "moment" in n or "velocity" in n]
    moment = np.zeros_like(table)
    moment[8:10] = state
    for one in moments:
        scope.find_var(one).get_tensor().set(moment)
    for rate in rates:
        feed: dict[str, Any] = {"rate": np.float32([rate])}
        parts = {}
        for k, ids in enumerate(batches):
            grad = rng.standard_normal((len(ids), WIDTH)).astype("float32")
            if odd_grads:
                grad[rng.random(grad.shape) < 0.1] = rng.choice(np.float32(ODD))
            feed |= {f"ids{k}": np.array(ids, "int64"), f"grad{k}": grad}
            part = np.zeros_like(table)
            with np.errstate(all="ignore"):
                for row, one in zip(ids, grad, strict=True):
                    if row != PADDING:
                        part[row] += one
                parts[f"ids{k}"] = part
        with np.errstate(all="ignore"):
            first, *more = order_of_parts(main)
            dense = parts[first]
            for other in more:
                dense = dense + parts[other]
            rule(table, moment, dense, np.float32(rate))
        versions = [scope.find_var(n).get_tensor().version for n in ("table", *moments)]
        exe.run(main, feed=feed, scope=scope)
        assert [scope.find_var(n).get_tensor().version for n in ("table", *moments)] == [
            v + 1 for v in versions
        ]
        _assert_same(scope, "table", table)
        for one in moments:
            _assert_same(scope, one, moment)


@settings(max_examples=20, deadline=None)
@given(
    batches=st.lists(ids_strategy, min_size=1, max_size=3),
    lazy=st.booleans(),
    odd_grads=st.booleans(),
    fresh=st.booleans(),
    state=st.sampled_from([0.0, -1.0, 1e-41, np.nan, np.inf]),
    seed=st.integers(0, 1 << 16),
)
def test_adam_sees_zeros_in_all_other_rows(
    batches: Any, lazy: bool, odd_grads: bool, fresh: bool, state: float, seed: int
) -> None:
    main, startup, _ = ADAM[lazy]
    assert count_by_rows(main) == 2
    rng = np.random.default_rng(seed)
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    names = ["table", *sorted(n for n in scope.local_var_names() if "moment" in n)]
    values = [rng.standard_normal((HEIGHT, WIDTH)).astype("float32") for _ in names]
    p, m1, m2 = values
    p[[1, 6, 9]] = np.resize(np.float32(ODD), WIDTH)
    m2 *= m2
    if fresh:
        m1[:] = m2[:] = 0.0
    m1[8:10], m2[9:11] = state, state
    for name, value in zip(names, values, strict=True):
        scope.find_var(name).get_tensor().set(value)
    b1, b2 = np.float32(0.9), np.float32(0.999)
    powers = 1.0 * b1, 1.0 * b2
    for ids in batches:
        grad = rng.standard_normal((len(ids), WIDTH)).astype("float32")
        if odd_grads:
            grad[rng.random(grad.shape) < 0.1] = rng.choice(np.float32(ODD))
        g = np.zeros_like(p)
        with np.errstate(all="ignore"):
            for row, one in zip(ids, grad, strict=True):
                if row != PADDING:
                    g[row] += one
            m1 *= b1
            m1 += g * np.float32(1 - float(b1))
            m2 *= b2
            m2 += g * g * np.float32(1 - float(b2))
            rate = float(np.float32(0.1)) * np.sqrt(1 - float(powers[1])) / (1 - float(powers[0]))
            p -= m1 / (np.sqrt(m2) + np.float32(1e-8)) * np.float32(rate)
        powers = powers[0] * b1, powers[1] * b2
        feed = {"ids0": np.array(ids, "int64"), "grad0": grad, "rate": np.float32([0.1])}
        versions = [scope.find_var(n).get_tensor().version for n in names]
        exe.run(main, feed=feed, scope=scope)
        assert [scope.find_var(n).get_tensor().version for n in names] == [v + 1 for v in versions]
        for name, value in zip(names, values, strict=True):
            _assert_same(scope, name, value)


def _assert_same(scope: Any, name: str, expected: Any) -> None:
    """Compare bits; which NaN comes of two is the processor's choice."""
    got = np.array(scope.find_var(name).get_tensor())
    one, other = (np.where(np.isnan(a), np.float32(np.nan), a).view(np.int32) for a in (got, expected))
    np.testing.assert_array_equal(one, other)


def test_a_moment_set_between_runs_is_used() -> None:
    main, startup, _ = PROGRAMS["adagrad"][1]
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    feed = {
        "ids0": np.int64([5]),
        "grad0": np.ones((1, WIDTH), "float32"),
        "rate": np.float32([0.1]),
    }
    exe.run(main, feed=feed, scope=scope)
    (name,) = [n for n in scope.local_var_names() if "moment" in n]
    moment = np.array(scope.find_var(name).get_tensor())
    moment[70] = -1.0  # its root is NaN
    scope.find_var(name).get_tensor().set(moment)
    exe.run(main, feed=feed, scope=scope)
    table = np.array(scope.find_var("table").get_tensor())
    assert np.isnan(table[70]).all()
    assert np.isfinite(np.delete(table, 70, axis=0)).all()


def test_a_velocity_set_between_runs_moves_a_row_that_never_had_a_gradient() -> None:
    main, startup, _ = PROGRAMS["momentum"][1]
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    feed = {"ids0": np.int64([5]), "grad0": np.ones((1, WIDTH), "float32"), "rate": np.float32([0.5])}
    exe.run(main, feed=feed, scope=scope)
    table = np.array(scope.find_var("table").get_tensor())
    (name,) = [n for n in scope.local_var_names() if "velocity" in n]
    velocity = np.array(scope.find_var(name).get_tensor())
    velocity[70] = 1.0
    scope.find_var(name).get_tensor().set(velocity)
    exe.run(main, feed=feed, scope=scope)
    roll(table, velocity, np.eye(HEIGHT, dtype="float32")[:, [5] * WIDTH], np.float32(0.5))
    _assert_same(scope, "table", table)
    _assert_same(scope, name, velocity)


def test_steps_in_another_scope_at_any_moment_of_a_step_change_nothing() -> None:
    main, startup, _ = PROGRAMS["momentum"][1]
    exe, first, second = fluid.Executor(), fluid.core.Scope(), fluid.core.Scope()
    exe.run(startup, scope=second)

    def step(scope: Any, id: int) -> None:
        feed = {"ids0": np.int64([id]), "grad0": np.ones((1, WIDTH), "float32"), "rate": np.float32([0.5])}
        exe.run(main, feed=feed, scope=scope)

    def interrupt(frame: Any, event: str, _: Any) -> Any:
        """At line ``wanted`` of what is known of a table, run a step in the second scope."""
        nonlocal lines
        if frame.f_code not in (touched._Known.find.__code__, touched._Known.remember.__code__):
            return None
        lines += event == "line"
        if event == "line" and lines == wanted:
            sys.settrace(before)
            step(second, 70)
        return interrupt

    before, wanted, lines, seen = sys.gettrace(), 0, 0, set()
    while lines == wanted:
        wanted, lines = wanted + 1, 0
        exe.run(startup, scope=first)
        first.find_var("table").get_tensor().set(np.ones((HEIGHT, WIDTH), "float32"))
        for scope, id in ((first, 5), (second, 60), (first, 6)):
            step(scope, id)
        sys.settrace(interrupt)
        step(first, 7)
        sys.settrace(before)
        step(first, 8)
        seen.add(np.array(first.find_var("table").get_tensor()).tobytes())
    assert len(seen) == 1  # the last run was not interrupted


@pytest.mark.parametrize(
    "main",
    [
        build(fluid.optimizer.Adamax)[0],
        build(lambda rate: fluid.optimizer.Adagrad(rate, epsilon=0.0))[0],
        build(lambda rate: SGD(rate, regularization=fluid.regularizer.L2Decay(0.1)))[0],
        build(lambda rate: SGD(rate, grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0)))[0],
        build(is_sparse=True)[0],
        build(height=100)[0],
    ],
    ids=["adamax", "epsilon 0", "decay", "clip", "sparse", "small"],
)
def test_gradients_that_others_read_stay_dense(main: Any) -> None:
    feed = dict.fromkeys(("ids0", "grad0", "rate"))
    assert count_by_rows(main, feed=feed) == 0


def test_a_gradient_that_is_fetched_is_dense() -> None:
    main, startup, loss = build()
    assert count_by_rows(main, [loss.name]) == 2
    assert count_by_rows(main, ["table@GRAD"]) == 0
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    feed = {"ids0": np.int64([5, 5]), "grad0": np.ones((2, WIDTH), "float32"), "rate": np.float32([0.1])}
    (grad,) = exe.run(main, feed=feed, fetch_list=["table@GRAD"], scope=scope)
    assert grad.shape == (HEIGHT, WIDTH)
    assert grad.sum() == 2 * WIDTH


def test_a_check_for_nan_sees_the_dense_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    main, startup, _ = build()
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    grad = np.zeros((1, WIDTH), "float32")
    feed = {"ids0": np.int64([5]), "grad0": grad, "rate": np.float32([0.1])}
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    try:
        exe.run(main, feed=feed, scope=scope)
        exe.run(main, feed={**feed, "rate": np.float32([-0.1])}, scope=scope)
        with pytest.raises(OperatorError, match="nan"):
            exe.run(main, feed={**feed, "grad0": grad + np.float32(np.nan)}, scope=scope)
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})


@pytest.mark.parametrize("flag", ["FLAGS_check_nan_inf", None])
def test_a_computed_learning_rate_is_kept_for_all_tables(flag: str | None) -> None:
    """A profile, like a check for nan, runs the updates one by one."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None], "int64")
        tables = [fluid.embedding(ids, [HEIGHT, WIDTH], param_attr=name) for name in "ab"]
        rate = fluid.layers.exponential_decay(0.1, 2, 0.5)
        ADAGRAD(rate * 0.5).minimize(fluid.layers.mean(tables[0] * tables[1]))
    assert count_by_rows(main) == 4
    exe, feed, found = fluid.Executor(), {"ids": np.int64([5, 9, 5])}, []
    for one_by_one in (False, True):
        scope = fluid.core.Scope()
        exe.run(startup, scope=scope)
        if one_by_one and flag is None:
            profile.start()
        fluid.set_flags({"FLAGS_check_nan_inf": one_by_one and flag is not None})
        try:
            exe.run(main, feed=feed, scope=scope)
        finally:
            profile.stop()
            fluid.set_flags({"FLAGS_check_nan_inf": False})
        found.append([np.array(scope.find_var(name).get_tensor()).tobytes() for name in "ab"])
    assert found[0] == found[1]


def test_an_explanation_says_which_steps_work_on_rows() -> None:
    main, startup, _ = build()
    exe = fluid.Executor()
    scope = fluid.core.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        feed = {"ids0": np.int64([5, 9]), "grad0": np.ones((2, WIDTH), "float32"), "rate": np.float32([0.1])}
        explained = exe.explain(main, feed, [])
    by_type = {step.operators[0]: step for step in explained.steps}
    assert by_type["lookup_table_v2_grad"].kernel == by_type["sgd"].kernel == "rows"
    assert by_type["sgd"].bytes_moved == 4 * (3 * 2 * WIDTH + 1)  # table, gradient, rate
    assert "1 by rows" in str(explained)


def test_an_explanation_counts_the_whole_table_where_all_rows_change() -> None:
    main, startup, _ = build(lambda rate: fluid.optimizer.Momentum(rate, 0.9))
    exe, scope = fluid.Executor(), fluid.core.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        feed = {"ids0": np.int64([5, 9]), "grad0": np.ones((2, WIDTH), "float32"), "rate": np.float32([0.1])}
        explained = exe.explain(main, feed, [])
    (update,) = (step for step in explained.steps if step.operators[0] == "momentum")
    assert update.bytes_moved == 4 * WIDTH * (4 * HEIGHT + 2) + 4  # table and velocity twice, gradient, rate
