"""Results over inputs that nobody uses any more: the same bits, and nothing that anybody holds changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.executor.plans import run_plan as planning
from paddlelike.executor.plans.cached import get_plan
from paddlelike.executor.plans.rewrites.overwriting import is_unshared

RNG = np.random.default_rng(7)
LARGE = RNG.standard_normal((96, 256)).astype("float32")  # 96 KiB


def build(make: Callable[[Any], Any], shape: tuple[int, ...] = LARGE.shape) -> tuple[Any, Any, Any]:
    """Return a program that trains what is computed of x, its startup program, and the result."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 9
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, *shape[1:]])
        result = make(x)
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.square(result)))
    return main, startup, result


def train(main: Any, startup: Any, fetches: list[Any], x: Any = LARGE, count: int = 2) -> list[bytes]:
    """Return the bytes of what was fetched, and of the parameters, after some steps."""
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    fetched = []
    for _ in range(count):
        fetched = exe.run(main, feed={"x": x}, fetch_list=fetches, scope=scope)
    names = sorted(scope.local_var_names())
    return [v.tobytes() for v in fetched] + [
        np.array(scope.find_var(n).get_tensor()).tobytes() for n in names
    ]


def _activate(name: str) -> Callable[[Any], Any]:
    return lambda x: getattr(fluid.layers, name)(fluid.layers.fc(x, 256))


def _convolve(x: Any) -> Any:
    images = fluid.layers.reshape(x, [-1, 4, 8, 8])
    return fluid.layers.conv2d(fluid.layers.conv2d(images, 8, 3, padding=1, act="relu"), 8, 3, act="relu")


def _add_twice(x: Any) -> Any:
    layers = fluid.layers
    inner = layers.fc(x, 256, act="relu")
    return layers.elementwise_add(layers.fc(inner, 256), inner, act="relu") + layers.scale(inner, 2.0)


def _classify(x: Any) -> Any:
    labels = fluid.layers.cast(fluid.layers.argmax(x, 1), "int64")
    labels = fluid.layers.reshape(fluid.layers.elementwise_min(labels, labels * 0 + 200), [-1, 1])
    logits = fluid.layers.fc(x, 256)
    return fluid.layers.softmax_with_cross_entropy(logits, labels, ignore_index=200)


NETWORKS: dict[str, Callable[[Any], Any]] = {
    **{
        name: _activate(name) for name in ("relu", "exp", "sqrt", "square", "tanh", "sigmoid", "relu6", "abs")
    },
    "leaky_relu": _activate("leaky_relu"),
    "images": _convolve,
    "sums": _add_twice,
    "classes": _classify,
}


@pytest.mark.parametrize("name", NETWORKS)
def test_overwriting_inputs_changes_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    main, startup, result = build(NETWORKS[name])
    plan = get_plan(main, {"x": LARGE}, [result.name], None)
    assert any(step.overwrites for step in plan.steps)
    over = train(main, startup, [result])
    monkeypatch.setattr(planning, "overwrite_inputs", lambda step, hollow, layout: step)
    main, startup, result = build(NETWORKS[name])
    assert over == train(main, startup, [result])


def test_a_result_takes_the_memory_of_an_input_that_nobody_uses() -> None:
    main, startup, result = build(lambda x: fluid.layers.fc(x, 256, act="relu"))
    plan = get_plan(main, {"x": LARGE}, [result.name], None)
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    frame = plan.create_frame(scope, {})
    frame.values[plan.fed["x"].position] = LARGE
    addresses = []
    for step in plan.steps[:3]:
        step.run(frame)
        written = plan.layout.get_position(main.global_block(), step.op.output("Out")[0])
        addresses.append(frame.values[written].ctypes.data)
    assert [step.op.type for step in plan.steps[:3]] == ["mul", "elementwise_add", "relu"]
    assert len(set(addresses)) == 1


def test_fed_arrays_fetched_arrays_and_parameters_are_not_overwritten() -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 256])
        held = fluid.layers.create_parameter([96, 256], "float32", name="held")
        first = fluid.layers.relu(x)
        last = fluid.layers.relu(fluid.layers.elementwise_add(first, held))
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    fed, before = LARGE.copy(), np.array(scope.find_var("held").get_tensor())
    found, end = exe.run(main, feed={"x": fed}, fetch_list=[first, last], scope=scope)
    again, _ = exe.run(main, feed={"x": -fed}, fetch_list=[first, last], scope=scope)
    np.testing.assert_array_equal(fed, LARGE)
    np.testing.assert_array_equal(found, np.maximum(LARGE, 0))
    np.testing.assert_array_equal(again, np.maximum(-LARGE, 0))
    np.testing.assert_array_equal(end, np.maximum(np.maximum(LARGE, 0) + before, 0))
    np.testing.assert_array_equal(np.array(scope.find_var("held").get_tensor()), before)


def test_an_array_with_another_reference_is_not_overwritten() -> None:
    values = [np.zeros(8), np.zeros((4, 4))[1:], np.zeros(8)]
    alone, part, other = values
    assert is_unshared(alone)
    assert is_unshared(part)
    view = alone[2:]
    assert not is_unshared(alone)
    assert not is_unshared(view)  # its memory is that of another array
    rest = part.base
    assert rest is not None
    assert not is_unshared(part)
    again = other
    assert not is_unshared(other)
    del again
    other.flags.writeable = False
    assert not is_unshared(other)
    values.append(np.frombuffer(bytearray(64)))
    buffer = values[-1]
    assert not is_unshared(buffer)  # somebody else's memory


def test_a_bias_of_a_linear_layer_needs_no_copy_of_its_gradient() -> None:
    main, startup, _ = build(lambda x: fluid.layers.fc(fluid.layers.fc(x, 256, act="relu"), 256))
    plan = get_plan(main, {"x": LARGE}, [], None)
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    frame = plan.create_frame(scope, {})
    frame.values[plan.fed["x"].position] = LARGE
    seen = 0
    for step in plan.steps:
        gradients = step.op.input("Out@GRAD")
        position = plan.layout.get_position(main.global_block(), gradients[0]) if gradients else 0
        before = frame.values[position]
        step.run(frame)
        if step.op.type == "elementwise_add_grad":
            after = plan.layout.get_position(main.global_block(), step.op.output("X@GRAD")[0])
            assert frame.values[after] is before
            seen += 1
    assert seen == 2


def test_explain_names_the_inputs_that_a_result_is_written_over() -> None:
    main, startup, result = build(lambda x: fluid.layers.fc(x, 256, act="relu"))
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    explained = exe.explain(main, {"x": LARGE}, [result], scope=scope)
    reuses = {step.operators[0]: step.reuses for step in explained.steps}
    assert reuses["relu"] == ("fc_0.tmp_1",)
    assert reuses["elementwise_add"] == ("fc_0.tmp_0",)
    assert not reuses["mul"]
    kernels = {step.operators: step.kernel for step in explained.steps}
    assert kernels[("sgd",)] == "specialized"
