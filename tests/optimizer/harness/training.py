"""Training small networks in tests of optimizers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike import optimizer
from tests.optimizer.harness.cases import feeds

W = "fc_0.w_0"

#: Every optimizer with the options that it needs.
PLAIN = {
    "SGD": {}, "Momentum": {"momentum": 0.9}, "LarsMomentum": {"momentum": 0.9}, "Adagrad": {},
    "DecayedAdagrad": {}, "Adadelta": {}, "Adam": {}, "Adamax": {}, "Lamb": {}, "RMSProp": {},
    "Ftrl": {}, "Dpsgd": {},
}  # fmt: skip


def make(name: str, **options: Any) -> Any:
    return getattr(optimizer, name)(learning_rate=0.1, **PLAIN[name], **options)


def train(loss: Any, steps: int = 5) -> list[float]:
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    batches = [{name: batch[name] for name in ("x", "y")} for batch in feeds()[:steps]]
    return [float(exe.run(feed=batch, fetch_list=[loss])[0][0]) for batch in batches]


def value(name: str = W) -> Any:
    return np.array(fluid.global_scope().find_var(name).get_tensor()).ravel()


def network() -> Any:
    fluid.default_startup_program().random_seed = 3
    out = fluid.layers.fc(fluid.data("x", [None, 4]), 1, bias_attr=False)
    loss = fluid.layers.mean(fluid.layers.square(out))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


def steps(exe: fluid.Executor, count: int = 4) -> Iterator[int]:
    exe.run(fluid.default_startup_program())
    for i in range(count):
        exe.run(feed={"x": np.full((2, 4), 0.1 * (i + 1), "float32")})
        yield i


def follow(tool: Any, start: Sequence[float], gradients: Sequence[Sequence[float]]) -> list[Any]:
    """Return a parameter after each step, which begins at ``start`` and has these gradients."""
    initial = fluid.initializer.NumpyArrayInitializer(np.array(start, "float32"))
    parameter = fluid.layers.create_parameter([len(start)], "float32", name="p", default_initializer=initial)
    given = fluid.data("g", [len(start)])
    tool.minimize(fluid.layers.reduce_sum(parameter * given))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    after = []
    for gradient in gradients:
        exe.run(feed={"g": np.array(gradient, "float32")})
        after.append(value("p"))
    return after
