"""The advice of errors of readers, loaders and datasets, followed to the letter."""

from __future__ import annotations

import io as text_io
import pickle
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import EOFException
from tests.hints.advice import ROWS, Advice, each, read_rows, run

layers, io = fluid.layers, fluid.io
CPU = fluid.CPUPlace()
LINES = "1 3 1 30\n1 4 1 40\n"


def make_dataset(
    kind: str = "QueueDataset", lines: str = LINES, command: str = "cat", variables: int = 2
) -> Any:
    """Return a dataset of a file that has two slots a line."""
    Path("lines").write_text(lines)
    dataset = fluid.DatasetFactory().create_dataset(kind)
    dataset.set_batch_size(2)
    dataset.set_pipe_command(command)
    if variables:
        dataset.set_use_var([fluid.data(name, [None, 1], "int64") for name in ("x", "y")[:variables]])
    dataset.set_filelist(["lines"])
    return dataset


def read_dataset(*args: Any, path: str = "lines", **options: Any) -> Any:
    dataset = make_dataset(*args, **options)
    dataset.set_filelist([path])
    return next(np.array(feed["y"]).ravel().tolist() for feed in dataset.feeds())


def shuffle(kind: str) -> Any:
    dataset = make_dataset(kind)
    if kind == "InMemoryDataset":
        dataset.load_into_memory()
    dataset.local_shuffle()
    return sorted(value for feed in dataset.feeds() for value in np.array(feed["y"]).ravel().tolist())


def use_memory(loaded: bool) -> Any:
    dataset = make_dataset("InMemoryDataset")
    if loaded:
        dataset.load_into_memory()
    return [np.array(feed["y"]).ravel().tolist() for feed in dataset.feeds()]


def unpickle(restored: bool) -> Any:
    dataset = make_dataset("InMemoryDataset")
    dataset.load_into_memory()
    data = pickle.dumps(dataset)
    Path("lines").unlink()
    if restored:
        Path("lines").write_text(LINES)
    return [np.array(feed["y"]).ravel().tolist() for feed in pickle.loads(data).feeds()]


def merge(by_command: bool) -> Any:
    dataset = make_dataset("InMemoryDataset", command="sort -u" if by_command else "cat", lines=LINES * 2)
    if not by_command:
        dataset.set_merge_by_lineid(2)
    dataset.load_into_memory()
    return [np.array(feed["y"]).ravel().tolist() for feed in dataset.feeds()]


def describe_feed(text: str | None) -> Any:
    Path("feed").write_text(make_dataset().desc() if text is None else text)
    return fluid.DataFeedDesc("feed").proto_desc.name


def generate(padding: list[int]) -> Any:
    from paddlelike.fluid.incubate.data_generator import MultiSlotDataGenerator

    class Generator(MultiSlotDataGenerator):  # type: ignore[misc]
        def generate_sample(self, line: str | None) -> Any:
            return lambda: iter([[("x", [1, 2]), ("y", padding)]])

    with redirect_stdout(text_io.StringIO()) as out:
        Generator().run_from_memory()
    return out.getvalue()


def try_command(command: str) -> Any:
    """Run a line of a hint in a shell."""
    make_dataset()
    return subprocess.run(command, shell=True, capture_output=True, text=True).stderr


def feed_samples(*samples: Any, lod_level: int = 0) -> Any:
    names = [fluid.data("x", [None, 4])]
    if lod_level:
        names = [fluid.data("words", [None, 1], "int64", lod_level=lod_level)]
    (tensor,) = fluid.DataFeeder(names, CPU).feed(samples).values()
    return np.array(tensor)


def make_loader(source: Any = None, kind: str = "batch", variables: int = 1, **options: Any) -> Any:
    feed_list = [read_rows(), fluid.data("y", [None, 4])][:variables]
    loader: Any = io.DataLoader.from_generator(**{"feed_list": feed_list, "capacity": 2, **options})
    if kind == "batch":
        loader.set_batch_generator(source or (lambda: iter([[ROWS]])), CPU)
    elif kind == "sample":
        loader.set_sample_generator(lambda: ((row,) for row in ROWS), 2, places=CPU)
    elif kind == "list":
        loader.set_sample_list_generator(lambda: iter([[(row,) for row in ROWS]]), CPU)
    return loader


def read_loader(*args: Any, **options: Any) -> Any:
    """Return twice the rows that a loader gives."""
    loader = make_loader(*args, **options)
    out, exe = layers.scale(fluid.default_main_program().global_block().var("x"), 2.0), fluid.Executor()
    return np.concatenate([exe.run(feed=feed, fetch_list=[out])[0] for feed in loader()])


