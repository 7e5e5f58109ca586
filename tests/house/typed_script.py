"""A script of a user with types, which mypy checks: training, saving, loading, prediction.

A comment ``type: ignore`` marks what a type checker must refuse; mypy also reports one that nothing needs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, assert_type

import numpy as np

import paddlelike.fluid as fluid

Array = np.ndarray[Any, Any]


def build() -> tuple[fluid.Variable, fluid.Variable, fluid.Variable]:
    """Return the image, the prediction and the loss of a small network."""
    image = fluid.data(name="image", shape=[None, 1, 8, 8], dtype="float32")
    label = fluid.data(name="label", shape=[None, 1], dtype=np.int64)
    hidden = fluid.nets.simple_img_conv_pool(
        image, num_filters=4, filter_size=3, pool_size=2, pool_stride=[2, 2], act="relu"
    )
    hidden = fluid.layers.conv2d(hidden, num_filters=4, filter_size=(3, 3), padding="SAME", bias_attr=False)
    hidden = fluid.layers.batch_norm(hidden, act="relu", param_attr=fluid.initializer.Constant(1.0))
    weight = fluid.ParamAttr(
        name="weight",
        initializer=fluid.initializer.Xavier(),
        regularizer=fluid.regularizer.L2Decay(1e-4),
        learning_rate=0.5,
    )
    logits = fluid.layers.fc(input=[hidden], size=3, param_attr=weight, bias_attr="bias")
    loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(logits, label))
    prediction = fluid.layers.softmax(logits)
    assert_type(logits, fluid.Variable)
    assert_type(logits * 2.0 + 1.0, fluid.Variable)
    assert_type(logits[:, 0:2] == 0.0, fluid.Variable)
    assert_type(
        fluid.layers.softmax_with_cross_entropy(logits, label, return_softmax=True),
        tuple[fluid.Variable, fluid.Variable],
    )
    chosen = fluid.layers.cond(fluid.layers.reduce_sum(loss) < 0.0, lambda: loss * 2.0, lambda: loss + 0.0)
    assert_type(chosen, fluid.Variable)
    return image, prediction, loss


def read() -> Iterator[tuple[Array, int]]:
    """Yield samples of three classes that differ in brightness."""
    draws = np.random.RandomState(3)
    for index in range(96):
        yield draws.normal(index % 3, 0.3, (1, 8, 8)).astype("float32"), index % 3


def train(exe: fluid.Executor, directory: str) -> float:
    """Train, save, load, and return the loss of the first batch after that."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        image, prediction, loss = build()
        rate = fluid.layers.exponential_decay(0.05, decay_steps=20, decay_rate=0.9)
        optimizer = fluid.optimizer.Adam(
            learning_rate=rate,
            regularization=fluid.regularizer.L2Decay(1e-4),
            grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0),
        )
        _, gradients = optimizer.minimize(loss)
    assert_type(gradients, list[tuple[fluid.framework.Parameter, fluid.Variable]])

    exe.run(startup)
    feeder = fluid.DataFeeder([image, "label"], fluid.CPUPlace(), program=main)
    assert_type(feeder.feed([(np.zeros((1, 8, 8), "float32"), 0)]), dict[str, fluid.LoDTensor])
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name)
    mean = fluid.metrics.Accuracy()
    for samples in fluid.io.batch(read, batch_size=8)():
        fetched = exe.run(compiled, feed=feeder.feed(samples), fetch_list=[loss, prediction.name])
        assert_type(fetched, list[Array])
        right = fetched[1].argmax(axis=1) == [label for _, label in samples]
        mean.update(value=float(right.mean()), weight=len(samples))

    report = fluid.io.save_persistables(exe, directory, main)
    assert_type(report, fluid.io.SaveReport | None)
    loaded = fluid.io.load_persistables(exe, directory, main)
    assert_type(loaded, fluid.io.LoadReport)
    fluid.io.save_vars(exe, directory + "/weights", main, predicate=lambda v: v.name == "weight")
    fluid.io.save_inference_model(directory + "/model", ["image"], [prediction], exe, main)
    (last,) = exe.run(main, feed=feeder.feed(samples), fetch_list=loss)
    return float(last)


