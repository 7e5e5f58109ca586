"""Control flow inside of control flow, trained; `fluid` is ours, or the real one in another process."""

from __future__ import annotations

from typing import Any

import numpy as np

SEED = 5
STEPS = 4


def feeds(step: int) -> dict[str, Any]:
    rng = np.random.RandomState(step)
    x, steps = rng.uniform(-1, 1, (3, 4)), rng.uniform(-1, 1, (5, 3, 4))
    return {"x": x.astype("float32"), "steps": steps.astype("float32")}


def _train(fluid: Any, loss: Any) -> Any:
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


def _dense(fluid: Any, x: Any, name: str) -> Any:
    return fluid.layers.fc(x, 4, act="tanh", param_attr=f"{name}.w", bias_attr=f"{name}.b")


def cond_in_cond(fluid: Any) -> Any:
    layers = fluid.layers
    x = fluid.data("x", [3, 4], "float32")
    hidden = _dense(fluid, x, "in")
    mean = layers.reduce_mean(x)

    def inner() -> Any:
        return layers.cond(mean > 0.05, lambda: _dense(fluid, hidden, "one"), lambda: hidden * 2.0)

    out = layers.cond(mean > 0.0, inner, lambda: _dense(fluid, hidden, "two"))
    return _train(fluid, layers.mean(layers.square(out)))


def cond_in_static_rnn(fluid: Any) -> Any:
    layers = fluid.layers
    steps = fluid.data("steps", [5, 3, 4], "float32")
    steps.stop_gradient = False
    rnn = layers.StaticRNN()
    with rnn.step():
        row = rnn.step_input(steps)
        memory = rnn.memory(shape=[-1, 4], batch_ref=row)
        new = _dense(fluid, layers.elementwise_add(row, memory), "cell")
        rnn.update_memory(memory, new)
        rnn.step_output(new)
    out = layers.reduce_mean(rnn())
    return _train(fluid, layers.square(layers.cond(out > 0.0, lambda: out * 3.0, lambda: out - 1.0)))


def while_of_arrays_with_cond(fluid: Any) -> Any:
    layers = fluid.layers
    x = fluid.data("x", [3, 4], "float32")
    counter, limit = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", 3)
    states = layers.array_write(_dense(fluid, x, "in"), counter)
    running = layers.less_than(counter, limit)
    loop = layers.While(running)
    with loop.block():
        state = layers.array_read(states, counter)
        new = _dense(fluid, state, "cell")
        layers.increment(counter)
        layers.array_write(new, counter, states)
        layers.less_than(counter, limit, cond=running)
    last = layers.array_read(states, counter)
    positive = layers.reduce_mean(x) > 0.0
    squares = layers.square(last)
    return _train(fluid, layers.cond(positive, lambda: layers.mean(last * 2.0), lambda: layers.mean(squares)))


CASES = {case.__name__: case for case in (cond_in_cond, cond_in_static_rnn, while_of_arrays_with_cond)}
