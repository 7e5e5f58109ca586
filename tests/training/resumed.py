"""A training that may be killed at any instant and is started again until it has ended.

It reads the environment: ROOT, a directory for its checkpoints and its log; MODEL, another place for its
checkpoints; SOURCE, the kind of its data, a name of ``SOURCES``; STRIKE, at which system call of its writes
it kills itself (0: never); FAULT, the error that this call has instead; SAMPLES, where it ends. At its end it
writes ``ROOT/final``: a checksum of all variables, and the curves.
"""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

import paddlelike as fluid
from paddlelike import training
from paddlelike.io.calls import get_program_persistable_vars

ROWS = 50
DATA = np.random.RandomState(5).rand(ROWS, 8).astype("float32")
WORDS = np.random.RandomState(6).randint(0, 20, (ROWS, 1))
LABELS = (DATA.sum(1, keepdims=True) > 4).astype("int64")
SHUFFLED = list(range(ROWS))


def build() -> tuple[list[Any], Any, Any]:
    fluid.default_startup_program().random_seed = 3
    fluid.global_scope().generator.state = 2024
    random.seed(7)
    np.random.seed(8)
    x, word = fluid.data("x", [None, 8]), fluid.data("word", [None, 1], "int64")
    label = fluid.data("label", [None, 1], "int64")
    table = fluid.layers.embedding(word, [20, 4], is_sparse=True)
    hidden = fluid.layers.concat([fluid.layers.fc(x, 16), table], axis=1)
    hidden = fluid.layers.dropout(fluid.layers.batch_norm(hidden, act="relu"), 0.4)
    out = fluid.layers.fc(hidden, 2, act="softmax")
    loss = fluid.layers.cross_entropy(out, label)
    error = 1.0 - fluid.layers.accuracy(out, label)
    return [x, word, label], loss, error


def samples() -> Iterator[Any]:
    for row in range(ROWS):
        yield DATA[row], WORDS[row], LABELS[row]


def shuffled_in_place() -> Iterator[Any]:
    """What a script does that keeps its list: the order follows from all earlier sweeps."""
    np.random.shuffle(SHUFFLED)
    for row in SHUFFLED:
        yield DATA[row] + np.random.rand(8).astype("float32") / 8, WORDS[row], LABELS[row]


def memory(data: list[Any], root: Path) -> Any:
    arrays = {"x": DATA, "word": WORDS, "label": LABELS}
    return training.MinibatchSourceFromData(arrays, randomize=True, randomization_seed=3)


def ctf(data: list[Any], root: Path) -> Any:
    path = root.parent / "data.ctf"
    lines = [
        f"|x {' '.join(repr(float(value)) for value in x)} |word {word[0]}:1 |label {label[0]}\n"
        for x, word, label in zip(DATA, WORDS, LABELS, strict=True)
    ]
    path.write_text("".join(lines))
    streams = training.StreamDefs(
        x=training.StreamDef(shape=8),
        word=training.StreamDef(shape=20, is_sparse=True, ids=True),
        label=training.StreamDef(shape=1, dtype="int64"),
    )
    return training.MinibatchSource(training.CTFDeserializer(path, streams))


def generator(data: list[Any], root: Path) -> Any:
    return training.GeneratorSource(fluid.io.shuffle(samples, 20), data)


def in_place(data: list[Any], root: Path) -> Any:
    return training.GeneratorSource(shuffled_in_place, data)


def loader(data: list[Any], root: Path) -> Any:
    """A loader whose thread reads ahead from threads that map samples of a shuffled reader."""
    reader = fluid.io.xmap_readers(
        lambda one: (one[0] * 2, *one[1:]), fluid.io.buffered(fluid.io.shuffle(samples, 30), 7), 3, 5
    )
    made = fluid.io.DataLoader.from_generator(data, capacity=4)
    made.set_sample_generator(reader, batch_size=8, drop_last=False)
    return training.LoaderSource(made)


SOURCES: dict[str, Callable[[list[Any], Path], Any]] = {
    "memory": memory, "ctf": ctf, "generator": generator, "in_place": in_place, "loader": loader,
}  # fmt: skip


def die_at_call(strike: int, fault: str | None) -> None:
    """Kill this process at a call of those that write, rename or delete, or let the call fail."""
    count = 0

    def count_call(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        writes = (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if writes or event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "shutil.rmtree"):
            count += 1
            if count == strike and fault is not None:
                number = getattr(errno, fault)
                raise OSError(number, os.strerror(number))
            if count == strike:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count_call)


def checksum() -> str:
    digest = xxhash.xxh3_128()
    for variable in sorted(get_program_persistable_vars(fluid.default_main_program()), key=lambda v: v.name):
        digest.update(variable.name.encode())
        digest.update(np.array(fluid.global_scope().find_var(variable.name).get_tensor()).tobytes())
    return digest.hexdigest()


def main() -> None:
    warnings.simplefilter("ignore", fluid.errors.QuirkWarning)
    root = Path(os.environ["ROOT"])
    root.mkdir(parents=True, exist_ok=True)
    data, loss, error = build()
    rate = fluid.layers.exponential_decay(0.01, decay_steps=5, decay_rate=0.8)
    printer = training.ProgressPrinter(freq=4, log_to_file=root / "lines")
    log = training.LossLog(root / "losses.jsonl")
    trainer = training.Trainer(None, (loss, error), fluid.optimizer.Adam(rate), [printer, log])
    source = SOURCES[os.environ["SOURCE"]](data, root)
    strike = int(os.environ.get("STRIKE", "0"))
    if strike:
        die_at_call(strike, os.environ.get("FAULT"))
    training.training_session(
        trainer,
        source,
        training.minibatch_size_schedule([6, 8], 60),
        max_samples=int(os.environ.get("SAMPLES", "230")),
        progress_frequency=50,
        checkpoint_config=training.CheckpointConfig(
            os.environ.get("MODEL", root / "model"), frequency=20, keep_best=2
        ),
        cv_config=training.CrossValidationConfig((DATA, WORDS, LABELS), 70, 25),
    ).train()
    curves = {name: curve._asdict() for name, curve in log.log.curves().items()}
    found = {"checksum": checksum(), "curves": curves, "random": fluid.global_scope().generator.state}
    (root / "final").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
