"""What a failing run says: the operator, its variables with shapes, the user's line, the next step."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import (
    EnforceNotMet,
    FeedError,
    NotInitializedError,
    OperatorError,
    UnsupportedError,
)

X = np.ones((2, 4), "float32")


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor(fluid.CPUPlace())


def test_a_failing_operator_is_named_with_shapes_and_the_user_s_line(exe: fluid.Executor) -> None:
    x = fluid.layers.data("x", [4])
    fluid.layers.fc(x, 3)  # the line the error names
    exe.run(fluid.default_startup_program())
    with pytest.raises(OperatorError) as caught:
        exe.run(feed={"x": np.ones((2, 5), "float32")})
    text = str(caught.value)
    for part in ("'mul'", "fc_0.tmp_0", "x: float32[2, 5]", "fc_0.w_0: float32[4, 3]"):
        assert part in text
    (line,) = re.findall(rf"{re.escape(__file__)}:(\d+)", text)
    assert "the line the error names" in Path(__file__).read_text().splitlines()[int(line) - 1]


def test_a_failing_gradient_names_the_line_of_its_forward(exe: fluid.Executor) -> None:
    x = fluid.layers.data("x", [4])
    loss = fluid.layers.mean(fluid.layers.fc(x, 3))
    fluid.backward.append_backward(loss)
    block = fluid.default_main_program().global_block()
    (grad,) = [op for op in block.ops if op.type == "mul_grad"]
    (forward,) = [op for op in block.ops if op.type == "mul"]
    assert grad.line == forward.line
    assert __file__ in forward.line


def test_the_first_cause_is_kept(exe: fluid.Executor) -> None:
    label = fluid.data("l", [None, 1], "int64")
    fluid.layers.cross_entropy(fluid.data("x", [None, 4]), label)
    with pytest.raises(OperatorError, match="cross_entropy2") as caught:
        exe.run(feed={"x": X, "l": np.array([[1], [9]])})
    assert caught.value.__cause__ is not None


def test_a_missing_feed_is_named_with_what_to_do(exe: fluid.Executor) -> None:
    fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    exe.run(fluid.default_startup_program())
    with pytest.raises(NotInitializedError, match=r"'x'.*hold no value") as caught:
        exe.run()
    assert caught.value.hint == "feed it: exe.run(..., feed={'x': array})"


def test_a_variable_as_key_of_a_feed_is_not_fed(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 4])
    fluid.layers.scale(x, 2.0)
    with pytest.raises((EnforceNotMet, TypeError), match="x"):
        exe.run(feed={x: X})


def test_parameters_without_values_ask_for_the_startup_program(exe: fluid.Executor) -> None:
    fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    with pytest.raises(NotInitializedError, match="startup program"):
        exe.run(feed={"x": X})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (X.astype("float64"), "float32, the fed array has float64"),
        (np.ones((2, 5), "float32"), r"\[None, 4\], the fed array has \[2, 5\]"),
        ([[1.0, 2.0, 3.0, 4.0]], "is fed a list"),
        (None, "is fed a NoneType"),
        (fluid.LoDTensor(), "is empty"),
        (np.array([["a", "b", "c", "d"]]), "dtype"),
    ],
    ids=["dtype", "shape", "list", "none", "empty", "text"],
)
def test_feeds_that_do_not_fit(exe: fluid.Executor, value: object, words: str) -> None:
    x = fluid.data("x", [None, 4])
    y = fluid.layers.scale(x, 2.0)
    with pytest.raises((FeedError, TypeError), match=words):
        exe.run(feed={"x": value}, fetch_list=[y])


def test_operators_of_other_paddles_are_named_when_they_are_run(exe: fluid.Executor) -> None:
    from paddlelike.framework.codec.schema import messages

    message = messages().ProgramDesc()
    block = message.blocks.add(idx=0, parent_idx=-1)
    block.ops.add(type="warp_drive")
    program = fluid.Program.parse_from_string(message.SerializeToString())
    assert "warp_drive" in str(program)
    with pytest.raises(UnsupportedError, match="'warp_drive' cannot be run"):
        exe.run(program)


def test_nan_and_inf_pass_unless_they_are_asked_for(
    exe: fluid.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = fluid.data("x", [None, 2])
    y = fluid.layers.log(x)
    feed = {"x": np.array([[1.0, 0.0]], "float32")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert exe.run(feed=feed, fetch_list=[y])[0].tolist() == [[0.0, -np.inf]]
    monkeypatch.setenv("FLAGS_check_nan_inf", "1")
    with pytest.raises(OperatorError, match=r"'log'.*holds -inf at \[0, 1\] \(1 of 2"):
        exe.run(feed=feed, fetch_list=[y])
    monkeypatch.setenv("FLAGS_check_nan_inf", "0")
    exe.run(feed=feed, fetch_list=[y])


def test_a_flag_that_was_set_wins(exe: fluid.Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    from paddlelike.framework import environment

    monkeypatch.setattr(environment, "_flags", {})
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    assert fluid.get_flags("FLAGS_check_nan_inf") == {"FLAGS_check_nan_inf": True}
    monkeypatch.setenv("FLAGS_check_nan_inf", "0")
    assert fluid.get_flags(["FLAGS_check_nan_inf"]) == {"FLAGS_check_nan_inf": True}
    with pytest.raises(ValueError, match="FLAGS_nobody"):
        fluid.get_flags("FLAGS_nobody")


def test_other_places_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"CUDAPlace\(0\) has no kernels here"):
        fluid.Executor(fluid.CUDAPlace(0))


def test_a_value_that_nothing_computes_is_not_fetched(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 4])
    fluid.layers.scale(x, 2.0)
    fluid.default_main_program().global_block().create_var(name="lost", shape=[1])
    with pytest.raises(NotInitializedError, match="'lost', which holds no value"):
        exe.run(feed={"x": X}, fetch_list=["lost"])


def test_near_names_are_told(exe: fluid.Executor) -> None:
    fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    exe.run(fluid.default_startup_program())
    with pytest.raises(EnforceNotMet, match=r"near names: fc_0\.tmp_"):
        exe.run(feed={"x": X}, fetch_list=["fc_0.tmp_9"])


def test_none_among_the_fetches_is_told(exe: fluid.Executor) -> None:
    x, other = fluid.data("x", [None, 4]), fluid.data("other", [None, 4])
    x.stop_gradient = other.stop_gradient = False
    found = fluid.gradients([fluid.layers.tanh(x)], [other])
    with pytest.raises(TypeError, match=r"fetch_list holds None, expected variables or names: \[None\]"):
        exe.run(feed={"x": X}, fetch_list=found)
