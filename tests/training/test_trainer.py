"""The trainer: the bits of plain runs, checkpoints that bring everything back, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import training
from paddlelike.errors import (
    FeedError,
    FormatError,
    GraphError,
    LoadError,
    MissingFileError,
    SourceError,
)
from paddlelike.io.checkpoints.numbered import NumberedCheckpoints
from tests.helpers.fresh import fresh_programs
from tests.training.small import X, Y, assert_same, criterion, source, trainer, values

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "adam, schedule": lambda: fluid.optimizer.Adam(fluid.layers.exponential_decay(0.05, 3, 0.5)),
    "rmsprop": lambda: fluid.optimizer.RMSProp(0.01, momentum=0.5, centered=True),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1),
    "ftrl": lambda: fluid.optimizer.Ftrl(0.1),
}


def train(one: training.Trainer, data: Any, count: int) -> list[float]:
    losses = []
    for _ in range(count):
        assert one.train_minibatch(data.next_minibatch(4))
        losses.append(one.previous_minibatch_loss_average)
    return losses


def test_training_gives_the_same_bits_as_plain_runs() -> None:
    """Rows C16, C17, C35."""
    with fresh_programs():
        loss, error = criterion()
        loss, error = fluid.layers.mean(loss), fluid.layers.mean(error)
        fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        wanted = []
        for start in (0, 4, 8, 0, 4):
            feed = {"x": X[start : min(start + 4, 10)], "y": Y[start : min(start + 4, 10)]}
            wanted.append([float(value) for value in exe.run(feed=feed, fetch_list=[loss, error])])
        want = values()
    one, data = trainer(), source()
    for loss, error in wanted:
        assert one.train_minibatch(data.next_minibatch(4))
        assert one.previous_minibatch_loss_average == loss
        assert one.previous_minibatch_evaluation_average == error
    assert_same(values(), want)
    seen = (
        one.total_number_of_samples_seen,
        one.total_number_of_minibatches_seen,
        one.total_number_of_sweeps_seen,
    )
    assert seen == (18, 5, 1)
    assert one.previous_minibatch_sample_count == 4


def test_testing_changes_no_parameters_and_uses_no_dropout() -> None:
    one = trainer(optimizer=fluid.optimizer.Adam(fluid.layers.noam_decay(4, 3)), dropout=0.5)
    train(one, source(), 3)
    before, state = values(), fluid.global_scope().generator.state
    found = {one.test_minibatch({"x": X, "y": Y}) for _ in range(3)}
    assert len(found) == 1
    assert_same(values(), before)
    assert fluid.global_scope().generator.state == state


def test_minibatches_are_given_in_several_forms() -> None:
    one = trainer()
    x, y = (one.program.global_block().var(name) for name in "xy")
    average = one.test_minibatch((X, Y))
    assert one.test_minibatch({x: X.astype("float64"), "y": Y.astype("int32")}) == average
    assert one.test_minibatch({x: X.tolist(), y: Y}) == average
    goes_on, outputs = one.train_minibatch((X, Y), outputs=[one.loss_function])
    assert goes_on
    assert float(np.mean(outputs[one.loss_function])) == one.previous_minibatch_loss_average
    assert one.train_minibatch({}) is False
    assert one.train_minibatch({}, outputs=[x]) == (False, {})
    assert one.total_number_of_minibatches_seen == 1
    with pytest.raises(FeedError, match="has no value for y; it has x, z"):
        one.train_minibatch({"x": X, "z": Y})
    with pytest.raises(FeedError, match="has 1 arrays, expected 2: x, y"):
        one.train_minibatch((X,))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_restored_training_has_the_same_bits(tmp_path: Path, name: str) -> None:
    """Rows C13, C15, C17, C19, C21, C22, C41, with dropout, where the real CNTK's differ."""

    def make() -> tuple[training.Trainer, Any]:
        return trainer(optimizer=OPTIMIZERS[name](), dropout=0.3), source(randomize=True)

    with fresh_programs():
        one, data = make()
        train(one, data, 4)
        one.save_checkpoint(tmp_path / "model", data.get_checkpoint_state())
        drawn = random.random(), np.random.rand()
        losses = train(one, data, 5)
        want = values()
    one, data = make()
    train(one, data, 2)  # what is to be forgotten
    data.restore_from_checkpoint(one.restore_from_checkpoint(tmp_path / "model"))
    assert (random.random(), np.random.rand()) == drawn
    assert one.total_number_of_samples_seen == 14
    assert train(one, data, 5) == losses
    assert_same(values(), want)


