"""The error of a failing step: the operator, its variables with shapes, the user's line, the next step."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import (
    NotInitializedError,
    OperatorError,
    UnsupportedError,
)

X = np.ones((2, 4), "float32")


def test_a_failing_operator_is_named_with_shapes_and_the_line_of_the_script(exe: fluid.Executor) -> None:
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


def test_an_error_of_our_own_check_has_no_cause(exe: fluid.Executor) -> None:
    label = fluid.data("l", [None, 1], "int64")
    fluid.layers.cross_entropy(fluid.data("x", [None, 4]), label)
    with pytest.raises(OperatorError, match="cross_entropy2") as caught:
        exe.run(feed={"x": X, "l": np.array([[1], [9]])})
    assert caught.value.__cause__ is None
    assert "Label holds 9" in str(caught.value)


def test_the_error_of_a_user_function_is_the_cause(exe: fluid.Executor) -> None:
    def refuse(x: object) -> None:
        raise KeyError("no such row")

    x = fluid.data("x", [None, 4])
    out = fluid.default_main_program().global_block().create_var(name="out", dtype="float32", shape=[-1, 4])
    fluid.layers.py_func(refuse, x, out)
    with pytest.raises(OperatorError, match="py_func") as caught:
        exe.run(feed={"x": X}, fetch_list=[out])
    assert isinstance(caught.value.__cause__, KeyError)


def test_the_error_for_a_missing_feed_names_it_and_says_what_to_do(exe: fluid.Executor) -> None:
    fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    exe.run(fluid.default_startup_program())
    with pytest.raises(NotInitializedError, match=r"'x'.*holds no value") as caught:
        exe.run()
    assert caught.value.hint == "feed it: exe.run(..., feed={'x': array})"


def test_the_hint_for_parameters_without_values_names_only_the_startup_program(
    exe: fluid.Executor,
) -> None:
    fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    with pytest.raises(NotInitializedError, match=r"'fc_0\.w_0', which holds no value") as caught:
        exe.run(feed={"x": X})
    assert "run the startup program first" in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_wrong_width_is_reported_with_the_names_of_the_variables(exe: fluid.Executor) -> None:
    fluid.layers.fc(fluid.layers.data("x", [13]), 1)
    exe.run(fluid.default_startup_program())
    with pytest.raises(
        OperatorError, match=r"failed: mul: x has 4 columns, fc_0\.w_0 has 13 rows; they must"
    ):
        exe.run(feed={"x": X})


def test_running_an_operator_of_another_paddle_version_names_it(exe: fluid.Executor) -> None:
    from paddlelike.framework.codec.schema import messages

    message = messages().ProgramDesc()
    block = message.blocks.add(idx=0, parent_idx=-1)
    block.ops.add(type="warp_drive")
    program = fluid.Program.parse_from_string(message.SerializeToString())
    assert "warp_drive" in str(program)
    with pytest.raises(UnsupportedError, match="'warp_drive' cannot be run"):
        exe.run(program)


def test_nan_and_inf_pass_unless_the_check_is_on(
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


def test_set_flags_overrides_the_environment(exe: fluid.Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    from paddlelike.framework import flags

    monkeypatch.setattr(flags, "_flags", {})
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    assert fluid.get_flags("FLAGS_check_nan_inf") == {"FLAGS_check_nan_inf": True}
    monkeypatch.setenv("FLAGS_check_nan_inf", "0")
    assert fluid.get_flags(["FLAGS_check_nan_inf"]) == {"FLAGS_check_nan_inf": True}
    with pytest.raises(ValueError, match="FLAGS_nobody"):
        fluid.get_flags("FLAGS_nobody")
