"""The advice of errors of building, feeding and running, followed to the letter: the result is right."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.foundation.tracebacks import install_hook
from tests.hints.advice import ROWS, SUMS, Advice, Message, fill, read_rows, run

layers = fluid.layers


def train_by_labels() -> fluid.Variable:
    """Return the scores of a network that is trained, each the sum of a row."""
    out, y = layers.fc(read_rows(), 1, param_attr=fill(1.0)), fluid.data("y", [None, 1])
    fluid.optimizer.SGD(0.0).minimize(layers.mean(layers.square_error_cost(out, y)))
    return out


def set_weights(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    layers.fc(read_rows(), 3)
    fluid.Executor().run(fluid.default_startup_program())
    fluid.set_program_state(fluid.default_main_program(), {"fc_0.w_0": array})
    return np.asarray(fluid.global_scope().find_var("fc_0.w_0").get_tensor())


def feed_picture(order: tuple[int, ...]) -> Any:
    picture = np.arange(24, dtype="float32").reshape(1, 2, 3, 4).transpose(order)
    return run(layers.scale(fluid.data("picture", [None, 3, 4, 2]), 1.0), {"picture": picture})


def take_first_copy(count: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("CPU_NUM", count)
    return len(fluid.cpu_places())


def export(target: Callable[[fluid.Variable], Any], tmp_path: Path) -> np.ndarray[Any, Any]:
    out, exe = train_by_labels(), fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path), ["x"], [target(out)], exe)
    program, names, targets = fluid.io.load_inference_model(str(tmp_path), exe)
    return np.asarray(exe.run(program, feed={names[0]: ROWS}, fetch_list=targets)[0])


ADVICE: dict[str, Advice] = {
    "a size that is not whole": Message(
        lambda: layers.fc(read_rows(), 2.5),  # type: ignore[arg-type]
        r"2\.5 is not a whole number",
        lambda: run(layers.fc(read_rows(), 2, param_attr=fill(1.0)), {"x": ROWS}),
        SUMS.repeat(2, 1),
    ),
    "an axis that is not there": Message(
        lambda: layers.softmax(read_rows(), axis=2),
        r"expected -2 \.\. 1",
        lambda: run(layers.softmax(read_rows(), axis=-2), {"x": 0 * ROWS}),
        np.full((2, 4), 0.5),
    ),
    "a dim that is not there": Advice(
        lambda: layers.reduce_sum(read_rows(), dim=2),
        "take one of {} .. {}",
        lambda: run(layers.reduce_sum(read_rows(), dim=1), {"x": ROWS}),
        SUMS[:, 0],
    ),
    "a learning rate that is text": Message(
        lambda: fluid.ParamAttr(learning_rate="0.5"),  # type: ignore[arg-type]
        "expected a number",
        lambda: fluid.ParamAttr(learning_rate=0.5).learning_rate,
        0.5,
    ),
    "an activation that is a function": Advice(
        lambda: layers.fc(read_rows(), 1, act=layers.relu),
        "act={}, or call the function on the layer's output",
        lambda: run(layers.relu(layers.fc(read_rows(), 1, param_attr=fill(-1.0))), {"x": ROWS}),
        0 * SUMS,
    ),
    "an array in place of an initializer": Advice(
        lambda: layers.fc(read_rows(), 1, param_attr=fluid.ParamAttr(initializer=np.ones((4, 1)))),
        "fluid.initializer.Xavier(), Normal(0.0, 0.02), Constant(0.0) or the like",
        lambda: run(layers.fc(read_rows(), 1, param_attr=fill(0.0)), {"x": ROWS}),
        0 * SUMS,
    ),
    "a number in place of a variable": Advice(
        lambda: layers.fc([1.0, 2.0], 1),  # type: ignore[list-item]
        "layers.assign makes a variable of a numpy array, layers.fill_constant of a number",
        lambda: run(layers.fc(layers.assign(ROWS), 1, param_attr=fill(1.0))),
        SUMS,
    ),
    "a data variable without its name": Advice(
        lambda: fluid.data([None, 4], "float32"),  # type: ignore[arg-type]
        "the name comes first: fluid.data('x', [None, 13], 'float32')",
        lambda: fluid.data("x", [None, 13], "float32").shape,
        (-1, 13),
    ),
    "a shape that is a number": Advice(
        lambda: fluid.data("x", 4),  # type: ignore[arg-type]
        "[None, {}] for a batch of rows of {} numbers",
        lambda: run(layers.scale(fluid.data("x", [None, 4]), 2.0), {"x": ROWS}),
        2 * ROWS,
    ),
    "feed and fetch_list swapped": Advice(
        lambda: fluid.Executor().run(None, [layers.scale(read_rows(), 2.0)], {"x": ROWS}),  # type: ignore[call-overload]
        "feed comes first: exe.run(program, feed={...}, fetch_list=[...])",
        lambda: run(layers.scale(read_rows(), 2.0), feed={"x": ROWS}),
        2 * ROWS,
    ),
    "a list of arrays fed": Advice(
        lambda: fluid.Executor().run(feed=[ROWS], fetch_list=[layers.scale(read_rows(), 2.0)]),  # type: ignore[list-item]
        "feed={'x': x_array, 'y': y_array}",
        lambda: run(layers.scale(read_rows(), 2.0), feed={"x": ROWS}),
        2 * ROWS,
    ),
    "numbers of another dtype": Advice(
        lambda: run(layers.scale(read_rows(), 2.0), {"x": ROWS.astype("float64")}),
        "convert it: array.astype({})",
        lambda: run(layers.scale(read_rows(), 2.0), {"x": ROWS.astype("float64").astype("float32")}),
        2 * ROWS,
    ),
    "channels in another place": Advice(
        lambda: feed_picture((0, 1, 2, 3)),
        "its axes are in another order: array.transpose{}",
        lambda: feed_picture((0, 2, 3, 1)),
        np.moveaxis(np.arange(24).reshape(1, 2, 3, 4), 1, 3),
    ),
    "labels that a prediction lacks": Advice(
        lambda: run(train_by_labels(), {"x": ROWS}),
        "; program.clone(for_test=True) with use_prune=True computes the results that do not need it",
        lambda: run(
            train_by_labels(),
            {"x": ROWS},
            fluid.default_main_program().clone(for_test=True),
            use_prune=True,
        ),
        SUMS,
    ),
    "weights that are transposed": Advice(
        lambda: set_weights(np.arange(12, dtype="float32").reshape(3, 4)),
        "pass array.T where an array is transposed",
        lambda: set_weights(np.arange(12, dtype="float32").reshape(3, 4).T),
        np.arange(12).reshape(3, 4).T,
    ),
    "a regularizer that is a number": Advice(
        lambda: fluid.optimizer.SGD(0.1, regularization=0.01).minimize(
            layers.mean(layers.fc(read_rows(), 1))
        ),  # type: ignore[arg-type]
        "fluid.regularizer.L2Decay(0.01)",
        lambda: decay_once(fluid.regularizer.L2Decay(0.01)),
        np.full((4, 1), 1 - 0.1 * 0.01, "float32"),
    ),
}


def decay_once(regularization: Any) -> np.ndarray[Any, Any]:
    """Return weights of ones after a step of rate 0.1 whose gradient is that of the penalty alone."""
    loss = layers.mean(layers.fc(read_rows(), 1, param_attr=fill(1.0), bias_attr=False))
    fluid.optimizer.SGD(0.1, regularization=regularization).minimize(loss)
    run(loss, {"x": 0 * ROWS})
    return np.asarray(fluid.global_scope().find_var("fc_0.w_0").get_tensor())


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
def test_following_a_hint_gives_the_right_result(advice: Advice) -> None:
    advice.follow()


@pytest.mark.obeys("the variable that a layer returned; by its name, program.global_block().var(name)")
def test_the_hint_to_pass_the_variable_of_a_target_name_works(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"by its name, program\.global_block\(\)\.var\(name\)"):
        export(lambda out: out.name, tmp_path)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        found = export(lambda out: out.block.program.global_block().var(out.name), tmp_path)
    np.testing.assert_array_equal(found, SUMS)


def test_the_advice_for_the_number_of_places_works(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("0", "two", "-1"):
        with pytest.raises(ValueError, match="expected a count of at least 1"):
            take_first_copy(wrong, monkeypatch)
    assert take_first_copy("1", monkeypatch) == 1


def test_the_advice_to_feed_each_name_of_a_model_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    export(lambda out: out, tmp_path)
    exe = fluid.Executor()
    program, names, targets = fluid.io.load_inference_model(str(tmp_path), exe)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    install_hook()
    try:
        exe.run(program, feed={names: ROWS}, fetch_list=targets)
    except TypeError:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    assert "feed={names[0]: array}" in capsys.readouterr().err
    np.testing.assert_array_equal(exe.run(program, feed={names[0]: ROWS}, fetch_list=targets)[0], SUMS)


@pytest.mark.obeys(
    "import paddlelike as fluid; or run the script as it is: python -m paddlelike run SCRIPT.py"
)
@pytest.mark.slow
def test_the_advice_for_a_script_that_imports_paddle_works(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import paddle.fluid as fluid\nprint(fluid.Executor(fluid.CPUPlace()).place)\n")
    done = subprocess.run(
        [sys.executable, "-m", "paddlelike", "run", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "CPUPlace\n"