def test_a_checkpoint_is_a_directory_of_paddle_files(tmp_path: Path) -> None:
    """Row C19: what load_persistables takes, also of the real Paddle, and one manifest."""
    one = trainer()
    train(one, source(), 2)
    assert one.save_checkpoint(tmp_path / "model").written == len(values())
    found = {path.name for path in (tmp_path / "model").iterdir()}
    assert found == {*values(), "__manifest__"}
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    want = values()
    train(one, source(), 2)
    fluid.io.load_persistables(fluid.Executor(), str(tmp_path / "model"))
    assert_same(values(), want)
    assert fluid.io.verify(str(tmp_path / "model"))


STATE = {
    "none": None, "flag": True, "large": 2**70, "small": -(2**40), "number": 0.1, "nan": float("inf"),
    "text": "ü, }", "list": [1, [2.5, "x"], {}], "dict": {"a": {"b": [None]}},
    "arrays": [np.arange(3), np.eye(2, dtype="float32"), np.array(7, "int8"), np.zeros((0, 2), "bool")],
}  # fmt: skip


def test_external_state_is_restored(tmp_path: Path) -> None:
    """Row C20. The real CNTK returns -2**40 and 2**70 as floats, and refuses arrays of int64."""
    one = trainer()
    one.save_checkpoint(tmp_path / "model", STATE)
    found = one.restore_from_checkpoint(tmp_path / "model")
    for array, want in zip(found.pop("arrays"), STATE["arrays"], strict=True):
        np.testing.assert_array_equal(array, want)
        assert (array.dtype, array.shape) == (want.dtype, want.shape)
    assert found == {name: value for name, value in STATE.items() if name != "arrays"}
    assert [type(found[name]) for name in ("flag", "large", "number")] == [bool, int, float]
    one.save_checkpoint(tmp_path / "model")
    assert one.restore_from_checkpoint(tmp_path / "model") == {}
    for state in ([1, [2.5]], 3, "a", True, 0.5):  # C20: any plain value, as lists and numbers are
        one.save_checkpoint(tmp_path / "model", state)
        assert one.restore_from_checkpoint(tmp_path / "model") == state


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((1, 2), r"external_state\['a'\]\[0\] is a tuple.*\n.*use list"),
        (b"x", "is a bytes"),
        (np.float32(2), "is a float32.*\n.*item()"),
        ({1: 2}, "has the key 1; keys must be texts"),
        ({"__array__": 2}, "marks arrays"),
        (np.array(["a"]), "is a ndarray"),
        (print, "is a builtin_function"),
    ],
    ids=["tuple", "bytes", "numpy scalar", "number as key", "mark", "texts", "function"],
)
def test_other_external_state_is_refused_before_anything_is_written(
    tmp_path: Path, value: Any, text: str
) -> None:
    one = trainer()
    with pytest.raises(TypeError, match=text):
        one.save_checkpoint(tmp_path / "model", {"a": [value]})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"act": "relu"}, r"operator 2:\n +in the checkpoint: tanh\(.*\n +in the program: +relu\("),
        ({"width": 5}, "fc_0.w_0"),
        ({"dropout": 0.5}, "in the program: +dropout"),
        ({"optimizer": "adam, schedule"}, "updated by adam, in the checkpoint by momentum"),
        ({"optimizer": "sgd"}, "updated by sgd, in the checkpoint by momentum"),
    ],
    ids=["activation", "width", "one more layer", "adam", "sgd"],
)
def test_another_network_is_refused_before_anything_is_changed(
    tmp_path: Path, change: dict[str, Any], text: str
) -> None:
    """Rows C40, C42: the real CNTK takes another activation within a layer without a word."""
    with fresh_programs():
        one = trainer()
        train(one, source(), 2)
        one.save_checkpoint(tmp_path / "model")
    if "optimizer" in change:
        change = {"optimizer": OPTIMIZERS[change["optimizer"]]()}
    one = trainer(**change)
    before, state = values(), fluid.global_scope().generator.state
    with pytest.raises(LoadError, match=text):
        one.restore_from_checkpoint(tmp_path / "model")
    assert_same(values(), before)
    assert fluid.global_scope().generator.state == state
    assert one.total_number_of_samples_seen == 0


