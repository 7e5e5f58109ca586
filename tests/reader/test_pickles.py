"""Pickles of readers: without their data, which they read again. T.. are rows of Theano's list."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError, MissingFileError


def read_samples() -> Iterator[tuple[Any, ...]]:
    for index in range(5):
        yield (np.full(3, index, "float32"),)


def read_batches() -> Iterator[list[np.ndarray]]:
    for index in range(2):
        yield [np.full((4, 3), index, "float32")]


def by_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with (
        fluid.unique_name.guard(),
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
    ):
        yield


def values(loader: Any) -> list[list[float]]:
    return [np.asarray(feed[0]["x"]).ravel().tolist() for feed in loader]


def make_loader(**kwargs: Any) -> Any:
    return fluid.io.DataLoader.from_generator([fluid.data("x", [None, 3])], capacity=2, **kwargs)


@pytest.mark.parametrize("way", [by_pickle, copy.deepcopy])
def test_a_loader_reads_its_source_again(way: Callable[[Any], Any]) -> None:  # T12
    loader = make_loader()
    loader.set_sample_generator(read_samples, 2, drop_last=False)
    next(loader)  # an epoch that has begun stays behind
    assert values(way(loader)) == values(loader) == [[0] * 3 + [1] * 3, [2] * 3 + [3] * 3, [4] * 3]
    loader.set_batch_generator(read_batches)
    assert values(way(loader)) == values(loader)
    assert len(values(loader)) == 2


def test_an_unpicklable_source_must_be_set_again() -> None:  # T12
    loader = make_loader()
    loader.set_batch_generator(lambda: read_batches())
    assert len(values(copy.deepcopy(loader))) == 2
    again = by_pickle(loader)
    with pytest.raises(GraphError, match=r"its source .*<lambda> could not be pickled"):
        values(again)
    again.set_batch_generator(read_batches)
    assert len(values(again)) == 2


def test_a_program_reads_from_its_loader_after_both_were_pickled() -> None:  # T10, T12
    loader = make_loader(iterable=False)
    loader.set_batch_generator(read_batches)
    (x,) = loader._feed_list
    total = fluid.layers.reduce_sum(x)
    saved = pickle.dumps((fluid.default_main_program(), loader, total.name))
    main, again, name = pickle.loads(saved)
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        for _ in range(2):
            again.start()
            found = [exe.run(main, fetch_list=[name])[0].item() for _ in range(2)]
            with pytest.raises(fluid.core.EOFException):
                exe.run(main, fetch_list=[name])
            again.reset()
            assert found == [0, 12]


def make_dataset(tmp_path: Path, kind: str) -> Any:
    (tmp_path / "part").write_text("1 1.5\n1 2.5\n1 3.5\n")
    dataset = fluid.DatasetFactory().create_dataset(kind)
    dataset.set_use_var([fluid.data("x", [None, 1])])
    dataset.set_batch_size(2)
    dataset.set_filelist([str(tmp_path / "part")])
    return dataset


def rows(dataset: Any) -> list[float]:
    return [value for feed in dataset.feeds() for value in np.asarray(feed["x"]).ravel().tolist()]


@pytest.mark.parametrize("way", [by_pickle, copy.deepcopy])
def test_a_dataset_leaves_its_samples_out_and_reads_its_files_again(
    way: Callable[[Any], Any], tmp_path: Path
) -> None:  # T11, T12
    dataset = make_dataset(tmp_path, "InMemoryDataset")
    dataset.load_into_memory()
    state = dataset.__getstate__()["attributes"]
    assert state["_memory"] is None
    again = way(dataset)
    assert rows(again) == [1.5, 2.5, 3.5]
    assert way(dataset).get_memory_data_size() == 3
    (tmp_path / "part").write_text("1 7\n")
    assert rows(way(dataset)) == [7]  # what the file has when the samples are read
    assert rows(again) == [1.5, 2.5, 3.5]


def test_an_unloaded_dataset_stays_unloaded(tmp_path: Path) -> None:
    again = by_pickle(make_dataset(tmp_path, "InMemoryDataset"))
    assert again.get_memory_data_size() == 0
    assert rows(by_pickle(make_dataset(tmp_path, "QueueDataset"))) == [1.5, 2.5, 3.5]


@pytest.mark.parametrize("kind", ["InMemoryDataset", "QueueDataset"])
def test_a_deleted_dataset_file_is_named(kind: str, tmp_path: Path) -> None:  # T13
    dataset = make_dataset(tmp_path, kind)
    if kind == "InMemoryDataset":
        dataset.load_into_memory()
    data = pickle.dumps(dataset)
    (tmp_path / "part").unlink()
    with pytest.raises(FileNotFoundError, match="part") as caught:
        rows(pickle.loads(data))
    assert isinstance(caught.value, MissingFileError) or kind == "QueueDataset"


def test_a_feeder_survives_pickling() -> None:
    feeder = fluid.DataFeeder([fluid.data("x", [None, 2])], fluid.CPUPlace())
    again = by_pickle(feeder)
    assert np.asarray(again.feed([([1, 2],)])["x"]).tolist() == [[1, 2]]
