"""Plans as one function: bits, versions and errors of the steps one by one, and no word of the program."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import OperatorError
from paddlelike.executor.exchange.feeds import put_feeds
from paddlelike.executor.plans import unrolled
from paddlelike.executor.plans.cached import get_plan
from paddlelike.executor.plans.rewrites import overwriting, scalars
from tests.helpers.fresh import fresh_programs

RNG = np.random.default_rng(11)
SMALL, LARGE = (RNG.standard_normal((rows, 40)).astype("float32") for rows in (6, 700))
IDS = fluid.create_lod_tensor(RNG.integers(0, 30, (9, 1)), [[2, 4, 3]], fluid.CPUPlace())


def classify(x: Any, ids: Any) -> Any:
    hidden = fluid.layers.fc(fluid.layers.fc(x, 30, act="relu"), 30, act="tanh")
    return fluid.layers.mean(fluid.layers.square(fluid.layers.fc(hidden, 1)))


def fit(x: Any, ids: Any) -> Any:
    return fluid.layers.mean(fluid.layers.square(fluid.layers.fc(x, 1)))  # few updates: a step for each


def branch(x: Any, ids: Any) -> Any:
    half = fluid.layers.mean(x)
    few = fluid.layers.fill_constant([1], "float32", 0.0)
    return fluid.layers.cond(half < few, lambda: classify(x, ids), lambda: classify(x * 2.0, ids))


def embed(x: Any, ids: Any) -> Any:
    rows = fluid.layers.embedding(ids, [30, 8])
    rows = fluid.layers.relu(fluid.layers.dropout(rows, 0.1))
    return fluid.layers.mean(fluid.layers.sequence_pool(rows, "sqrt")) + classify(x, ids)


def cut(x: Any, ids: Any) -> Any:
    rows = fluid.layers.lod_reset(fluid.layers.slice(x, [0], [0], [6]), target_lod=[0, 2, 6])
    return classify(fluid.layers.sequence_pool(fluid.layers.relu(rows), "sum"), ids)


def drop(x: Any, ids: Any) -> Any:
    return classify(fluid.layers.dropout(fluid.layers.batch_norm(x), 0.3), ids)


def split(x: Any, ids: Any) -> Any:
    first, second = fluid.layers.split(x, 2, dim=1)
    return classify(fluid.layers.concat([fluid.layers.reshape(first, [-1, 20]), second * 1.0], 1), ids)


WORDS = """
    BaseException False LoDTensor None True _array _value and def elif else except failed frame fresh h
    holders hollow i if is lods nbytes ndarray not or r raise run t try type v values version write x
