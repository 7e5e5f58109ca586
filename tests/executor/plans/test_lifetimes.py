"""Temporaries are released after their last use, and views never show a later value."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.executor.views import VIEWS

pytestmark = pytest.mark.usefixtures("small_heap")

MB = 1 << 20


@pytest.fixture
def peak() -> Iterator[Callable[[Callable[[], Any]], tuple[float, float]]]:
    """Run something; the most memory it took and what it left, in arrays of one MB."""

    def measure(work: Callable[[], Any]) -> tuple[float, float]:
        gc.collect()
        tracemalloc.start()
        kept = work()
        gc.collect()
        left, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        del kept
        return most / MB, left / MB

    yield measure
    tracemalloc.stop()


def test_a_chain_of_operators_needs_memory_for_two_values(exe: fluid.Executor, peak: Any) -> None:
    x = fluid.data("x", [None, MB // 4])
    for _ in range(10):
        x = fluid.layers.sigmoid(x)
    out = fluid.layers.mean(x)
    feed = {"x": np.ones((1, MB // 4), "float32")}
    exe.run(feed=feed, fetch_list=[out])
    found = [peak(lambda: exe.run(feed=feed, fetch_list=[out])) for _ in range(3)]
    most, left = np.min(found, axis=0)  # threads of tests before may keep something in one of them
    assert most < 3.5
    assert left < 0.1


def test_a_training_step_releases_activations_during_the_backward_pass(
    exe: fluid.Executor, peak: Any
) -> None:
    x = fluid.data("x", [None, MB // 4])
    x.stop_gradient = False
    h = x
    for _ in range(8):
        h = fluid.layers.sigmoid(h)
    (slope,) = fluid.gradients([fluid.layers.mean(h)], [x])
    feed = {"x": np.ones((1, MB // 4), "float32")}
    exe.run(feed=feed, fetch_list=[slope])
    most, left = peak(lambda: exe.run(feed=feed, fetch_list=[slope]))
    assert most < 8 + 4  # eight activations, and not eight gradients more
    assert left < 1.1  # the fetched one


def test_outputs_without_a_reader_are_released_at_once(exe: fluid.Executor, peak: Any) -> None:
    x = fluid.data("x", [None, MB // 4])
    for _ in range(6):
        fluid.layers.exp(x)
    feed = {"x": np.ones((1, MB // 4), "float32")}
    exe.run(feed=feed)
    most, left = peak(lambda: exe.run(feed=feed))
    assert most < 2.5
    assert left < 0.1


def test_a_failed_run_leaves_no_values(exe: fluid.Executor, peak: Any) -> None:
    x = fluid.data("x", [None, MB // 4])
    h = fluid.layers.exp(x)
    fluid.layers.elementwise_add(h, fluid.layers.data("y", [-1]))
    feed = {"x": np.ones((1, MB // 4), "float32"), "y": np.ones((1, 7), "float32")}

    def work() -> None:
        with pytest.raises(fluid.core.EnforceNotMet):
            exe.run(feed=feed)

    work()
    assert peak(work)[1] < 0.2


def parameter(name: str = "fc_0.w_0") -> Any:
    return fluid.default_main_program().global_block().var(name)


def value(name: str) -> Any:
    return np.array(fluid.global_scope().find_var(name).get_tensor())


NUMPY = {
    "reshape": lambda w: w.reshape(12),
    "slice": lambda w: w[1:3],
    "transpose": lambda w: w.T,
    "unsqueeze": lambda w: w[None],
    "flatten": lambda w: w,
    "assign": lambda w: w,
    "split": lambda w: w[2:],
    "two views": lambda w: w[1:3].reshape(6),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("make", [fluid.optimizer.SGD, fluid.optimizer.Adam])
def test_a_view_made_before_an_update_keeps_the_old_values(exe: fluid.Executor, view: str, make: Any) -> None:
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(fluid.layers.fc(x, 3, bias_attr=False))
    out = VIEWS[view](parameter())
    make(0.5).minimize(loss)
    after = fluid.layers.scale(out, 1.0)  # reads the view when the parameter has changed
    late = VIEWS[view](parameter())
    exe.run(fluid.default_startup_program())
    for _ in range(2):
        before = value("fc_0.w_0")
        got, read, new = exe.run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=[out, after, late])
        np.testing.assert_array_equal(got, NUMPY[view](before))
        np.testing.assert_array_equal(read, NUMPY[view](before))
        np.testing.assert_array_equal(new, NUMPY[view](value("fc_0.w_0")))
        assert (before != value("fc_0.w_0")).any()


def test_a_persistable_does_not_share_memory_with_the_feed_it_was_assigned_from(exe: fluid.Executor) -> None:
    x = fluid.data("x", [2, 2])
    kept = fluid.layers.create_global_var([4], 0.0, "float32", persistable=True, name="kept")
    fluid.layers.assign(fluid.layers.reshape(x, [4]), kept)
    exe.run(fluid.default_startup_program())
    fed = np.ones((2, 2), "float32")
    exe.run(feed={"x": fed})
    fed[...] = 9
    assert (value("kept") == 1).all()
