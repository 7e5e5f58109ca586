"""Small networks for tests of layers: inputs with values, and running what was built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import paddlelike as fluid

RNG = np.random.default_rng(5)


def run(fetch: Any, feed: Mapping[str, Any] | None = None, **more: Any) -> Any:
    """Run startup and main program; return the value of one variable, or a list for a list of them."""
    exe = fluid.Executor()
    if fluid.default_startup_program().global_block().ops:
        exe.run(fluid.default_startup_program())
    several = isinstance(fetch, list | tuple)
    found = exe.run(feed={**(feed or {}), **more}, fetch_list=list(fetch) if several else [fetch])
    return found if several else found[0]


def random_input(name: str, *shape: int, low: float = -1.0, high: float = 1.0) -> tuple[Any, Any]:
    """Return a data variable and random values for it."""
    values = RNG.uniform(low, high, shape).astype("float32")
    return fluid.data(name, [None, *shape[1:]]), values


def number(value: int) -> Any:
    """Return an int64 constant of shape [1]."""
    return fluid.layers.fill_constant([1], "int64", value)


def x(*shape: int | None) -> Any:
    """Return a data variable called x."""
    return fluid.data("x", [*shape], "float32")


def softmax(x: Any, axis: int = -1) -> Any:
    """Return the softmax of an array."""
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)
