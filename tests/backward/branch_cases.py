"""Losses that are minimized inside of branches; `fluid` is ours, or the real one in another process."""

from __future__ import annotations

from typing import Any

import numpy as np

SEED = 3
STEPS = 6


def feeds(step: int) -> dict[str, Any]:
    x = np.random.RandomState(step).uniform(-1, 1, (3, 4)).astype("float32")
    return {"x": x, "index": np.array([step % 2], "int64")}


def _inputs(fluid: Any) -> Any:
    return fluid.data("x", [3, 4], "float32"), fluid.data("index", [1], "int64")


def _is(fluid: Any, index: Any, value: int) -> Any:
    return fluid.layers.equal(index, fluid.layers.fill_constant([1], "int64", value))


def _minimized(fluid: Any, loss: Any, optimizer: Any) -> Any:
    optimizer.minimize(loss)
    return loss


def cond(fluid: Any) -> Any:
    layers = fluid.layers
    x, index = _inputs(fluid)
    hidden = layers.fc(x, 3, act="tanh", param_attr="w", bias_attr="b")
    adam, sgd = fluid.optimizer.Adam(0.1), fluid.optimizer.SGD(0.2)

    def first() -> Any:
        loss = layers.mean(layers.square(layers.fc(hidden, 1, param_attr="w1", bias_attr=False)))
        return _minimized(fluid, loss, adam)

    def second() -> Any:
        score = layers.fc(hidden, 1, param_attr="w2", bias_attr=False)
        return _minimized(fluid, layers.mean(layers.square(score) - 1.0), sgd)

    return layers.cond(_is(fluid, index, 1), first, second)


def switch_case(fluid: Any) -> Any:
    layers = fluid.layers
    x, index = _inputs(fluid)
    hidden = layers.fc(x, 3, act="tanh", param_attr="w", bias_attr="b")
    decayed = fluid.optimizer.Momentum(0.1, 0.9, regularization=fluid.regularizer.L2Decay(0.1))
    tools = {0: decayed, 1: fluid.optimizer.Adagrad(0.2)}

    def branch(number: int) -> Any:
        def build() -> Any:
            score = layers.fc(hidden, 1, param_attr=f"w{number}", bias_attr=False)
            return _minimized(fluid, layers.mean(layers.square(score - float(number))), tools[number])

        return build

    return layers.switch_case(index, {number: branch(number) for number in tools})


def switch(fluid: Any) -> Any:
    layers = fluid.layers
    x, index = _inputs(fluid)
    score = layers.fc(x, 1, param_attr="w", bias_attr="b")
    out = layers.create_global_var([1], 0.0, "float32", persistable=True, name="out")
    with layers.Switch() as choice:
        with choice.case(_is(fluid, index, 1)):
            loss = layers.mean(layers.square(score))
            layers.assign(_minimized(fluid, loss, fluid.optimizer.SGD(0.1)), out)
        with choice.default():
            layers.assign(_minimized(fluid, layers.mean(score), fluid.optimizer.SGD(0.5)), out)
    return out


CASES = {case.__name__: case for case in (cond, switch_case, switch)}
