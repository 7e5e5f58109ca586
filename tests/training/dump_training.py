# ruff: noqa: C408, N812, PTH118, PTH208
"""Run by Python 3.6 with CNTK 2.7: which checkpoints its training sessions leave, what they print and read.

python dump_training.py OUT.json
"""

import contextlib
import io
import itertools
import json
import os
import re
import shutil
import sys
import tempfile

import cntk as C
import numpy as np
from cntk.io import (
    CTFDeserializer,
    MinibatchSource,
    MinibatchSourceFromData,
    StreamDef,
    StreamDefs,
)

UNITS = {
    "sample": C.train.DataUnit.sample,
    "minibatch": C.train.DataUnit.minibatch,
    "sweep": C.train.DataUnit.sweep,
}
X = np.random.RandomState(0).rand(20, 3).astype("f")
Y = np.eye(2, dtype="f")[np.arange(20) % 2]


class Record(C.logging.ProgressPrinter):
    """Prints nothing; collects every minibatch."""

    def __init__(self):
        super().__init__(freq=1, test_freq=1)
        self.taken = []

    def on_write_training_update(self, samples, updates, loss, metric):
        self.taken.append([samples[1] - samples[0], loss[1] - loss[0], metric[1] - metric[0]])

    def on_write_training_summary(self, samples, *rest):
        self.taken.append("summary")

    def on_write_test_update(self, samples, updates, metric):
        self.taken.append(["test", samples[1] - samples[0], metric[1] - metric[0]])

    def on_write_test_summary(self, *rest):
        self.taken.append("test summary")


def train(
    folder,
    size=4,
    samples=50,
    frequency=None,
    unit="sample",
    preserve=False,
    restore=True,
    rows=10,
    progress=None,
    cv=None,
    writers=(),
):
    x, y = C.input_variable(3), C.input_variable(2)
    z = C.layers.Dense(2, init=C.glorot_uniform(seed=1))(x)
    criterion = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)
    learner = C.sgd(z.parameters, C.learning_parameter_schedule(0.05))
    trainer = C.Trainer(z, criterion, [learner], list(writers))
    source = MinibatchSourceFromData(dict(x=X[:rows], y=Y[:rows]))
    inputs = {x: source["x"], y: source["y"]}
    calls, more = [], {}
    if cv:
        test = MinibatchSourceFromData(dict(x=X, y=Y), max_samples=9)
        more["cv_config"] = C.CrossValidationConfig(
            minibatch_source=test,
            frequency=(cv[0], UNITS[cv[1]]),
            minibatch_size=4,
            callback=lambda *a: (calls.append([a[0], a[2], a[3]]), len(calls) < cv[2])[1],
            model_inputs_to_streams={x: test["x"], y: test["y"]},
        )
    if frequency is not None and frequency != 0:
        frequency = (frequency, UNITS[unit])
    C.train.training_session(
        trainer=trainer,
        mb_source=source,
        mb_size=size,
        model_inputs_to_streams=inputs,
        max_samples=samples,
        progress_frequency=progress and (progress[0], UNITS[progress[1]]),
        checkpoint_config=C.CheckpointConfig(folder + "/m", frequency, restore, preserve),
        **more,
    ).train()
    return {
        "seen": trainer.total_number_of_samples_seen,
        "calls": calls,
        "cursor": source.get_checkpoint_state()["cursor"],
    }


def files(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".ckp"):
            x, y = C.input_variable(3), C.input_variable(2)
            z = C.layers.Dense(2)(x)
            learner = C.sgd(z.parameters, C.learning_parameter_schedule(0.05))
            trainer = C.Trainer(
                z, (C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)), [learner]
            )
            trainer.restore_from_checkpoint(folder + "/" + name)
            found[name] = trainer.total_number_of_samples_seen
    return found


def session(**config):
    folder = tempfile.mkdtemp()
    again = config.pop("again", None)
    result = train(folder, **config)
    if again:
        result = train(folder, **dict(config, samples=again))
    result["files"] = files(folder)
    shutil.rmtree(folder)
    return result


