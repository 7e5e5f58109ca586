"""Fed values: never written to, converted, checked against their variables."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import (
    FeedError,
)


def value(name: str) -> Any:
    return np.array(fluid.global_scope().find_var(name).get_tensor())


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


def test_an_operator_that_updates_in_place_updates_a_copy_of_the_fed_array(exe: fluid.Executor) -> None:
    p, g = fluid.data("p", [3]), fluid.data("g", [3])
    rate = fluid.layers.fill_constant([1], "float32", 0.5)
    slots = {"Param": [p], "Grad": [g], "LearningRate": [rate]}
    fluid.default_main_program().global_block().append_op("sgd", slots, {"ParamOut": [p]})
    fed = {"p": np.ones(3, "float32"), "g": np.full(3, 4, "float32")}
    (got,) = exe.run(feed=fed, fetch_list=[p])
    assert (got.tolist(), fed["p"].tolist()) == ([-1.0] * 3, [1.0] * 3)


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


def test_arrays_in_another_byte_order_are_converted(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 2])
    y = fluid.layers.scale(x, 2.0)
    (got,) = exe.run(feed={"x": np.array([[1.5, 2.5]], ">f4")}, fetch_list=[y])
    assert got.dtype == np.dtype("<f4")
    assert got.tolist() == [[3.0, 5.0]]
    tensor = fluid.LoDTensor()
    tensor.set(np.array([1.5], ">f4"))
    assert np.array(tensor).tobytes() == np.array([1.5], "<f4").tobytes()


def test_fed_arrays_may_be_strided_views(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 2])
    y = fluid.layers.reshape(x, [-1])
    source = np.arange(12, dtype="float32").reshape(6, 2)[::2]
    (got,) = exe.run(feed={"x": source}, fetch_list=[y])
    assert got.tolist() == source.ravel().tolist()


X = np.ones((2, 4), "float32")


def test_a_variable_as_key_of_a_feed_is_refused(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 4])
    fluid.layers.scale(x, 2.0)
    with pytest.raises(TypeError, match=r"key <temporary x.*expected the name of a variable: \{'x': array\}"):
        exe.run(feed={x: X})


def test_fed_names_that_the_program_lacks_are_ignored_with_a_warning(exe: fluid.Executor) -> None:
    out = fluid.layers.scale(fluid.data("x", [None, 4]), 2.0)
    for _ in range(2):  # also where the plan is known
        with pytest.warns(UserWarning, match=r"'X' is not found in the program; did you mean 'x'\?") as given:
            (value,) = exe.run(feed={"x": X, "X": X}, fetch_list=[out])
        assert given[0].filename == __file__
        assert (value == 2 * X).all()


@pytest.mark.parametrize("declare", [fluid.data, fluid.layers.data])
def test_a_flat_label_is_broadcast_as_in_fluid_with_a_warning(exe: fluid.Executor, declare: Any) -> None:
    x, y = fluid.data("x", [None, 1]), declare("y", [-1, 1])
    cost = fluid.layers.square_error_cost(x, y)
    a, b = np.array([[1], [2], [4]], "float32"), np.array([1, 3, 9], "float32")
    with pytest.warns(
        UserWarning, match=r"'y' has shape \[None, 1\] and is fed an array of shape \[3\]"
    ) as given:
        (found,) = exe.run(feed={"x": a, "y": b}, fetch_list=[cost])
    assert given[0].filename == __file__
    assert found.tolist() == ((a - b) ** 2).tolist()  # (3, 3), as Fluid computes


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (X.astype("float64"), "float32, the fed array has float64"),
        (np.ones((2, 5), "float32"), r"\[None, 4\], the fed array has \[2, 5\]"),
        ([[1.0, 2.0, 3.0, 4.0]], "is fed a list"),
        (None, "is fed a NoneType"),
        (fluid.LoDTensor(), "is empty"),
        (np.array([["a", "b", "c", "d"]]), "expected numbers"),
    ],
    ids=["dtype", "shape", "list", "none", "empty", "text"],
)
def test_feeds_that_do_not_fit_are_refused(exe: fluid.Executor, value: object, words: str) -> None:
    x = fluid.data("x", [None, 4])
    y = fluid.layers.scale(x, 2.0)
    with pytest.raises((FeedError, TypeError), match=words):
        exe.run(feed={"x": value}, fetch_list=[y])


def test_a_fed_array_from_a_pickle_gets_the_standard_dtype_object(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 4])
    fed = pickle.loads(pickle.dumps(X))
    (found,) = exe.run(feed={"x": fed}, fetch_list=[fluid.layers.reshape(x, [-1])], return_numpy=False)
    assert found.array.dtype is np.dtype("float32")  # its own object takes numpy's fast ways
    assert found.array.tolist() == X.reshape(-1).tolist()


def test_a_bfloat16_array_of_ml_dtypes_is_fed_as_its_bits(exe: fluid.Executor) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="JAX brings it")
    x = fluid.data("x", [None, 2], "bfloat16")
    fed = np.array([[1.0, -2.5]], ml_dtypes.bfloat16)
    (found,) = exe.run(feed={"x": fed}, fetch_list=[fluid.layers.assign(x)])
    assert found.tolist() == [[0x3F80, 0xC020]]  # sign, eight bits of exponent, seven of the fraction
    tensor = fluid.LoDTensor()
    tensor.set(fed)
    assert np.array(tensor).tolist() == found.tolist()


layers = fluid.layers


def run(fetch: Any, **feed: Any) -> Any:
    return fluid.Executor().run(feed=feed, fetch_list=[fetch], return_numpy=False)[0]


@pytest.mark.filterwarnings("ignore:variable 'x' has shape")
def test_a_flat_array_fits_a_variable_of_its_length() -> None:
    x = fluid.data("x", [4, 1])
    assert np.array(run(layers.scale(x, 2.0), x=np.ones(4, "float32"))).tolist() == [2.0] * 4
    with pytest.raises(FeedError, match=r"shape \[4, 1\], the fed array has \[3\]"):
        run(layers.scale(x, 2.0), x=np.ones(3, "float32"))


# What real Fluid 1.8.5 gives: its factor is an integer where the numbers are.
@pytest.mark.parametrize(
    ("scale", "bias", "wanted"), [(0.5, 0.0, [0, 0, 0]), (2.5, 0.0, [2, 4, 6]), (2.5, 1.5, [3, 5, 7])]
)
def test_integers_fed_for_floats_keep_their_dtype_in_scale(
    scale: float, bias: float, wanted: list[int]
) -> None:
    x = layers.data("x", [1])
    out = layers.scale(x, scale, bias=bias)
    for _ in range(2):
        found = np.array(run(out, x=np.array([[1], [2], [3]])))
        assert (found.dtype, found.reshape(-1).tolist()) == (np.int64, wanted)
    assert np.array(run(out, x=np.ones((1, 1), "float32"))).dtype == np.float32


@pytest.mark.filterwarnings("ignore:variable 'y' has shape")
@pytest.mark.parametrize("width", [2, 3])
def test_a_flat_operand_is_broadcast_by_its_fed_shape(width: int) -> None:
    x, y = layers.data("x", [width]), layers.data("y", [1])
    out = layers.elementwise_add(x, y, axis=0)
    found = np.array(run(out, x=np.zeros((2, width), "float32"), y=np.array([1, 2], "float32")))
    assert found.tolist() == [[1.0] * width, [2.0] * width]


@pytest.mark.parametrize(
    "layer",
    [
        lambda x: layers.sequence_pool(x, "sum"),
        lambda x: layers.sequence_pad(x, layers.assign(np.zeros(1, "float32")))[0],
        lambda x: layers.relu(x),
        lambda x: layers.reshape(x, [-1, 1, 2]),
        lambda x: layers.sequence_slice(
            x, layers.assign(np.zeros((2, 1), "int64")), layers.assign(np.ones((2, 1), "int64"))
        ),
        lambda x: layers.sequence_concat([x, x]),
    ],
    ids=["pool", "pad", "relu", "reshape", "slice", "concat"],
)
def test_gradients_have_the_lod_of_their_variable(layer: Any) -> None:
    x = fluid.data("x", [None, 2], lod_level=1)
    x.stop_gradient = False
    (slope,) = fluid.gradients([layers.reduce_sum(layer(x))], [x])
    fed = fluid.create_lod_tensor(np.ones((5, 2), "float32"), [[2, 3]], fluid.CPUPlace())
    assert run(slope, x=fed).lod() == [[0, 2, 5]]
