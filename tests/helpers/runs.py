"""A network built and trained with our package, as the golden runs were made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

import paddlelike as fluid
from paddlelike.framework import Program
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import Arrays
from tests.helpers.networks import SEED, Built, as_feed, network


class Run(NamedTuple):
    """A network that was built and is ready to train; use it inside :func:`building`."""

    name: str
    main: Program
    startup: Program
    for_test: Program  # cloned before the backward pass was added
    built: Built
    minimized: Any  # what minimize returned
    exe: Any

    def value(self, name: str) -> np.ndarray[Any, Any]:
        """The value of a persistable."""
        return np.array(fluid.global_scope().find_var(name).get_tensor())

    def values(self) -> Arrays:
        """All persistables by name."""
        names = [v.name for v in self.main.list_vars() if fluid.io.is_persistable(v)]
        return {name: self.value(name) for name in names}

    def train(self, feed: dict[str, Any], fetch: list[Any] | None = None) -> list[Any]:
        """One step; returns the loss, then what else is fetched."""
        wanted = [self.built.loss, *(fetch or [])]
        loss, *rest = self.exe.run(self.main, feed=feed, fetch_list=wanted)
        return [float(loss[0]), *rest]


@contextmanager
def building(name: str, seed: int = SEED) -> Iterator[Run]:
    """Build a network of tests/helpers/networks.py with its optimizer, as in a new process."""
    net = network(name)
    with fresh_programs(seed) as (main, startup):
        built = net.build(fluid)
        for_test = main.clone(for_test=True)
        minimized = net.optimizer(fluid).minimize(built.loss)
        exe = fluid.Executor(fluid.CPUPlace())
        yield Run(name, main, startup, for_test, built, minimized, exe)


def batch(name: str, rng: np.random.RandomState) -> dict[str, Any]:
    """The next batch of a network, sequences as LoDTensors."""
    return as_feed(fluid, network(name).feeds(rng))
