"""The advice of errors of trainers, their sources and checkpoints, followed to the letter."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import training
from paddlelike.io.checkpoints.checkpoint import ARRAY_KEY
from tests.helpers.golden_data import GOLDEN
from tests.hints.advice import Advice, each, new_network
from tests.training.small import X, Y, criterion, source, trainer

DataUnit = training.DataUnit
ENDLESS = training.INFINITELY_REPEAT
CNTK = GOLDEN / "cntk" / "ck-sgd.dnn"


def train(one: Any = None, data: Any = None, count: int = 2) -> float:
    """Return the loss after some minibatches."""
    one, data = one or trainer(), data or source()
    for _ in range(count):
        one.train_minibatch(data.next_minibatch(4))
    return one.total_number_of_samples_seen


def resume(make: Any = source, rows: int = 10, optimizer: Any = None, **network: Any) -> Any:
    """Train, save, and continue with another source or network; return the samples that were seen."""
    with new_network():
        one, data = trainer(), source()
        one.train_minibatch(data.next_minibatch(4))
        one.save_checkpoint("step", {"source": data.get_checkpoint_state()})
    with new_network():
        other = trainer(optimizer=optimizer, **network)
        state = other.restore_from_checkpoint("step")
        found = make(rows) if make is source else make()
        if make is not None:
            found.restore_from_checkpoint(state["source"])
        other.train_minibatch(found.next_minibatch(4))
        return other.total_number_of_samples_seen


def take_values(call: Any, width: int = 4) -> Any:
    """Return the sum of the first weights after a load by another call into another network."""
    with new_network():
        one = trainer()
        one.train_minibatch(source().next_minibatch(4))
        want = read()
        one.save_checkpoint("step")
    with new_network():
        trainer(optimizer=fluid.optimizer.SGD(0.1))
        call(fluid.Executor(), "step")
        return bool((read() == want).all())


def take_fitting() -> Any:
    """Return whether the biases of the same shape are loaded into a wider network."""
    with new_network():
        one = trainer()
        one.train_minibatch(source().next_minibatch(4))
        want = read("fc_1.b_0")
        one.save_checkpoint("step")
    with new_network():
        trainer(width=5)
        fluid.io.load_persistables(fluid.Executor(), "step", strict=False)
        return bool((read("fc_1.b_0") == want).all() and want.any())


def share(**options: Any) -> Any:
    """Return the samples seen by a trainer of one process whose learner is for several."""
    return train(
        trainer(optimizer=training.data_parallel_distributed_learner(fluid.optimizer.SGD(0.1), **options))
    )


def read(name: str = "fc_0.w_0") -> Any:
    return np.array(fluid.global_scope().find_var(name).get_tensor())


def make_reader(fresh: bool) -> Any:
    used = iter(list(zip(X[:10], Y[:10], strict=True)))
    return lambda: iter(list(zip(X[:10], Y[:10], strict=True))) if fresh else used


def read_generator(reader: Any) -> Any:
    feed_list = [fluid.data("x", [None, 3]), fluid.data("y", [None, 1], "int64")]
    data = training.GeneratorSource(reader, feed_list)
    return sum(len(data.next_minibatch(5)) > 0 for _ in range(4))


def continue_reader(changed: bool, with_source: bool) -> Any:
    def make(first: int) -> Any:
        block = fluid.default_main_program().global_block()
        return training.GeneratorSource(
            lambda: iter(list(zip(X[first:], Y[first:], strict=True))), [block.var("x"), block.var("y")]
        )

    with new_network():
        one, data = trainer(), make(0)
        one.train_minibatch(data.next_minibatch(4))
        one.save_checkpoint("step", {"source": data.get_checkpoint_state()})
    with new_network():
        other, again = trainer(), make(5 if changed else 0)
        state = other.restore_from_checkpoint("step")
        if with_source:
            again.restore_from_checkpoint(state["source"])
        other.train_minibatch(again.next_minibatch(4))
        return other.total_number_of_samples_seen


def use_loader(**options: Any) -> Any:
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1], "int64")
    loader = fluid.io.DataLoader.from_generator([x, y], capacity=2, **options)
    loader.set_batch_generator(lambda: iter([[X[:4], Y[:4]]]), fluid.CPUPlace())
    return list(training.LoaderSource(loader, 1).next_minibatch(4))


def use_places(count: int) -> Any:
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1], "int64")
    loader = fluid.io.DataLoader.from_generator([x, y], capacity=2)
    loader.set_batch_generator(lambda: iter([[X[:4], Y[:4]]] * 2), [fluid.CPUPlace()] * count)
    return list(training.LoaderSource(loader, 1).next_minibatch(4))


def hold(value: Any) -> Any:
    return training.MinibatchSourceFromData({"x": value}).next_minibatch(2)


def map_streams(how: str) -> Any:
    one = trainer()
    data = training.MinibatchSourceFromData({"a": X[:10], "b": Y[:10]})
    variables = fluid.default_main_program().global_block().vars
    streams = {variables["x"]: data.streams.a, variables["y"]: data.streams.b}
    if how == "input_map":
        one.train_minibatch(data.next_minibatch(4, input_map=streams))
    elif how == "streams":
        training.training_session(one, data, 4, model_inputs_to_streams=streams, max_samples=4).train()
    else:
        one.train_minibatch(data.next_minibatch(4))
    return one.total_number_of_samples_seen


def use_learners(count: int) -> Any:
    """Train with one optimizer or two, whose parameters learn at rates of their own."""
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1], "int64")
    attr = fluid.ParamAttr(learning_rate=0.0)
    hidden = fluid.layers.fc(x, 4, param_attr=attr)
    out = fluid.layers.softmax(fluid.layers.fc(hidden, 2))
    loss = fluid.layers.cross_entropy(out, y)
    one = training.Trainer(None, (loss, None), [fluid.optimizer.SGD(0.5)] * count)
    before = [read(), np.array(fluid.global_scope().find_var("fc_1.w_0").get_tensor())]
    one.train_minibatch(source().next_minibatch(4))
    after = [read(), np.array(fluid.global_scope().find_var("fc_1.w_0").get_tensor())]
    return [bool((a == b).all()) for a, b in zip(before, after, strict=True)]


def save_state(state: dict[Any, Any]) -> Any:
    one = trainer()
    one.save_checkpoint("step", state)
    return one.restore_from_checkpoint("step")


def configure(**options: Any) -> Any:
    one = trainer()
    session = training.training_session(
        one, source(), 5, max_samples=20, checkpoint_config=training.CheckpointConfig("c/step", **options)
    )
    session.train()
    return len([name for name in os.listdir("c") if name.startswith("step") and not name.endswith("lock")])


def open_other(how: str) -> Any:
    """Open a checkpoint of ``fluid.io.Checkpoints``."""
    with new_network():
        trainer()
        exe = fluid.Executor()
        saved = fluid.io.Checkpoints("steps")
        saved.save(exe, None, 3)
        want, path = read(), saved.latest().path
    with new_network():
        one = trainer()
        if how == "trainer":
            return one.restore_from_checkpoint(path)
        if how == "checkpoints":
            fluid.io.Checkpoints("steps").restore(fluid.Executor())
        else:
            fluid.io.load_persistables(fluid.Executor(), path)
        return bool((read() == want).all())


def restore_named(name: str) -> Any:
    """Restore a checkpoint of some name after one of the name ``step4`` was saved."""
    one = trainer()
    one.save_checkpoint("step4", {"at": 4})
    return one.restore_from_checkpoint(name)


def learn(*arguments: Any, samples: int = training.FULL_DATA_SWEEP, **options: Any) -> Any:
    """Train by the call of CNTK; return whether the weights changed."""
    data = source(max_samples=samples)
    if "epoch_size" in options:
        options["epoch_size"] = data.samples_in_sweep
    loss, _ = criterion()
    training.train(loss, data, 5, *arguments, **options)
    return float(np.abs(read("fc_1.b_0")).sum()) > 0


def continue_generator(state: Any) -> Any:
    def make() -> Any:
        block = fluid.default_main_program().global_block()
        found = [block.var(name) for name in ("x", "y")]
        return training.GeneratorSource(make_reader(fresh=True), found)

    trainer()
    if state is None:
        used = make()
        used.next_minibatch(4)
        state = used.get_checkpoint_state()
    again = make()
    again.restore_from_checkpoint(state)
    return np.asarray(again.next_minibatch(4)["x"])[0]


ADVICE: dict[str, Advice] = {
    "gradients of fewer bits": Advice(
        lambda: share(num_quantization_bits=1), "leave both out", lambda: share(), 8
    ),
    "a key that marks arrays": Advice(
        lambda: save_state({ARRAY_KEY: 1}),
        "use another name",
        lambda: save_state({"arrays": 1}),
        {"arrays": 1},
    ),
    "a checkpoint that was never saved": Advice(
        lambda: trainer().restore_from_checkpoint("never"),
        "Trainer.save_checkpoint writes it",
        lambda: save_state({"at": 4}),
        {"at": 4},
    ),
    "a checkpoint of another name": Advice(
        lambda: restore_named("step"),
        "give the name of one of those",
        lambda: restore_named("step4"),
        {"at": 4},
    ),
    "a checkpoint of CNTK": Advice(
        lambda: trainer().restore_from_checkpoint(CNTK),
        "fluid.import_cntk_checkpoint reads the checkpoints of CNTK",
        lambda: fluid.import_cntk_checkpoint(CNTK).external_state["epoch"],
        2,
    ),
    "a source without a file": Advice(
        lambda: training.MinibatchSource([]),
        "images and HTK features are read by a reader: GeneratorSource",
        lambda: read_generator(make_reader(fresh=True)),
        4,
    ),
    "a state of another source": Advice(
        lambda: continue_generator({"minibatch": 4}),
        "restore the state of the same kind of source",
        lambda: continue_generator(None),
        X[4],
    ),
    "an optimizer in the place of streams": Advice(
        lambda: learn(fluid.optimizer.SGD(0.1)),
        "train(loss, data, parameter_learners=optimizer)",
        lambda: learn(parameter_learners=fluid.optimizer.SGD(0.1)),
        True,
    ),
    "a source that repeats for ever": Advice(
        lambda: learn(samples=ENDLESS, parameter_learners=fluid.optimizer.SGD(0.1)),
        "epoch_size=source.samples_in_sweep, or a source with max_samples=training.FULL_DATA_SWEEP",
        lambda: each(
            lambda: learn(samples=ENDLESS, parameter_learners=fluid.optimizer.SGD(0.1), epoch_size=0),
            lambda: learn(samples=training.FULL_DATA_SWEEP, parameter_learners=fluid.optimizer.SGD(0.1)),
        ),
        [True, True],
    ),
    "a checkpoint of another optimizer": Advice(
        lambda: resume(optimizer=fluid.optimizer.SGD(0.1)),
        "use the optimizer that was used before; fluid.io.load_params takes the parameters alone",
        lambda: [resume(), take_values(fluid.io.load_params)],
        [8, True],
    ),
    "a checkpoint of another network": Advice(
        lambda: resume(act="relu"),
        "build the network as it was; fluid.io.load_persistables(..., strict=False) loads the values that fit into another one",
        lambda: [resume(), take_fitting()],
        [8, True],
    ),
    "a checkpoint of another kind": Advice(
        lambda: open_other("trainer"),
        "fluid.io.Checkpoints restores what it saved; load_persistables takes the values alone",
        lambda: each(lambda: open_other("checkpoints"), lambda: open_other("load")),
        [True, True],
    ),
    "a key that is a number": Advice(
        lambda: save_state({"counts": {3: 1}}),
        "use str(key)",
        lambda: save_state({"counts": {str(3): 1}}),
        {"counts": {"3": 1}},
    ),
    "data that changed": Advice(
        lambda: continue_reader(changed=True, with_source=True),
        "its data changed, or it draws from a generator without a seed; restore the trainer alone to continue with other samples",
        lambda: each(
            lambda: continue_reader(changed=False, with_source=True),
            lambda: continue_reader(changed=True, with_source=False),
        ),
        [8, 8],
    ),
    "a source of other data": Advice(
        lambda: resume(rows=8),
        "build the source as it was; for new data, do not restore the source's state",
        lambda: [resume(rows=10), train(data=source(8), count=1)],
        [8, 4],
    ),
    "a reader that gives an iterator once": Advice(
        lambda: read_generator(make_reader(fresh=False)),
        "a reader is a function that returns a new iterator at every call",
        lambda: read_generator(make_reader(fresh=True)),
        4,
    ),
    "a loader of the program": Advice(
        lambda: use_loader(iterable=False),
        "DataLoader.from_generator(..., iterable=True)",
        lambda: use_loader(iterable=True),
        ["x", "y"],
    ),
    "a loader of several places": Advice(
        lambda: use_places(2),
        "a loader for several places gives several batches at once; use one place",
        lambda: use_places(1),
        ["x", "y"],
    ),
    "a stream of lists": Advice(
        lambda: hold([[1.0, 2.0], [3.0, 4.0]]),
        "numpy.asarray(..., 'float32') makes an array of lists of numbers",
        lambda: len(hold(np.asarray([[1.0, 2.0], [3.0, 4.0]], "float32"))),
        1,
    ),
    "streams of other names": Advice(
        lambda: map_streams("nothing"),
        "map variables to streams: model_inputs_to_streams={x: source.streams.x}, or input_map=",
        lambda: each(lambda: map_streams("input_map"), lambda: map_streams("streams")),
        [4, 4],
    ),
    "several optimizers": Advice(
        lambda: use_learners(2),
        "parameters learn at rates of their own by ParamAttr(learning_rate=...)",
        lambda: use_learners(1),
        [True, False],
    ),
    "a frequency in the place of a flag": Advice(
        lambda: configure(frequency=1, restore=DataUnit.sweep),
        "the unit of a frequency is given by frequency_unit=, or with it: frequency=(2, DataUnit.sweep)",
        lambda: each(
            lambda: configure(frequency=(1, DataUnit.sweep), restore=False) > 0,
            lambda: configure(frequency=1, frequency_unit=DataUnit.sweep, restore=False) > 0,
        ),
        [True, True],
    ),
}


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
@pytest.mark.filterwarnings("ignore:.*FLAGS_fluid_quirks", "ignore:load_params")
def test_following_a_hint_of_a_trainer_gives_the_right_result(advice: Advice) -> None:
    advice.follow()
