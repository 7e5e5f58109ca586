"""print writes what it is asked to, as often as it is asked to; py_func calls Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import OperatorError

layers = fluid.layers
X = np.array([[1.5, 2.0, 3.0], [4.0, 5.0, 6.0]], "float32")


def run(fetch: list[Any], **feed: Any) -> list[Any]:
    return fluid.Executor().run(feed=feed, fetch_list=fetch)


def make_variable(name: str, shape: list[int]) -> Any:
    block = fluid.default_main_program().current_block()
    return block.create_var(name=name, shape=shape, dtype="float32")


def test_a_tensor_is_printed_and_passed_on(capsys: Any) -> None:
    out = layers.Print(fluid.data("x", [None, 3]), message="hello", summarize=4)
    np.testing.assert_array_equal(run([out], x=X)[0], X)
    assert capsys.readouterr().out == (
        "hello\nTensor[x]\n    shape: [2, 3]\n    dtype: float32\n    data: 1.5, 2.0, 3.0, 4.0, ...\n"
    )


def test_print_shows_only_the_selected_properties(capsys: Any) -> None:
    plain = {f"print_tensor_{what}": False for what in ("name", "type", "shape", "lod")}
    run([layers.Print(fluid.data("x", [None, 3]), summarize=-1, **plain)], x=X)
    assert capsys.readouterr().out == "    data: 1.5, 2.0, 3.0, 4.0, 5.0, 6.0\n"


def test_print_shows_the_lod(capsys: Any) -> None:
    x = fluid.data("x", [None, 3], lod_level=1)
    layers.Print(x)
    run([], x=fluid.create_lod_tensor(X, [[1, 1]], fluid.CPUPlace()))
    assert "    LoD: [[0, 1, 2]]\n" in capsys.readouterr().out


def test_print_stops_after_first_n_runs(capsys: Any) -> None:
    layers.Print(fluid.data("x", [None, 3]), first_n=2)
    exe = fluid.Executor()
    for _ in range(3):
        exe.run(feed={"x": X})
    assert capsys.readouterr().out.count("Tensor[x]") == 2


@pytest.mark.parametrize(
    ("phase", "names"),
    [("forward", ["x"]), ("backward", ["print_x_0.tmp_0@GRAD"]), ("both", ["x", "print_x_0.tmp_0@GRAD"])],
)
def test_print_shows_gradients(phase: str, names: list[str], capsys: Any) -> None:
    x = fluid.data("x", [None, 3])
    x.stop_gradient = False
    loss = layers.reduce_sum(layers.square(layers.Print(x, print_phase=phase)))
    (gradient,) = fluid.gradients(loss, x)
    np.testing.assert_array_equal(run([gradient], x=X)[0], 2 * X)
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Tensor")]
    assert printed == [f"Tensor[{name}]" for name in names]


def test_py_func_calls_a_python_function() -> None:
    x = fluid.data("x", [None, 3])
    total, part = make_variable("total", [-1]), make_variable("part", [-1, 1])
    layers.py_func(lambda x: (np.sum(x, 1), np.array(x)[:, :1]), x, [total, part])
    sums, first = run([total, part], x=X)
    np.testing.assert_array_equal(sums, X.sum(1))
    np.testing.assert_array_equal(first, X[:, :1])


def test_py_func_calls_a_backward_function() -> None:
    x = fluid.data("x", [None, 3])
    x.stop_gradient = False
    out = make_variable("out", [-1, 3])
    seen = []

    def backward(out: Any, d_out: Any) -> Any:
        seen.append(np.array(out))
        return np.array(d_out) * (1 - np.square(out))

    layers.py_func(np.tanh, x, out, backward, skip_vars_in_backward_input=x)
    (gradient,) = fluid.gradients(layers.reduce_sum(out), x)
    np.testing.assert_allclose(run([gradient], x=X)[0], 1 - np.tanh(X) ** 2, rtol=1e-6)
    np.testing.assert_array_equal(seen, [np.tanh(X)])


@pytest.mark.parametrize("answer", [0, None, np.zeros([2, 3])], ids=["0", "None", "zeros"])
def test_py_func_accepts_none_as_the_gradient_of_a_label(answer: Any) -> None:
    x, label = fluid.data("x", [None, 3]), fluid.data("label", [None, 3])
    x.stop_gradient = False
    out = make_variable("out", [1])
    layers.py_func(
        lambda x, y: np.sum(np.square(np.array(x) - np.array(y))).reshape(1),
        [x, label],
        out,
        lambda x, y, out, d_out: (2 * (np.array(x) - np.array(y)) * np.array(d_out), answer),
    )
    (gradient,) = fluid.gradients(out, x)
    written = fluid.default_main_program().global_block().ops[-1].output_arg_names
    assert written == ["x@GRAD", "@EMPTY@"]  # what 1.8.5 builds
    np.testing.assert_allclose(run([gradient], x=X, label=X + 1)[0], np.full_like(X, -2), rtol=1e-6)


def test_a_backward_function_that_returns_too_few_gradients_is_refused() -> None:
    x, label = fluid.data("x", [None, 3]), fluid.data("label", [None, 3])
    x.stop_gradient = False
    out = make_variable("out", [-1, 3])
    layers.py_func(lambda x, y: np.array(x), [x, label], out, lambda x, y, out, d_out: np.array(d_out))
    (gradient,) = fluid.gradients(out, x)
    with pytest.raises(OperatorError, match=r"gave 1 values for 2: \['x@GRAD', '@EMPTY@'\]") as caught:
        run([gradient], x=X, label=X)
    assert "return 2 values; one for @EMPTY@ may be None" in str(caught.value)


def test_py_func_without_a_backward_function_stops_gradients() -> None:
    x = fluid.data("x", [None, 3])
    x.stop_gradient = False
    weight = layers.create_parameter([3], "float32")
    out = make_variable("out", [-1, 3])
    layers.py_func(np.tanh, layers.elementwise_mul(x, weight), out)
    assert fluid.backward.append_backward(layers.reduce_sum(out)) == []


def test_py_func_may_have_no_output() -> None:
    seen = []
    layers.py_func(lambda x: seen.append(np.array(x)), fluid.data("x", [None, 3]), None)
    run([], x=X)
    np.testing.assert_array_equal(seen, [X])


def test_py_func_names_a_function_that_returns_too_few_outputs() -> None:
    layers.py_func(lambda x: None, fluid.data("x", [None, 3]), make_variable("out", [-1, 3]))
    with pytest.raises(OperatorError, match=r"the function gave 0 values for 1: \['out'\]"):
        run([], x=X)


def test_a_function_registered_in_another_process_is_an_error() -> None:
    layers.py_func(np.tanh, fluid.data("x", [None, 3]), make_variable("out", [-1, 3]))
    program = fluid.default_main_program().clone()
    program.global_block().ops[0]._set_attr("forward_callable_id", 10_000)
    with pytest.raises(OperatorError, match=r"function 10000 for .* is not known in this process"):
        fluid.Executor().run(program, feed={"x": X})


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        (lambda x: (3, x, x), TypeError, "layer 'py_func': func must be a function, got 3 (int)"),
        (
            lambda x: (np.tanh, x, make_variable("out", [])),
            ValueError,
            "layer 'py_func': out 'out' has no shape",
        ),
        (
            lambda x: (np.tanh, x, x, None, make_variable("other", [3])),
            ValueError,
            "layer 'py_func': skip_vars_in_backward_input names ['other'], which are neither in x nor in out",
        ),
    ],
    ids=["function", "shape", "skipped"],
)
def test_invalid_py_func_arguments_get_a_clear_message(
    arguments: Any, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as caught:
        layers.py_func(*arguments(fluid.data("x", [None, 3])))
    assert str(caught.value).startswith(text)
