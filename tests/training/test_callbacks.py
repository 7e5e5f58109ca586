"""Callbacks of a training: when it ends early, and what TensorBoard reads."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import training


def make_loss() -> fluid.Variable:
    x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 1])
    return fluid.layers.reduce_mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))


def make_data(count: int = 16) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).uniform(-1, 1, (count, 2)).astype("float32")
    return x, x.sum(1, keepdims=True)


def test_training_stops_when_the_validation_no_longer_improves() -> None:
    averages: list[float] = []
    stop = training.EarlyStopping(patience=2, least=0.5)

    def watch(index: int, average: float, samples: int, minibatches: int) -> bool:
        averages.append(average)
        return stop(index, average, samples, minibatches)

    config = training.CrossValidationConfig(make_data(), frequency=8, callback=watch)
    summary = training.train(
        make_loss(),
        make_data(),
        8,
        parameter_learners=[fluid.optimizer.SGD(1e-9)],
        callbacks=[config],
        max_epochs=50,
    )
    assert len(averages) == 3  # the first one, and two that are not better
    assert len(summary["updates"]) == 3
    assert stop.best_average == averages[0]


def test_early_stopping_can_maximise_its_metric() -> None:
    stop = training.EarlyStopping(1, best="largest")
    assert [stop(0, one, 1, 1) for one in (0.5, 0.75, 0.75)] == [True, True, False]
    with pytest.raises(ValueError, match="patience=0 is below 1"):
        training.EarlyStopping(0)


@pytest.mark.slow
def test_tensorboard_can_read_the_logged_losses(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="the extra tensorboard is not installed")
    from tensorboardX.proto.event_pb2 import Event

    writer = training.TensorBoardWriter(tmp_path)
    summary = training.train(
        make_loss(),
        make_data(),
        4,
        parameter_learners=[fluid.optimizer.SGD(0.1)],
        callbacks=[writer],
        max_epochs=2,
    )
    (path,) = tmp_path.iterdir()
    data, found = path.read_bytes(), []
    while data:  # length, its sum, the record, its sum: TFRecord
        (length,) = struct.unpack("<Q", data[:8])
        event = Event.FromString(data[12 : 12 + length])
        found += [(event.step, value.tag, value.simple_value) for value in event.summary.value]
        data = data[16 + length :]
    losses = [one["loss"] for one in summary["updates"]]
    assert [step for step, _, _ in found] == list(range(1, 9))
    assert {tag for _, tag, _ in found} == {"training/loss"}
    np.testing.assert_allclose([value for _, _, value in found], losses, rtol=1e-6)
