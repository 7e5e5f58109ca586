"""Who owns the memory: temporaries go at their last use, nothing of the user's changes behind his back."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid

MB = 1 << 20


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor(fluid.CPUPlace())


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


def test_a_chain_takes_the_memory_of_two_links(exe: fluid.Executor, peak: Any) -> None:
    x = fluid.data("x", [None, MB // 4])
    for _ in range(10):
        x = fluid.layers.sigmoid(x)
    out = fluid.layers.mean(x)
    feed = {"x": np.ones((1, MB // 4), "float32")}
    exe.run(feed=feed, fetch_list=[out])
    most, left = peak(lambda: exe.run(feed=feed, fetch_list=[out]))
    assert most < 3.5
    assert left < 0.1


def test_a_training_step_lets_go_of_activations_on_its_way_back(exe: fluid.Executor, peak: Any) -> None:
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


def test_outputs_that_nobody_reads_go_at_once(exe: fluid.Executor, peak: Any) -> None:
    x = fluid.data("x", [None, MB // 4])
    for _ in range(6):
        fluid.layers.exp(x)
    feed = {"x": np.ones((1, MB // 4), "float32")}
    exe.run(feed=feed)
    most, left = peak(lambda: exe.run(feed=feed))
    assert most < 2.5
    assert left < 0.1


def test_a_failed_run_leaves_nothing(exe: fluid.Executor, peak: Any) -> None:
    x = fluid.data("x", [None, MB // 4])
    h = fluid.layers.exp(x)
    fluid.layers.elementwise_add(h, fluid.layers.data("y", [-1]))
    feed = {"x": np.ones((1, MB // 4), "float32"), "y": np.ones((1, 7), "float32")}

    def work() -> None:
        with pytest.raises(fluid.core.EnforceNotMet):
            exe.run(feed=feed)

    work()
    assert peak(work)[1] < 0.2


# Views


def parameter(name: str = "fc_0.w_0") -> Any:
    return fluid.default_main_program().global_block().var(name)


def value(name: str) -> Any:
    return np.array(fluid.global_scope().find_var(name).get_tensor())


VIEWS = {
    "reshape": lambda w: fluid.layers.reshape(w, [12]),
    "slice": lambda w: fluid.layers.slice(w, [0], [1], [3]),
    "transpose": lambda w: fluid.layers.transpose(w, [1, 0]),
    "unsqueeze": lambda w: fluid.layers.unsqueeze(w, [0]),
    "flatten": lambda w: fluid.layers.flatten(w),
    "assign": lambda w: fluid.layers.assign(w),
    "split": lambda w: fluid.layers.split(w, 2, dim=0)[1],
    "two views": lambda w: fluid.layers.reshape(fluid.layers.slice(w, [0], [1], [3]), [6]),
}

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


@pytest.mark.parametrize("view", VIEWS)
def test_fetched_arrays_stay_as_they_were(exe: fluid.Executor, view: str) -> None:
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(fluid.layers.fc(x, 3))
    fluid.optimizer.SGD(0.5).minimize(loss)
    out = VIEWS[view](parameter())
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((2, 4), "float32")}
    for return_numpy in (True, False):
        got = exe.run(feed=feed, fetch_list=[out, "fc_0.w_0", "x"], return_numpy=return_numpy)
        kept = [np.array(one) for one in got]
        for _ in range(2):
            exe.run(feed=feed)
            exe.run(fluid.default_startup_program())
        for one, copy in zip(got, kept, strict=True):
            np.testing.assert_array_equal(np.array(one), copy)


def test_a_fetched_array_is_the_user_s_to_change(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 4])
    y = fluid.layers.fc(x, 3)
    flat = fluid.layers.reshape(parameter(), [12])
    same = fluid.layers.reshape(x, [-1, 2, 2])
    exe.run(fluid.default_startup_program())
    before, fed = value("fc_0.w_0"), np.ones((2, 4), "float32")
    for one in exe.run(feed={"x": fed}, fetch_list=[y, "fc_0.w_0", flat, x, same]):
        one[...] = 99
    np.testing.assert_array_equal(value("fc_0.w_0"), before)
    assert (fed == 1).all()


def test_fed_arrays_are_never_written_to(exe: fluid.Executor) -> None:
    x = fluid.layers.data("x", [1], append_batch_size=False)
    fluid.layers.increment(x, 5.0)
    y = fluid.layers.data("y", [1], append_batch_size=False)
    view = fluid.layers.reshape(y, [1])
    fluid.layers.increment(view, 2.0)
    fed = {"x": np.zeros(1, "float32"), "y": np.zeros(1, "float32")}
    got = exe.run(feed=fed, fetch_list=[x, view, y])
    assert [float(array[0]) for array in got] == [5.0, 2.0, 0.0]
    assert fed["x"][0] == fed["y"][0] == 0


def test_a_fed_parameter_is_a_copy(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 4])
    fluid.optimizer.SGD(0.5).minimize(fluid.layers.mean(fluid.layers.fc(x, 3)))
    exe.run(fluid.default_startup_program())
    weight = np.ones((4, 3), "float32")
    exe.run(feed={"x": np.ones((2, 4), "float32"), "fc_0.w_0": weight})
    assert (weight == 1).all()
    assert (value("fc_0.w_0") != 1).any()
    weight[...] = 7
    assert (value("fc_0.w_0") != 7).all()


def test_what_a_persistable_was_assigned_from_stays_apart(exe: fluid.Executor) -> None:
    x = fluid.data("x", [2, 2])
    kept = fluid.layers.create_global_var([4], 0.0, "float32", persistable=True, name="kept")
    fluid.layers.assign(fluid.layers.reshape(x, [4]), kept)
    exe.run(fluid.default_startup_program())
    fed = np.ones((2, 2), "float32")
    exe.run(feed={"x": fed})
    fed[...] = 9
    assert (value("kept") == 1).all()


def test_arrays_in_another_byte_order_are_turned(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 2])
    y = fluid.layers.scale(x, 2.0)
    (got,) = exe.run(feed={"x": np.array([[1.5, 2.5]], ">f4")}, fetch_list=[y])
    assert got.dtype == np.dtype("<f4")
    assert got.tolist() == [[3.0, 5.0]]
    tensor = fluid.LoDTensor()
    tensor.set(np.array([1.5], ">f4"))
    assert np.array(tensor).tobytes() == np.array([1.5], "<f4").tobytes()


def test_arrays_with_gaps_are_taken_as_they_read(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 2])
    y = fluid.layers.reshape(x, [-1])
    source = np.arange(12, dtype="float32").reshape(6, 2)[::2]
    (got,) = exe.run(feed={"x": source}, fetch_list=[y])
    assert got.tolist() == source.ravel().tolist()