def run_loader(started: bool = True) -> Any:
    """Return twice the rows that a program reads in two epochs."""
    loader = make_loader(iterable=False)
    out, exe = layers.scale(fluid.default_main_program().global_block().var("x"), 2.0), fluid.Executor()
    found = []
    for _ in range(2):
        if started:
            loader.start()
        try:
            while True:
                found += exe.run(fetch_list=[out])
        except EOFException:
            loader.reset()
    return np.concatenate(found)


def run_out(reset: bool) -> Any:
    loader = make_loader(iterable=False)
    out, exe = layers.scale(fluid.default_main_program().global_block().var("x"), 2.0), fluid.Executor()
    loader.start()
    exe.run(fetch_list=[out])
    if reset:
        loader.reset()
        loader.start()
    return exe.run(fetch_list=[out])[0]


def read_words(padded: bool | None) -> Any:
    x = fluid.data("words", [None, 2] if padded else [None, 1], "int64", lod_level=0 if padded else 1)
    loader: Any = io.DataLoader.from_generator([x], capacity=2)
    rows = [[1, 2], [3, 0]] if padded else [[1, 2], [3]]
    item = rows if padded is not False else fluid.create_lod_tensor(rows, [[2, 1]], CPU)
    loader.set_batch_generator(lambda: iter([[item if not padded else np.array(rows)]]), CPU)
    return [np.array(feed["words"]).tolist() for (feed,) in loader()]


def make_readers(second: str | None) -> Any:
    """Make a reader of a name, and a second one; return what the second gives."""
    if second is None:
        return read_loader()
    layers.py_reader(2, [[-1, 4]], ["float32"], name="reader")
    reader = layers.py_reader(2, [[-1, 4]], ["float32"], name=second)
    out = layers.scale(layers.read_file(reader), 2.0)
    reader.decorate_tensor_provider(lambda: iter([[ROWS]]))
    fluid.Executor().run(fluid.default_startup_program())
    reader.start()
    return fluid.Executor().run(fetch_list=[out])[0]


def iterate() -> Iterator[Any]:
    yield from ROWS


def compose(**options: bool) -> Any:
    reader = io.compose(lambda: iter([1, 2, 3]), lambda: iter([4, 5]), **options)
    return list(reader())


def sum_sequences(lengths: list[int]) -> Any:
    x = fluid.data("x", [None, 4], lod_level=1)
    tensor = fluid.create_lod_tensor(ROWS, [lengths], CPU)
    return run(layers.sequence_pool(x, "sum"), {"x": tensor})