def lines(**config):
    record = Record()
    text = io.StringIO()
    printing = config.pop("printer")
    with contextlib.redirect_stdout(text):
        train(
            tempfile.mkdtemp(), writers=[C.logging.ProgressPrinter(**printing), record], frequency=0, **config
        )
    printed = [
        re.sub(r"[\d.]+s \( *[\d.]+ samples/s\)", "TIME", line) for line in text.getvalue().splitlines()
    ]
    return {
        "taken": record.taken,
        "lines": [line for line in printed if not line.startswith("Learning rate")],
    }


def values(source, count, size, variables):
    found = []
    for _ in range(count):
        minibatch = source.next_minibatch(size)
        if not minibatch:
            found.append(None)
            break
        one = {}
        for stream, data in minibatch.items():
            rows = [
                np.asarray(s.todense() if hasattr(s, "todense") else s).tolist()
                for s in data.as_sequences(variables[stream.m_name])
            ]
            one[stream.m_name] = {"rows": rows, "ends": data.end_of_sweep}
        found.append(one)
    return found


def ctf():
    folder = tempfile.mkdtemp()
    texts = {
        "sequences": "0 |w 3:1 |y 1 0 |# a comment\n0 |w 1:1\n1 |w 2:1 |y 0 1\n"
        "2 |w 0:1 |y 1 0\n2 |w 4:1\n2 |w 3:2\n3 |w 1:1 |y 0 1\n",
        "dense": "|x 1.5 -2e-1\t|y 1\n|y 2 |x 3 4 |other 9\n|x 5|y 3 |# done\n",
    }
    result = {}
    for name, text in texts.items():
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(text)
        if name == "dense":
            streams = StreamDefs(x=StreamDef(field="x", shape=2), y=StreamDef(field="y", shape=1))
            variables = dict(x=C.input_variable(2), y=C.input_variable(1))
            size = 2
        else:
            streams = StreamDefs(
                w=StreamDef(field="w", shape=5, is_sparse=True), y=StreamDef(field="y", shape=2)
            )
            variables = dict(w=C.sequence.input_variable(5, is_sparse=True), y=C.sequence.input_variable(2))
            size = 7
        source = MinibatchSource(CTFDeserializer(path, streams), randomize=False, max_sweeps=2)
        result[name] = {"text": text, "size": size, "minibatches": values(source, 6, size, variables)}
    return result


def memory():
    source = MinibatchSourceFromData(dict(x=np.arange(10, dtype="f").reshape(10, 1)), max_samples=27)
    found = []
    for _ in range(12):
        minibatch = source.next_minibatch(4)
        if not minibatch:
            break
        (data,) = minibatch.values()
        state = source.get_checkpoint_state()
        found.append(
            [data.asarray().ravel().tolist(), data.end_of_sweep, state["cursor"], state["total_num_samples"]]
        )
    return found


def main():
    configs = [
        dict(size=size, samples=samples, frequency=frequency, unit=unit, preserve=preserve)
        for size, samples, (frequency, unit), preserve in itertools.product(
            (3, 4),
            (28, 41),
            ((None, "sample"), (0, "sample"), (5, "sample"), (13, "sample"), (3, "minibatch"), (2, "sweep")),
            (False, True),
        )
    ]
    configs += [
        dict(frequency=12, preserve=True, samples=30, again=50),
        dict(frequency=12, samples=30, again=50),
        dict(frequency=12, samples=30, again=50, restore=False),
        dict(frequency=10, samples=50, cv=(12, "sample", 99)),
        dict(samples=50, cv=(5, "minibatch", 2)),
        dict(samples=33, cv=(1, "sweep", 99), frequency=7, preserve=True),
    ]
    sessions = []
    for config in configs:
        given = dict(config)
        sessions.append([given, session(**config)])
    printers = [
        dict(freq=2),
        dict(freq=3, first=2),
        dict(freq=0),
        dict(freq=None, num_epochs=4),
        dict(freq=2, tag="t", metric_is_pct=False, test_freq=1),
        dict(freq=4, test_freq=2, test_first=1),
    ]
    printed = [
        [dict(printer=p), lines(printer=p, samples=38, progress=(15, "sample"), cv=(16, "sample", 99))]
        for p in printers
    ]
    with open(sys.argv[1], "w") as file:
        json.dump({"sessions": sessions, "printed": printed, "ctf": ctf(), "memory": memory()}, file)


main()