"""


def train(make: Callable[[Any, Any], Any], optimizer: Any, x: Any, count: int) -> list[Any]:
    """Return the losses, the parameters and their versions after some steps."""
    with fresh_programs(seed=3) as (main, startup):
        loss = make(fluid.data("x", [None, 40]), fluid.data("ids", [None, 1], "int64", lod_level=1))
        optimizer(0.05).minimize(loss)
        exe, scope = fluid.Executor(), fluid.global_scope()
        exe.run(startup)
        feed = {"x": x, "ids": IDS} if make is embed else {"x": x}
        losses = [exe.run(main, feed, [loss])[0].tobytes() for _ in range(count)]
        names = sorted(scope.local_var_names())
        held = [(scope.find_var(n).version, np.array(scope.find_var(n).value).tobytes()) for n in names]
    return [*losses, *held]


@pytest.mark.parametrize("x", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("optimizer", [fluid.optimizer.SGD, fluid.optimizer.Adam], ids=["sgd", "adam"])
@pytest.mark.parametrize("make", [fit, classify, branch, embed, cut, drop])
def test_the_unrolled_function_gives_the_same_bits_and_versions_as_single_steps(
    monkeypatch: pytest.MonkeyPatch, make: Any, optimizer: Any, x: Any
) -> None:
    monkeypatch.setattr(unrolled, "_RUNS", 1000)
    one_by_one = train(make, optimizer, x, 5)
    monkeypatch.setattr(unrolled, "_RUNS", 2)
    assert train(make, optimizer, x, 5) == one_by_one


@pytest.mark.parametrize("x", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("make", [fit, drop])
def test_the_unrolled_function_releases_values_as_early_as_the_steps(make: Any, x: Any) -> None:
    with fresh_programs(seed=3) as (main, startup):
        loss = make(fluid.data("x", [None, 40]), fluid.data("ids", [None, 1], "int64", lod_level=1))
        fluid.optimizer.SGD(0.05).minimize(loss)
        fluid.Executor().run(startup)
        plan = get_plan(main, {"x": x}, [loss.name], None)
        left = []
        for run in (unrolled.unroll(plan.steps, plan.layout, has_lods=True), None):
            frame = plan.create_frame(fluid.global_scope(), {})
            put_feeds(plan, frame, {"x": x})
            for step in plan.steps if run is None else ():
                step.run(frame)
            if run is not None:
                run(frame)
            left.append([getattr(value, "strides", None) for value in frame.values])
    assert left[0] == left[1]
    assert sum(strides is not None for strides in left[0]) < len(plan.steps)


@pytest.mark.parametrize(
    ("trains", "seen_of"),
    [(True, [set(), {"hollow"}, {"hollow", "over"}]), (False, [set(), set(), {"over"}])],
    ids=["training", "prediction"],
)
def test_unrolled_functions_overwrite_and_release_large_values(
    monkeypatch: pytest.MonkeyPatch, trains: bool, seen_of: list[set[str]]
) -> None:
    seen: list[str] = []

    def note(what: str, function: Any) -> Any:
        return lambda *given: seen.append(what) or function(*given)

    monkeypatch.setattr(scalars, "make_hollow", note("hollow", scalars.make_hollow))
    monkeypatch.setattr(overwriting, "is_unshared", note("over", overwriting.is_unshared))
    with fresh_programs(seed=3) as (main, startup):
        loss = classify(fluid.data("x", [None, 40]), None)
        if trains:
            fluid.optimizer.SGD(0.05).minimize(loss)
        fluid.Executor().run(startup)
        plan = get_plan(main, {"x": None}, [loss.name], None)
        run = unrolled.unroll(plan.steps, plan.layout, has_lods=False)
        for x, expected in zip((SMALL, LARGE[:300], LARGE), seen_of, strict=True):
            frame = plan.create_frame(fluid.global_scope(), {})
            put_feeds(plan, frame, {"x": x})
            run(frame)
            assert set(seen) == expected


def test_a_failing_operator_is_named_in_unrolled_runs_too(
    exe: fluid.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unrolled, "_RUNS", 1)
    out = fluid.layers.fc(fluid.layers.data("x", [40]), 3)
    exe.run(fluid.default_startup_program())
    said = set()
    for x in (SMALL, SMALL[:, :7], SMALL, SMALL[:, :7]):  # an error in the second and in the last run
        try:
            exe.run(feed={"x": x}, fetch_list=[out])
        except OperatorError as error:
            said.add(str(error))
    (text,) = said
    assert "operator 'mul'" in text
    assert "x: float32[6, 7]" in text
    assert f"created at {__file__}" in text


def test_profiles_and_checks_see_each_operator(exe: fluid.Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unrolled, "_RUNS", 0)
    out = fluid.layers.scale(fluid.layers.log(fluid.data("x", [None, 2])), 2.0)
    feed = {"x": np.array([[1.0, 0.0]], "float32")}
    assert exe.run(feed=feed, fetch_list=[out])[0].tolist() == [[0.0, -np.inf]]
    monkeypatch.setenv("FLAGS_check_nan_inf", "1")
    with pytest.raises(OperatorError, match="'log'"):
        exe.run(feed=feed, fetch_list=[out])
    monkeypatch.delenv("FLAGS_check_nan_inf")
    fluid.profiler.start_profiler("CPU")
    exe.run(feed=feed, fetch_list=[out])
    from paddlelike.executor import profile

    assert sorted(profile.stop().times) == ["log", "scale"]


def test_generated_code_contains_no_names_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.setattr(
        unrolled, "compile", lambda text, *more: texts.append(text) or compile(text, *more), raising=False
    )
    hostile = "v[0]; raise SystemExit #\n"
    with fresh_programs() as (main, _):
        x = fluid.data(hostile, [None, 40])
        out = fluid.layers.scale(fluid.layers.relu(split(x, None)), 0.1, name="import os\n")
        fluid.optimizer.Momentum(0.1, 0.9).minimize(fluid.layers.mean(out))
        plan = get_plan(main, {hostile: None}, [out.name], None)
        unrolled.unroll(plan.steps, plan.layout, has_lods=True)
    (text,) = texts
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        assert token.type not in (tokenize.STRING, tokenize.COMMENT)
        if token.type == tokenize.NAME and token.string not in WORDS.split():
            assert token.string[0] in "sklgx"
            assert token.string[1:].replace("_", "").isdigit()