def test_adding_metrics_or_changing_seeds_keeps_checkpoints_valid(tmp_path: Path) -> None:
    with fresh_programs():
        one = trainer()
        train(one, source(), 2)
        one.save_checkpoint(tmp_path / "model")
        want = values()
    loss, error = criterion()
    fluid.layers.mean(fluid.layers.square(error))
    one = training.Trainer(None, (loss, error), fluid.optimizer.Momentum(0.7, 0.1))
    one.restore_from_checkpoint(tmp_path / "model")
    assert_same(values(), want)  # the learning rate of the checkpoint, too: row C41


def test_paths_without_a_checkpoint_of_a_trainer_are_refused(tmp_path: Path) -> None:
    one = trainer()
    with pytest.raises(MissingFileError, match=r"there is no checkpoint .*model"):
        one.restore_from_checkpoint(tmp_path / "model")
    one.save_checkpoint(tmp_path / "model.3")
    with pytest.raises(MissingFileError, match=r"but beside it are model\.3"):
        one.restore_from_checkpoint(tmp_path / "model")
    checkpoints = fluid.io.Checkpoints(tmp_path)
    checkpoints.save(one.executor, one.program, 1)
    with pytest.raises(FormatError, match="was not saved by a Trainer"):
        one.restore_from_checkpoint(tmp_path / "step-00000001")


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: state.pop("counts"),
        lambda state: state.update(workers=[]),
        lambda state: state.update(network={"operators": "0", "updates": {}}),
        lambda state: state["workers"][0]["random"].update(python={"version": 3, "words": [1]}),
        lambda state: state["workers"][0].update(generator=-1),
        lambda state: state["workers"][0].pop("external"),
        lambda state: state.update(session=None),
    ],
)  # fmt: skip
def test_a_state_that_is_not_valid_is_refused_before_anything_is_changed(
    tmp_path: Path, damage: Callable[[Any], Any]
) -> None:
    one = trainer()
    train(one, source(), 2)
    one.save_checkpoint(tmp_path / "model")
    checkpoints = NumberedCheckpoints(tmp_path / "model")
    state = {**checkpoints.list()[0].state}
    damage(state["training"])
    checkpoints.save_numbered(one.executor, one.program, 8, state=state)
    train(one, source(), 1)
    before, drawn = values(), random.getstate()
    with pytest.raises((FormatError, SourceError, LoadError)):
        one.restore_from_checkpoint(tmp_path / "model")
    assert_same(values(), before)
    assert random.getstate() == drawn
    assert one.total_number_of_samples_seen == 12


def test_the_error_for_a_cntk_file_names_cntk(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(b"\x08\x02")
    with pytest.raises(MissingFileError, match=r"is a file, .*\n.*import_cntk_checkpoint"):
        trainer().restore_from_checkpoint(tmp_path / "model")


def test_a_trainer_keeps_existing_values() -> None:
    """A network that was loaded before is trained further, with new state of the optimizer."""
    loss, error = criterion()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    weights = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    weights.set(np.full((3, 4), 0.5, "float32"))
    one = training.Trainer(None, (loss, error), fluid.optimizer.Adam(0.1))
    np.testing.assert_array_equal(np.array(weights), np.full((3, 4), 0.5, "float32"))
    assert one.train_minibatch((X, Y))


def test_a_trainer_refuses_invalid_arguments() -> None:
    loss, _ = criterion()
    assert training.Trainer(None, (loss, None)).evaluation_function is None
    with pytest.raises(GraphError, match="criterion is a loss, or a pair"):
        training.Trainer(None, [])
    with pytest.raises(GraphError, match="takes one optimizer, got 2"):
        training.Trainer(None, criterion(), [fluid.optimizer.SGD(0.1)] * 2)
