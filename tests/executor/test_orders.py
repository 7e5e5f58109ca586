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
