"""CNTK's functions: what its text does with a model, line by line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
import paddlelike.training as C  # noqa: N812  (as CNTK's users have it)
from paddlelike.errors import FormatError, GraphError
from paddlelike.training import Function, load_model

X = np.float32([[1, -2, 0.5, 3], [0, 1, -1, 2]])


@pytest.fixture
def z() -> Function:
    image = fluid.data("x", [None, 4])
    made = Function(fluid.layers.fc(fluid.layers.dropout(image, 0.5), 3, act="tanh"))
    fluid.Executor().run(fluid.default_startup_program())
    return made


def compute(made: Function) -> np.ndarray:
    """Second formula: of the program's own parameters, without dropout as Paddle's default scales it."""
    w, b = (np.array(fluid.global_scope().find_var(one.name).get_tensor()) for one in made.parameters)
    return np.tanh(X * 0.5 @ w + b)


@pytest.mark.parametrize("open_again", [load_model, C.Function.load], ids=["load_model", "Function.load"])
def test_a_model_is_saved_and_loaded(z: Function, open_again, tmp_path: Path) -> None:  # C01, C05, C06
    z.save(tmp_path / "myModel.model")
    wanted = compute(z)
    with fluid.scope_guard(fluid.Scope()):
        again = open_again(tmp_path / "myModel.model")
        np.testing.assert_allclose(again.eval({"x": X}), wanted, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(again.eval(X), again.eval({again.arguments[0]: X}))
        from_bytes = open_again((tmp_path / "myModel.model").read_bytes())
        assert [one.name for one in from_bytes.arguments] == ["x"]


@pytest.mark.slow  # needs the extra 'onnx'
@pytest.mark.parametrize("given", [C.ModelFormat.ONNX, None], ids=["named", "by content"])
def test_a_function_is_saved_as_onnx_and_loaded_again(
    z: Function, given: C.ModelFormat | None, tmp_path: Path
) -> None:  # C08, C09
    onnx = pytest.importorskip("onnx", reason="onnx is in the extra 'onnx'")
    z.save(tmp_path / "myModel.onnx", format=C.ModelFormat.ONNX)
    model = onnx.load(tmp_path / "myModel.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert (model.opset_import[0].version, model.ir_version) == (9, 4)  # as CNTK 2.7's own
    wanted = compute(z)
    with fluid.scope_guard(fluid.Scope()):
        again = C.Function.load(tmp_path / "myModel.onnx", format=given)
        np.testing.assert_allclose(again.eval(X), wanted, rtol=1e-6, atol=1e-6)
    with pytest.raises(FormatError):
        C.Function.load(tmp_path / "myModel.onnx", format=C.ModelFormat.CNTKv2)


def test_training_minimizes_a_criterion(tmp_path: Path) -> None:  # C30
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    out = Function(fluid.layers.fc(x, 1))
    loss = fluid.layers.square_error_cost(out.outputs[0], y)
    criterion = Function([loss, fluid.layers.reduce_mean(loss)])
    data = np.tile(X, (8, 1)), np.tile(X.sum(axis=1, keepdims=True), (8, 1))
    summary = criterion.train(
        data,
        parameter_learners=[fluid.optimizer.SGD(0.05)],
        minibatch_size=4,
        callbacks=[C.CheckpointConfig(tmp_path / "myModel.dnn", frequency=8)],
        max_epochs=2,
    )
    first, second = summary["epoch_summaries"]
    assert second["loss"] < first["loss"]
    assert (tmp_path / "myModel.dnn").is_dir()
    assert C.Trainer(out, criterion).loss_function.shape in ((1,), ())


def test_parts_of_a_function_are_found_by_name(z: Function) -> None:  # C07
    name = z.outputs[0].name
    found = z.find_by_name(name)
    assert found is not None
    assert found.outputs == z.outputs
    assert z.find_by_name("nothing") is None
    assert name in repr(z)


def test_outputs_that_are_not_variables_are_refused(z: Function) -> None:
    for given in ("x", [], [z.outputs[0], "x"]):
        with pytest.raises(GraphError, match="outputs are variables of a network"):
            Function(given)  # type: ignore[arg-type]
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        other = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    with pytest.raises(GraphError, match="several programs"):
        Function([z.outputs[0], other])
