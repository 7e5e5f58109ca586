"""Updates of several parameters at once: the bits, versions and errors of one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import errors
from paddlelike.executor.plans import run_plan as planning
from paddlelike.executor.plans.cached import get_plan
from paddlelike.executor.plans.frame import Step
from paddlelike.executor.plans.rewrites.groups import group_steps

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "nesterov": lambda: fluid.optimizer.Momentum(0.1, 0.9, use_nesterov=True),
    "adam": lambda: fluid.optimizer.Adam(0.1),
    "adamax": lambda: fluid.optimizer.Adamax(0.1),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1),
    "decayed_adagrad": lambda: fluid.optimizer.DecayedAdagrad(0.1),
    "adadelta": lambda: fluid.optimizer.Adadelta(0.1),
    "rmsprop": lambda: fluid.optimizer.RMSProp(0.1, momentum=0.5),
    "rmsprop, centered": lambda: fluid.optimizer.RMSProp(0.1, centered=True),
    "ftrl": lambda: fluid.optimizer.Ftrl(0.1, l1=0.01),
    "proximal_gd": lambda: _Proximal("proximal_gd"),
}
FEED = {"x": np.random.default_rng(1).standard_normal((4, 6)).astype("float32")}


class _Proximal(fluid.optimizer.SGDOptimizer):  # type: ignore[misc]
    """SGD with another operator that takes the same variables."""

    def __init__(self, type: str) -> None:
        super().__init__(0.1)
        self.type = type


def build(optimizer: Any, widths: tuple[int, ...] = (7, 900, 5, 3, 2)) -> tuple[Any, Any]:
    """Return a program that trains layers of some widths, small and large, and its startup program."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        y = fluid.data("x", [None, 6])
        for width in widths:
            y = fluid.layers.fc(y, width, act="tanh")
        optimizer.minimize(fluid.layers.mean(y))
    return main, startup


def train(main: Any, startup: Any, count: int = 3, **changes: Any) -> dict[str, Any]:
    """Return the persistables after some steps, by name."""
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    for name, value in changes.items():
        scope.find_var(name).get_tensor().set(value)
    for _ in range(count):
        exe.run(main, feed=FEED, scope=scope)
    return {name: np.array(scope.find_var(name).get_tensor()) for name in scope.local_var_names()}


def get_steps(main: Any) -> list[Step]:
    return get_plan(main, FEED, [], None).steps


@pytest.fixture
def separately(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function from which on new plans have a step for each operator."""
    return lambda: monkeypatch.setattr(planning, "group_steps", lambda steps, layout: list(steps))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_grouped_updates_have_the_same_bits_as_single_updates(
    name: str, separately: Callable[[], None]
) -> None:
    main, startup = build(OPTIMIZERS[name]())
    together = train(main, startup)
    assert [step.operators for step in get_steps(main) if step.kernel == "group"] == [10]
    separately()
    main, startup = build(OPTIMIZERS[name]())
    assert not [step for step in get_steps(main) if step.kernel == "group"]
    alone = train(main, startup)
    assert together.keys() == alone.keys()
    for parameter, value in alone.items():
        assert value.tobytes() == together[parameter].tobytes(), parameter


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_a_computed_learning_rate_is_kept_until_the_last_group(
    name: str, separately: Callable[[], None]
) -> None:
    """The last parameter is a small one, whose group runs before the large ones and beside sparse ones."""
    makers = {"sgd": fluid.optimizer.SGD, "momentum": fluid.optimizer.Momentum, "adam": fluid.optimizer.Adam}
    keywords = {"momentum": 0.9} if name == "momentum" else {}
    ids = {"ids": np.array([3, 1, 3])}

    def run() -> dict[str, bytes]:
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 3
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            ends = [fluid.embedding(fluid.data("ids", [None], "int64"), [50, 4], is_sparse=True)]
            for width in (150, 150, 3, 3, 3, 3, 150, 150, 2):
                ends.append(fluid.layers.fc(ends[-1], width, act="tanh"))
            rows = fluid.embedding(fluid.data("ids", [None], "int64"), [50, 2], is_sparse=True)
            rate = fluid.layers.cosine_decay(0.1, 10, 5)
            makers[name](rate, **keywords).minimize(fluid.layers.mean(ends[-1] + rows))
        exe, scope = fluid.Executor(), fluid.core.Scope()
        exe.run(startup, scope=scope)
        for _ in range(2):
            exe.run(main, feed=ids, scope=scope)
        names = scope.local_var_names()
        return {one: np.array(scope.find_var(one).get_tensor()).tobytes() for one in names}

    together = run()
    separately()
    assert run() == together


def test_parameters_with_different_beta_powers_or_rates_are_updated_with_their_own(
    separately: Callable[[], None],
) -> None:
    power = {"fc_1.w_0_beta1_pow_acc_0": np.float32([0.5])}
    together = train(*build(fluid.optimizer.Adam(0.1)), 2, **power)
    separately()
    alone = train(*build(fluid.optimizer.Adam(0.1)), 2, **power)
    assert together["fc_1.w_0_beta1_pow_acc_0"] == np.float32(0.5) * np.float32(0.9) * np.float32(0.9)
    assert {name: value.tobytes() for name, value in together.items()} == {
        name: value.tobytes() for name, value in alone.items()
    }


def test_every_update_counts_as_a_write_of_all_it_changes() -> None:
    main, startup = build(fluid.optimizer.Adam(0.1))
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    before = {name: scope.find_var(name).version for name in scope.local_var_names()}
    arrays = {name: scope.find_var(name).get_tensor().held_array for name in before}
    exe.run(main, feed=FEED, scope=scope)
    changed = {name for name in before if scope.find_var(name).version > before[name]}
    assert {name for name in before if "learning_rate" not in name} == changed
    assert all(scope.find_var(name).get_tensor().held_array is arrays[name] for name in before)


def test_parameters_with_sparse_gradients_are_updated_outside_of_the_group() -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        rows = fluid.embedding(fluid.data("ids", [None], "int64"), [50, 4], is_sparse=True)
        fluid.optimizer.Momentum(0.1, 0.9).minimize(fluid.layers.mean(fluid.layers.fc(rows, 3)))
    plan = get_plan(main, {"ids": None}, [], None)
    updates = [step for step in plan.steps if step.op.type == "momentum"]
    assert sorted(step.operators for step in updates) == [1, 2]
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    before = np.array(scope.find_var("embedding_0.w_0").get_tensor())
    exe.run(main, feed={"ids": np.array([3, 3, 7])}, scope=scope)
    after = np.array(scope.find_var("embedding_0.w_0").get_tensor())
    assert np.flatnonzero((before != after).any(1)).tolist() == [3, 7]


def test_the_error_names_the_operator_that_failed() -> None:
    main, startup = build(fluid.optimizer.Momentum(0.1, 0.9))
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    scope.erase(["fc_2.w_0_velocity_0"])
    with pytest.raises(errors.NotInitializedError, match=r"'momentum' reads 'fc_2.w_0_velocity_0'") as raised:
        exe.run(main, feed=FEED, scope=scope)
    assert str(raised.value).count("created at") == 1


def test_operators_that_depend_on_one_another_stay_apart() -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 6]), 2))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    block = main.global_block()
    update = next(op for op in block.ops if op.type == "momentum")
    block.append_op("momentum", update.inputs, update.outputs, update.all_attrs())
    plan = get_plan(main, FEED, [], None)
    assert [step.operators for step in plan.steps if step.op.type == "momentum"] == [1, 1, 1]
    assert group_steps(plan.steps, plan.layout) == plan.steps
