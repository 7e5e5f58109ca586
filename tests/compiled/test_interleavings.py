"""Any order of runs on the device and with numpy, saves, loads and writes gives what numpy alone gives."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

from hypothesis import given, settings, strategies as st

import paddlelike as fluid
from tests.compiled.harness.nets import batches, build, regression, use

pytestmark = pytest.mark.slow

L = fluid.layers
ACTIONS = ("train", "test", "share", "clone", "save", "load", "save one", "load one", "set", "fetch", "start")
FEED = batches(1)[0]


class Programs:
    """A network, its test program, its copy, and a second network that trains one of its parameters."""

    def __init__(self) -> None:
        self.net = build(regression, lambda: fluid.optimizer.Adam(L.exponential_decay(0.02, 3, 0.9)))
        self.run_by = {"train": (self.net.main, self.net.fetch)}
        self.run_by["test"] = (self.net.main.clone(for_test=True), self.net.fetch)
        self.run_by["clone"] = (self.net.main.clone(), self.net.fetch)
        other = build(share, lambda: fluid.optimizer.Momentum(0.01, 0.9))
        self.run_by["share"] = (other.main, other.fetch)
        self.startups = (self.net.startup, other.startup)
        self.kept = sorted(
            {v.name for main in (self.net.main, other.main) for v in main.list_vars() if v.persistable}
        )


def share() -> Any:
    """Return the loss of a network with the first layer of :func:`regression`."""
    weight, bias = fluid.ParamAttr(name="fc_0.w_0"), fluid.ParamAttr(name="fc_0.b_0")
    hidden = L.fc(fluid.data("x", [None, 6]), 8, act="tanh", param_attr=weight, bias_attr=bias)
    return L.mean(L.square(hidden - 0.5))


class Side:
    """Two scopes, a child of the first one, and the files that they were saved to.

    ``mixed`` says whether an action that asks for the device gets it.
    """

    def __init__(self, programs: Programs, folder: Path, *, mixed: bool) -> None:
        self.programs, self.folder, self.mixed = programs, folder, mixed
        first, second = fluid.Scope(), fluid.Scope()
        self.scopes = [first, second, first.new_scope()]
        self.exe = fluid.Executor()
        for scope in self.scopes[:2]:
            scope.generator.state = 77
            self.perform("start", scope, on_device=False)

    def perform(self, action: str, scope: Any, *, on_device: bool) -> Any:
        """Carry out an action in a scope. Return what it gives, if anything."""
        with fluid.scope_guard(scope), use("jax" if on_device and self.mixed else "numpy"):
            return self._perform(action, scope)

    def _perform(self, action: str, scope: Any) -> Any:
        main = self.programs.net.main
        directory, path = str(self.folder / "all"), str(self.folder / "one")
        if action in self.programs.run_by:
            program, fetch = self.programs.run_by[action]
            feed = {name: value for name, value in FEED.items() if name in program.global_block().vars}
            return self.exe.run(program, feed=feed, fetch_list=fetch)
        if action == "start":
            for startup in self.programs.startups:
                self.exe.run(startup)
        elif action == "save":
            fluid.io.save_persistables(self.exe, directory, main)
        elif action == "load" and (self.folder / "all").exists():
            fluid.io.load_persistables(self.exe, directory, main)
        elif action == "save one":
            fluid.save(main, path)
        elif action == "load one" and (self.folder / "one.pdparams").exists():
            fluid.load(main, path, self.exe)
        elif action == "set":
            tensor = scope.find_var("fc_0.w_0").get_tensor()
            tensor.set(np.array(tensor) * np.float32(0.5), fluid.CPUPlace())
        elif action == "fetch":
            return self.exe.run(
                main, feed=FEED, fetch_list=["fc_0.w_0", "fc_1.b_0", *self.programs.net.fetch]
            )
        return None

    def read(self) -> list[dict[str, Any]]:
        """Return all persistables of the scopes."""
        return [
            {name: np.array(scope.find_var(name).get_tensor()) for name in self.programs.kept}
            for scope in self.scopes
        ]

    def count(self) -> list[dict[str, int]]:
        """Return how often the persistables were written."""
        return [{name: scope.find_var(name).version for name in self.programs.kept} for scope in self.scopes]


@pytest.fixture(scope="module")
def programs() -> Programs:
    return Programs()


@contextmanager
def make_sides(programs: Programs) -> Iterator[tuple[Side, Side]]:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        yield Side(programs, Path(one), mixed=True), Side(programs, Path(other), mixed=False)


actions = st.tuples(
    st.sampled_from(ACTIONS), st.sampled_from([0, 0, 1, 2]), st.sampled_from([True, True, False])
)


@pytest.mark.filterwarnings("ignore:this program (is a clone of one that was trained|initializes)")
@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.lists(actions, min_size=5, max_size=16), st.integers(1, 4))
def test_runs_saves_and_loads_in_any_order_give_the_results_of_numpy(
    programs: Programs, order: list[tuple[str, int, bool]], looked_at: int
) -> None:
    with make_sides(programs) as sides:
        for number, (action, index, on_device) in enumerate(order):
            before = [side.count() for side in sides]
            got, want = (side.perform(action, side.scopes[index], on_device=on_device) for side in sides)
            for one, other in zip(got or [], want or [], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)  # another order of float32 sums
            written = [
                [{n for n in new if new[n] != old[n]} for new, old in zip(side.count(), counts, strict=True)]
                for side, counts in zip(sides, before, strict=True)
            ]
            assert written[0] == written[1], action
            if number % looked_at == 0:  # not always, for values to stay on the device
                compare(sides)
        compare(sides)


def compare(sides: tuple[Side, Side]) -> None:
    for one, other in zip(sides[0].read(), sides[1].read(), strict=True):
        for name, value in one.items():
            # Adam divides by small numbers what another order of float32 sums gives.
            np.testing.assert_allclose(value, other[name], rtol=1e-3, atol=1e-4, err_msg=name)
