"""Small networks for the tests of compiled programs, and how they are trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import paddlelike as fluid

__all__ = ["Net", "build", "train", "use"]

L = fluid.layers


@dataclass
class Net:
    """A network with its programs and a scope of its own."""

    main: Any
    startup: Any
    fetch: list[Any]
    scope: Any
    exe: Any


def build(make: Callable[[], Any], optimizer: Callable[[], Any] | None = None) -> Net:
    """Return a network that has run its startup program; ``make`` returns its loss, or a list of results."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 9
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fetch = make()
        fetch = fetch if isinstance(fetch, list) else [fetch]
        if optimizer is not None:
            optimizer().minimize(fetch[0])
    net = Net(main, startup, fetch, fluid.Scope(), fluid.Executor())
    net.scope.generator.state = 77
    if startup.global_block().ops:
        net.exe.run(startup, scope=net.scope)
    return net


def train(net: Net, feeds: list[dict[str, Any]], backend: str = "jax") -> list[Any]:
    """Return what is fetched for each feed."""
    program = fluid.CompiledProgram(net.main).with_backend(backend)
    run = net.exe.run
    return [run(program, feed=feed, fetch_list=net.fetch, scope=net.scope) for feed in feeds]


@contextmanager
def use(backend: str) -> Iterator[None]:
    """Set FLAGS_backend inside the block."""
    before = fluid.get_flags("FLAGS_backend")
    fluid.set_flags({"FLAGS_backend": backend})
    try:
        yield
    finally:
        fluid.set_flags(before)


def regression() -> Any:
    """Return the loss of two layers with dropout."""
    x, y = fluid.data("x", [None, 6]), fluid.data("y", [None, 1])
    hidden = L.dropout(L.fc(x, 8, act="tanh"), 0.3)
    return L.mean(L.square_error_cost(L.fc(hidden, 1), y))


def batches(count: int, rows: int = 16) -> list[dict[str, Any]]:
    """Return feeds for :func:`regression`."""
    rng = np.random.default_rng(4)
    return [
        {
            "x": rng.standard_normal((rows, 6)).astype("float32"),
            "y": rng.standard_normal((rows, 1)).astype("float32"),
        }
        for _ in range(count)
    ]
