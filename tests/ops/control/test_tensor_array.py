"""Arrays of tensors and choices of tensors, in programs of a few operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import OperatorError
from paddlelike.layers.control.sub_blocks import select_input

layers = fluid.layers


def make_index(value: int) -> Any:
    return layers.fill_constant([1], "int64", value)


def make_tensor(*values: float) -> Any:
    return layers.assign(np.array(values, "float32"))


def run(*fetches: Any, feed: Any = None) -> list[Any]:
    exe = fluid.Executor()
    return exe.run(fluid.default_main_program(), feed=feed, fetch_list=list(fetches))


def test_reading_an_array_element_returns_the_written_value() -> None:
    array = layers.array_write(make_tensor(1, 2), make_index(0))
    layers.array_write(make_tensor(3), make_index(1), array)
    read = [layers.array_read(array, make_index(i)) for i in (1, 0)]
    one, two, length = run(*read, layers.array_length(array))
    assert (one.tolist(), two.tolist(), length.tolist()) == ([3], [1, 2], [2])


def test_writing_past_the_end_leaves_empty_elements() -> None:
    array = layers.array_write(make_tensor(1), make_index(3))
    assert run(layers.array_length(array))[0].tolist() == [4]
    layers.array_read(array, make_index(1))
    with pytest.raises(OperatorError, match=r"no element 1; it has 4 elements"):
        run(layers.array_length(array))


def test_every_run_starts_with_an_empty_array() -> None:
    length = layers.array_length(layers.array_write(make_tensor(1), make_index(0)))
    assert [run(length)[0].tolist() for _ in range(2)] == [[1], [1]]


def test_an_empty_array_has_length_0() -> None:
    assert run(layers.array_length(layers.create_array("float32")))[0].tolist() == [0]


def test_a_written_value_is_a_copy() -> None:
    """A later write to the variable does not change the element."""
    value = layers.create_global_var([1], 1.0, "float32", persistable=True, name="value")
    array = layers.array_write(value, make_index(0))
    layers.assign(make_tensor(5), value)
    fluid.Executor().run(fluid.default_startup_program())
    assert run(layers.array_read(array, make_index(0)), value)[0].tolist() == [1]


def test_sequences_keep_their_lod_in_an_array() -> None:
    x = fluid.data("x", [None, 1], "float32", lod_level=1)
    read = layers.array_read(layers.array_write(x, make_index(0)), make_index(0))
    fed = fluid.create_lod_tensor(np.zeros((3, 1), "float32"), [[1, 2]], fluid.CPUPlace())
    exe = fluid.Executor()
    (got,) = exe.run(feed={"x": fed}, fetch_list=[read], return_numpy=False)
    assert got.lod() == [[0, 1, 3]]


@pytest.mark.parametrize("stacked", [False, True], ids=["joined", "stacked"])
def test_an_array_becomes_a_tensor(stacked: bool) -> None:
    parts = [np.arange(4, dtype="float32").reshape(2, 2) + 10 * i for i in range(3)]
    array = layers.create_array("float32")
    for i, part in enumerate(parts):
        layers.array_write(layers.assign(part), make_index(i), array)
    out, sizes = layers.tensor_array_to_tensor(array, axis=1, use_stack=stacked)
    got, got_sizes = run(out, sizes)
    wanted = np.stack(parts, 1) if stacked else np.concatenate(parts, 1)
    np.testing.assert_array_equal(got, wanted)
    assert got_sizes.tolist() == ([1, 1, 1] if stacked else [2, 2, 2])


def test_array_elements_that_cannot_be_concatenated_are_refused() -> None:
    array = layers.array_write(layers.assign(np.zeros((2, 2), "float32")), make_index(0))
    layers.array_write(layers.assign(np.zeros((3, 2), "float32")), make_index(1), array)
    out, _ = layers.tensor_array_to_tensor(array, axis=1)
    with pytest.raises(OperatorError, match=r"\[2, 2\], \[3, 2\] do not join along axis 1"):
        run(out)


@pytest.mark.parametrize("chosen", [0, 1])
def test_the_gradient_goes_to_the_selected_input(chosen: int) -> None:
    xs = [fluid.data(name, [2], "float32") for name in "ab"]
    for x in xs:
        x.stop_gradient = False
    mask = layers.fill_constant([1], "int32", chosen)
    out = select_input(xs, mask)
    gradients = fluid.gradients(layers.reduce_sum(out * out), xs)
    feed = {"a": np.array([1, 2], "float32"), "b": np.array([3, 4], "float32")}
    got, gradient = run(out, gradients[chosen], feed=feed)
    wanted = feed["ab"[chosen]]
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(gradient, 2 * wanted)


def test_a_mask_must_name_a_variable() -> None:
    out = select_input([make_tensor(1), make_tensor(2)], layers.fill_constant([1], "int32", 2))
    with pytest.raises(OperatorError, match="Mask is 2, but there are 2 variables"):
        run(out)


def test_an_index_counts_from_0() -> None:
    layers.array_write(make_tensor(1), make_index(-1))
    with pytest.raises(OperatorError, match="the index is -1"):
        run(make_tensor(1))