ADVICE: dict[str, Advice] = {
    "a description of another form": Advice(
        lambda: describe_feed("hello"),
        'it begins with name: "MultiSlotDataFeed"; dataset.desc() gives an example',
        lambda: [describe_feed('name: "MultiSlotDataFeed"'), describe_feed(None)],
        ["MultiSlotDataFeed"] * 2,
    ),
    "a slot without values": Advice(
        lambda: generate([]),
        "write a padding value, such as 0",
        lambda: generate([0]),
        "2 1 2 1 0\n",
    ),
    "a line of another form": Advice(
        lambda: read_dataset(lines="3 1 30\n"),
        "a line holds, for each variable of set_use_var in order, a count and as many values",
        lambda: read_dataset(lines="1 3 1 30\n"),
        [30],
    ),
    "a dataset without variables": Advice(
        lambda: read_dataset(variables=0),
        "call set_use_var([x, y]) with the data variables, in the order of the slots of a line",
        lambda: read_dataset(variables=2),
        [30, 40],
    ),
    "a command that fails": Advice(
        lambda: read_dataset(command="cat --nonsense"),
        "try it in a shell: {} < {}",
        lambda: "nonsense" in try_command("cat --nonsense < lines"),
        True,
    ),
    "samples that are not in memory": Advice(
        lambda: shuffle("QueueDataset"),
        'fluid.DatasetFactory().create_dataset("InMemoryDataset"), then load_into_memory()',
        lambda: shuffle("InMemoryDataset"),
        [30, 40],
    ),
    "a pickled dataset without its files": Advice(
        lambda: unpickle(restored=False),
        "a pickled dataset has no samples, it reads its files again: restore them",
        lambda: unpickle(restored=True),
        [[30, 40]],
    ),
    "samples that are merged": Advice(
        lambda: merge(by_command=False),
        "merge them by the command of set_pipe_command",
        lambda: merge(by_command=True),
        [[30, 40]],
    ),
    "a dataset that is not loaded": Advice(
        lambda: use_memory(loaded=False),
        "call its load_into_memory() first",
        lambda: use_memory(loaded=True),
        [[30, 40]],
    ),
    "a file that is not there": Advice(
        lambda: read_dataset(path="nowhere"),
        "set_filelist takes paths, relative to this process",
        lambda: read_dataset(path="./lines"),
        [30, 40],
    ),
    "samples that are not tuples": Advice(
        lambda: feed_samples(1.0, 2.0),
        "a batch is a list of samples: a reader yields (item,) for one variable",
        lambda: feed_samples((ROWS[0],), (ROWS[1],)),
        ROWS,
    ),
    "samples of too many items": Advice(
        lambda: feed_samples((ROWS[0], 1), (ROWS[1], 1)),
        "a batch is a list of samples, a sample a tuple with one item per variable",
        lambda: feed_samples((ROWS[0],), (ROWS[1],)),
        ROWS,
    ),
    "numbers in the place of sequences": Advice(
        lambda: feed_samples((7,), (8,), lod_level=1),
        "an item is a list of elements: [7, 8]; a sequence of one is [7]",
        lambda: feed_samples(([7, 8],), ([7],), lod_level=1),
        [[7], [8], [7]],
    ),
    "rows of different lengths": Advice(
        lambda: read_words(padded=None),
        "pad them to one length, or yield fluid.create_lod_tensor(rows, [lengths], place)",
        lambda: each(lambda: read_words(padded=True), lambda: read_words(padded=False)),
        [[[[1, 2], [3, 0]]], [[[1], [2], [3]]]],
    ),
    "a loader without variables": Advice(
        lambda: read_loader(feed_list=None),
        "feed_list=[x, y] in the order in which the generator yields their values",
        lambda: read_loader(lambda: iter([[ROWS, 3 * ROWS]]), variables=2),
        2 * ROWS,
    ),
    "a loader that reads nothing ahead": Advice(
        lambda: read_loader(capacity=0),
        "pass a count, such as capacity=16",
        lambda: read_loader(capacity=16),
        2 * ROWS,
    ),
    "a loader of the program that is iterated": Advice(
        lambda: read_loader(iterable=False),
        "create it with iterable=True; or start() it, run the program without a feed until fluid.core.EOFException, then reset() it",
        lambda: [each(lambda: read_loader(iterable=True).sum())[0], each(lambda: run_loader().sum())[0]],
        [56.0, 112.0],
    ),
    "a loader without a source": Advice(
        lambda: read_loader(kind="none"),
        "call set_sample_generator, set_sample_list_generator or set_batch_generator",
        lambda: each(
            *(lambda kind=kind: read_loader(kind=kind).sum() for kind in ("sample", "list", "batch"))
        ),
        [56.0] * 3,
    ),
    "a source that was called": Advice(
        lambda: read_loader(iterate()),
        "pass the generator function itself, without calling it: every epoch calls it again",
        lambda: read_loader(lambda: ([row[None]] for row in iterate())),
        2 * ROWS,
    ),
    "a batch of other arrays": Advice(
        lambda: read_loader(lambda: iter([[ROWS]]), variables=2),
        "the generator yields a list with one array for each variable of feed_list",
        lambda: read_loader(lambda: iter([[ROWS, ROWS]]), variables=2),
        2 * ROWS,
    ),
    "a loader of the dynamic graph": Advice(
        lambda: io.DataLoader([ROWS]),  # type: ignore[abstract]
        "use DataLoader.from_generator",
        read_loader,
        2 * ROWS,
    ),
    "a second reader of a name": Advice(
        lambda: make_readers("reader"),
        "give each py_reader a name of its own (name=...), or use DataLoader.from_generator",
        lambda: each(lambda: make_readers("other").sum(), lambda: make_readers(None).sum()),
        [56.0, 56.0],
    ),
    "a reader that was not started": Advice(
        lambda: run_loader(started=False),
        "call the reader's start() before the program runs, and again after reset()",
        run_loader,
        np.concatenate([2 * ROWS, 2 * ROWS]),
    ),
    "a reader at its end": Advice(
        lambda: run_out(reset=False),
        "call its reset(), then start() for another epoch",
        lambda: run_out(reset=True),
        2 * ROWS,
    ),
    "a reader that was called": Advice(
        lambda: io.batch(iterate(), 2),
        "pass the reader itself, without calling it; lambda: iter(samples) for a list",
        lambda: [np.array(*io.batch(iterate, 2)()).sum(), np.sum(*io.batch(lambda: iter([1, 2]), 2)())],
        [28.0, 3],
    ),
    "readers of different lengths": Advice(
        compose,
        "check_alignment=False ends with the shortest",
        lambda: compose(check_alignment=False),
        [(1, 4), (2, 5)],
    ),
    "offsets in the place of lengths": Advice(
        lambda: sum_sequences([0, 1, 2]),
        "give the number of rows of each sequence (lengths, not offsets)",
        lambda: sum_sequences([1, 1]),
        ROWS,
    ),
}


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
@pytest.mark.filterwarnings("ignore:.*FLAGS_fluid_quirks")
def test_following_a_hint_of_a_reader_gives_the_right_result(advice: Advice) -> None:
    advice.follow()
