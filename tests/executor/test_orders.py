"""Values with their channels last in memory reach operators that want C order as copies in C order."""

from __future__ import annotations

from typing import Any

import numpy as np

import paddlelike as fluid
from tests.helpers.fresh import fresh_programs


def flatten_in_place(x: Any) -> Any:
    """A function that relies on C order: what it writes into a flat view must be in its result."""
    out = np.array(x, order="K")
    assert out.flags.c_contiguous
    out.reshape(-1)[:] = np.arange(out.size)
    return out


def test_python_functions_get_the_results_of_convolutions_in_c_order() -> None:
    with fresh_programs() as (main, startup):
        x = fluid.data("x", [None, 3, 6, 6])
        hidden = fluid.layers.relu(fluid.layers.conv2d(x, 4, 3))
        out = main.current_block().create_var(name="out", shape=[-1, 4, 4, 4], dtype="float32")
        fluid.layers.py_func(flatten_in_place, hidden, out)
        exe = fluid.Executor()
        exe.run(startup)
        (found,) = exe.run(main, feed={"x": np.ones((2, 3, 6, 6), "float32")}, fetch_list=[out])
    np.testing.assert_array_equal(found, np.arange(2 * 64).reshape(2, 4, 4, 4))


def test_fetched_arrays_are_in_c_order() -> None:
    with fresh_programs() as (main, startup):
        x = fluid.data("x", [None, 3, 6, 6])
        out = fluid.layers.conv2d(x, 4, 3)
        exe = fluid.Executor()
        exe.run(startup)
        feed = {"x": np.ones((2, 3, 6, 6), "float32")}
        for as_numpy in (True, False):
            (found,) = exe.run(main, feed=feed, fetch_list=[out], return_numpy=as_numpy)
            assert np.asarray(found).flags.c_contiguous


def test_a_loop_with_an_array_of_tensors_reads_the_result_of_a_pool() -> None:
    """The slot of the loop's gradient that holds the pool's result holds the array as well."""
    layers = fluid.layers
    with fresh_programs() as (main, startup):
        image = fluid.data("x", [None, 3, 8, 8])
        pooled = layers.pool2d(layers.conv2d(image, 4, 3, padding=1), 2, pool_stride=2)
        times, limit = (layers.fill_constant([1], "int64", count) for count in (0, 3))
        array = layers.array_write(layers.scale(pooled, 1.0), times)
        below = layers.less_than(times, limit)
        with layers.While(below).block():
            after = layers.tanh(layers.array_read(array, times)) + pooled
            layers.increment(times)
            layers.array_write(after, times, array)
            layers.less_than(times, limit, cond=below)
        loop = layers.mean(layers.array_read(array, times))
        value = pooled
        for _ in range(3):
            value = layers.tanh(value) + pooled
        grads = [fluid.gradients(loss, [pooled])[0] for loss in (loop, layers.mean(value))]
        exe = fluid.Executor()
        exe.run(startup)
        feed = {"x": np.linspace(-1, 1, 2 * 192).reshape(2, 3, 8, 8).astype("float32")}
        found, unrolled = exe.run(main, feed=feed, fetch_list=grads)
    np.testing.assert_allclose(found, unrolled, rtol=1e-5)  # sums of three terms in another order