def predict(exe: fluid.Executor, directory: str) -> Array:
    """Return the probabilities that the saved model gives one bright image."""
    program, feeds, targets = fluid.io.load_inference_model(directory + "/model", exe)
    feed = {feeds[0]: np.full((1, 1, 8, 8), 2.0, "float32")}
    tensors = exe.run(program, feed, targets, return_numpy=False)
    assert_type(tensors, list[fluid.LoDTensor])
    assert_type(tensors[0].lod(), list[list[int]])
    by_place = exe.run(program, feed, targets, return_merged=False)
    assert_type(by_place, list[Any])
    return np.array(tensors[0])


def make_mistakes(exe: fluid.Executor, image: fluid.Variable, loss: fluid.Variable) -> None:
    """Hold what a type checker must refuse; never called."""
    value = np.zeros((1, 1, 8, 8), "float32")
    exe.run(feed={1: value}, fetch_list=[loss])  # type: ignore[dict-item]
    exe.run(feed={"image": "picture"}, fetch_list=[loss])  # type: ignore[dict-item]
    exe.run(feed=[value], fetch_list=[loss])  # type: ignore[list-item]
    exe.run(fetch_list=[1, 2])  # type: ignore[list-item]
    exe.run("main", fetch_list=[loss])  # type: ignore[call-overload]
    exe.run(fetch_list=[loss], scope="scope")  # type: ignore[call-overload]
    exe.run(fetches=[loss])  # type: ignore[call-overload]
    fluid.Executor("cpu")  # type: ignore[arg-type]
    fluid.layers.fc(image, size="10")  # type: ignore[arg-type]
    fluid.layers.fc(image, 10, act=3)  # type: ignore[arg-type]
    fluid.layers.fc(image, 10, param_attr=0.1)  # type: ignore[arg-type]
    fluid.layers.fc(image, 10, bias_attr={"name": "b"})  # type: ignore[arg-type]
    fluid.layers.fc("image", 10)  # type: ignore[arg-type]
    fluid.layers.conv2d(image, 4, filter_size="3")  # type: ignore[arg-type]
    fluid.layers.fill_constant([1], dtype=3.5, value=1.0)  # type: ignore[arg-type]
    fluid.layers.concat([value, value])  # type: ignore[list-item]
    fluid.layers.dense(image, 10)  # type: ignore[attr-defined]
    fluid.ParamAttr(initializer=0.1)  # type: ignore[arg-type]
    fluid.optimizer.SGD(learning_rate="0.1")  # type: ignore[arg-type]
    fluid.optimizer.SGD(0.1, regularization=1e-4)  # type: ignore[arg-type]
    fluid.optimizer.SGD(0.1).minimize(loss, startup_program=exe)  # type: ignore[arg-type]
    fluid.io.save_persistables("model", exe)  # type: ignore[call-overload]
    fluid.io.save_vars(exe, "model", vars=[1])  # type: ignore[list-item]
    fluid.io.load_params(exe, "model", main_program=1)  # type: ignore[arg-type]
    fluid.io.load_vars(exe, "model", predicate="weight")  # type: ignore[arg-type]
    loss + "1"  # type: ignore[operator]
    image["height"]  # type: ignore[index]
    list(image)  # type: ignore[call-overload]
    fluid.CompiledProgram(loss)  # type: ignore[arg-type]
    fluid.CompiledProgram(fluid.Program()).with_data_parallel(places=2)  # type: ignore[arg-type]
    fluid.DataFeeder([1], fluid.CPUPlace())  # type: ignore[list-item]
    fluid.metrics.Accuracy().update(value="0.5", weight=1)  # type: ignore[arg-type]
    with fluid.scope_guard("scope"):  # type: ignore[arg-type]
        pass


if __name__ == "__main__":
    executor = fluid.Executor(fluid.CPUPlace())
    assert train(executor, sys.argv[1]) < 1.0
    assert predict(executor, sys.argv[1]).argmax() == 2
