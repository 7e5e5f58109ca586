"""Fetched values: arrays that later runs do not change, and what cannot be fetched."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import (
    EnforceNotMet,
    NotInitializedError,
)
from tests.executor.views import VIEWS


def parameter(name: str = "fc_0.w_0") -> Any:
    return fluid.default_main_program().global_block().var(name)


def value(name: str) -> Any:
    return np.array(fluid.global_scope().find_var(name).get_tensor())


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


def test_changing_a_fetched_array_changes_no_variable(exe: fluid.Executor) -> None:
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


X = np.ones((2, 4), "float32")


def test_fetching_a_variable_without_a_value_is_an_error(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 4])
    fluid.layers.scale(x, 2.0)
    fluid.default_main_program().global_block().create_var(name="lost", shape=[1])
    with pytest.raises(NotInitializedError, match="'lost', which holds no value"):
        exe.run(feed={"x": X}, fetch_list=["lost"])


def test_the_error_for_an_unknown_fetch_suggests_near_names(exe: fluid.Executor) -> None:
    fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    exe.run(fluid.default_startup_program())
    with pytest.raises(EnforceNotMet, match=r"did you mean 'fc_0\.tmp_"):
        exe.run(feed={"x": X}, fetch_list=["fc_0.tmp_9"])


@pytest.mark.parametrize("program", ["default", "empty", "other"])
@pytest.mark.parametrize("return_numpy", [True, False], ids=["arrays", "tensors"])
def test_a_value_of_the_scope_is_fetched_though_the_program_does_not_know_it(
    exe: fluid.Executor, program: str, return_numpy: bool
) -> None:
    main, startup, other = fluid.Program(), fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        fluid.layers.fc(fluid.data("x", [None, 4]), 3, param_attr="w")
    with fluid.program_guard(other):
        three = fluid.layers.fill_constant([1], "float32", 3.0)
    exe.run(startup)
    run = {"default": None, "empty": fluid.Program(), "other": other}[program]
    fetches = ["w", main.global_block().var("w")] + ([three, "w"] if program == "other" else [])
    got = [np.array(one) for one in exe.run(run, fetch_list=fetches, return_numpy=return_numpy)]
    w = value("w")
    for one, wanted in zip(got, [w, w, np.float32([3]), w], strict=False):
        np.testing.assert_array_equal(one, wanted)
    exe.run(run, fetch_list=["w"])[0][:] = 9
    np.testing.assert_array_equal(value("w"), w)
    with pytest.raises(EnforceNotMet, match="'nobody'"):
        exe.run(run, fetch_list=["w", "nobody"])


def test_a_fetch_list_that_contains_none_is_refused(exe: fluid.Executor) -> None:
    x, other = fluid.data("x", [None, 4]), fluid.data("other", [None, 4])
    x.stop_gradient = other.stop_gradient = False
    found = fluid.gradients([fluid.layers.tanh(x)], [other, other])
    with pytest.raises(
        TypeError, match=r"fetch_list holds None, expected variables or names: \[None, None\]"
    ):
        exe.run(feed={"x": X}, fetch_list=found)


def test_rows_of_one_element_print_as_numbers(exe: fluid.Executor) -> None:
    """As scripts print losses and predictions; numpy from 2.4 on refuses its own arrays of shape (1,)."""
    x = fluid.data("x", [None, 1])
    total, same = fluid.layers.reduce_sum(x), fluid.layers.scale(x, 2.0)
    feed = {"x": np.array([[1.5], [2.5]], "float32")}
    loss, column = exe.run(feed=feed, fetch_list=[total, same])
    assert "%.2f" % loss == "4.00"  # noqa: UP031  (what the scripts write)
    assert ["%.1f %d" % (row, row) for row in column] == ["3.0 3", "5.0 5"]  # noqa: UP031
    assert (float(column[1]), int(column[-1]), float(loss)) == (5.0, 5, 4.0)
    assert (column + 1).tolist() == [[4.0], [6.0]]
    with pytest.raises(TypeError):
        float(column)
    compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        places=fluid.cpu_places(2)
    )
    (both,) = exe.run(compiled, feed=feed, fetch_list=[total])
    assert ["%.1f" % row for row in both] == ["1.5", "2.5"]  # noqa: UP031


def test_the_type_of_a_fetched_array_equals_ndarray(exe: fluid.Executor) -> None:
    (loss,) = exe.run(feed={"x": np.ones((1, 1), "float32")}, fetch_list=[fluid.data("x", [None, 1])])
    assert type(loss) == np.ndarray  # noqa: E721  # as scripts ask
    assert {np.ndarray: "array"}[type(loss)] == "array"
    assert type(loss) != float  # noqa: E721
    assert type(pickle.loads(pickle.dumps(loss))) is np.ndarray


def test_a_fed_lod_is_fetched_with_its_rows_and_never_dropped(exe: fluid.Executor) -> None:
    rows = np.arange(10, dtype="float32").reshape(5, 2)
    out = fluid.layers.scale(fluid.data("x", [None, 2], lod_level=1), 2.0)
    feed = {"x": fluid.create_lod_tensor(rows, [[2, 3]], fluid.CPUPlace())}
    (tensor,) = exe.run(feed=feed, fetch_list=[out], return_numpy=False)
    assert tensor.recursive_sequence_lengths() == [[2, 3]]
    np.testing.assert_array_equal(np.array(tensor), 2 * rows)
    with pytest.raises(RuntimeError, match="has a LoD"):
        exe.run(feed=feed, fetch_list=[out])


@pytest.mark.parametrize("return_numpy", [True, False])
def test_a_sparse_gradient_is_not_fetched(exe: fluid.Executor, return_numpy: bool) -> None:
    rows = fluid.embedding(fluid.data("ids", [None], "int64"), [4, 2], is_sparse=True, param_attr="table")
    fluid.backward.append_backward(fluid.layers.reduce_sum(rows))
    exe.run(fluid.default_startup_program())
    with pytest.raises(EnforceNotMet, match="holds SelectedRows"):
        exe.run(feed={"ids": np.array([1, 3])}, fetch_list=["table@GRAD"], return_numpy=return_numpy)
