"""The advice of errors of building, feeding and running, followed to the letter: the result is right."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import inspection
from paddlelike.core import places
from paddlelike.foundation.tracebacks import install_hook
from paddlelike.import_paddle.plot import Ploter
from paddlelike.ops.kernels.fast import late
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


def without(*packages: str) -> Any:
    """Let imports of packages fail, as where they are not installed."""
    return mock.patch.dict(sys.modules, dict.fromkeys(packages))


def plot(disabled: bool) -> Any:
    with without("matplotlib", "matplotlib.pyplot"):
        with mock.patch.dict(os.environ, {"DISABLE_PLOT": "True"} if disabled else {}):
            curves = Ploter("loss")
        curves.append("loss", 1, 0.5)
        return curves.plot("loss.png")


def log_losses(drawn: bool) -> Any:
    log = fluid.io.TrainingLog("log.jsonl")
    log.write(1, loss=0.5)
    with without("matplotlib", "matplotlib.figure"):
        return log.plot("log.svg") if drawn else list(log.curves())


def draw(path: str) -> Any:
    layers.scale(read_rows(), 2.0)
    with mock.patch.object(shutil, "which", return_value=None):
        inspection.draw(fluid.default_main_program()).save(path)
    return "scale" in Path(path).read_text()


def compute(asked: bool) -> Any:
    """Compute where numba is not installed, and a flag asks for compiled kernels or not."""
    with (
        mock.patch.object(late, "_faults", ["numba is not installed"]),
        mock.patch.object(late, "is_set", return_value=asked),
    ):
        return [late.is_on(), run(layers.reduce_sum(read_rows()), {"x": ROWS}).item()]


def list_gpus() -> Any:
    with mock.patch.object(places, "_count_gpus", mock.Mock(function=lambda: 0)):
        return fluid.cuda_places()


ADVICE: dict[str, Advice] = {
    "a Ploter without matplotlib": Advice(
        lambda: plot(disabled=False),
        "pip install matplotlib, or set DISABLE_PLOT=True in the environment",
        lambda: plot(disabled=True),
        None,
    ),
    "a picture of a log without matplotlib": Advice(
        lambda: log_losses(drawn=True),
        "pip install matplotlib; log.curves() returns the values",
        lambda: log_losses(drawn=False),
        ["loss"],
    ),
    "a machine without GPUs": Advice(
        list_gpus,
        "fluid.CPUPlace() works on every machine; for GPUs: pip install 'jax[cuda12]'",
        lambda: fluid.Executor(fluid.CPUPlace()).run(
            feed={"x": ROWS}, fetch_list=[layers.scale(read_rows(), 2.0)]
        )[0],
        2 * ROWS,
    ),
    "kernels that cannot be compiled": Advice(
        lambda: compute(asked=True),
        'pip install "paddlelike[fast]", or leave the flag unset: numpy computes the same',
        lambda: compute(asked=False),
        [False, 28.0],
    ),
    "a picture without Graphviz": Advice(
        lambda: draw("net.png"),
        "apt-get install graphviz; or write a .svg",
        lambda: draw("net.svg"),
        True,
    ),
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


@pytest.mark.obeys("call paddlelike.install() before the first import of paddle")
@pytest.mark.slow
def test_the_advice_to_install_before_the_first_import_works(tmp_path: Path) -> None:
    (tmp_path / "paddle.py").touch()
    first, then = "import paddlelike; paddlelike.install()", "import paddle; print(hasattr(paddle, 'fluid'))"
    late = run_python(tmp_path, "-c", f"{then}; {first}")
    assert "call paddlelike.install() before the first import of paddle" in late.stderr
    assert run_python(tmp_path, "-c", f"{first}; {then}").stdout == "True\n"


@pytest.mark.obeys(
    "python -m paddlelike run SCRIPT [args], or run -m MODULE [args]",
    "give the script first, then its own arguments; a module is run by: run -m MODULE",
    "start it without them, or call paddlelike.install() in the script",
)
@pytest.mark.slow
def test_the_advice_for_the_command_run_works(tmp_path: Path) -> None:
    command = ("-m", "paddlelike", "run")
    text = "import sys, paddle.fluid as fluid\nprint(fluid.__name__, *sys.argv[1:])\n"
    (tmp_path / "train.py").write_text(text)
    for arguments, hint in (
        (("-m",), "python -m paddlelike run SCRIPT [args], or run -m MODULE [args]"),
        (("--rate", "train.py"), "give the script first, then its own arguments"),
        (("train",), "a module is run by: run -m MODULE"),
    ):
        assert hint in run_python(tmp_path, *command, *arguments).stderr
    said = "paddlelike.fluid --rate\n"
    for arguments in (("train.py", "--rate"), ("-m", "train", "--rate")):
        assert run_python(tmp_path, *command, *arguments).stdout == said
    path = f"import sys; sys.path.append({str(Path(__file__).parents[2])!r})\n"
    start = f"{path}import runpy; sys.argv = ['paddlelike', 'run', 'train.py']\n"
    start += "runpy.run_module('paddlelike', run_name='__main__')"
    advice = "start it without them, or call paddlelike.install() in the script"
    assert advice in run_python(tmp_path, "-E", "-c", start).stderr
    (tmp_path / "own.py").write_text(f"{path}import paddlelike; paddlelike.install()\n{text}")
    assert run_python(tmp_path, "-E", "own.py", "--rate").stdout == said


def run_python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
