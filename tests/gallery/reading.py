"""Mistakes made with readers, loaders and data sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import paddlelike as fluid
from tests.gallery.render import list_mistakes

__all__ = ["MISTAKES"]

layers = fluid.layers
ONES = np.ones([2, 4], "float32")


def _batches() -> Iterator[list[Any]]:
    yield [ONES]


def _make_loader(*, iterable: bool) -> Any:
    x = fluid.data("x", [None, 4])
    loader = fluid.io.DataLoader.from_generator([x], capacity=2, iterable=iterable)
    return loader.set_batch_generator(_batches)


def _make_dataset(kind: str = "QueueDataset", text: str = "4 1 1 1 1\n") -> Any:
    Path("part-0").write_text(text)
    dataset = fluid.DatasetFactory().create_dataset(kind)
    dataset.set_use_var([fluid.data("x", [None, 4])])
    dataset.set_filelist(["part-0"])
    return dataset


def _read(dataset: Any) -> None:
    layers.reduce_sum(fluid.default_main_program().global_block().var("x"))
    fluid.Executor().train_from_dataset(dataset=dataset)


def iterate_over_a_loader_without_a_source() -> None:
    for _ in fluid.io.DataLoader.from_generator([fluid.data("x", [None, 4])], capacity=2)():
        pass


def forget_the_capacity_of_a_loader() -> None:
    fluid.io.DataLoader.from_generator([fluid.data("x", [None, 4])])


def iterate_over_a_loader_that_the_program_reads() -> None:
    for _ in _make_loader(iterable=False):
        pass


def start_a_loader_that_is_iterated_over() -> None:
    _make_loader(iterable=True).start()


def run_before_the_loader_is_started() -> None:
    loader = _make_loader(iterable=False)
    out = layers.reduce_sum(loader._feed_list[0])
    fluid.Executor().run(fetch_list=[out])


def yield_another_number_of_arrays() -> None:
    loader = fluid.io.DataLoader.from_generator([fluid.data("x", [None, 4])], capacity=2)
    for _ in loader.set_batch_generator(lambda: iter([[ONES, ONES]])):
        pass


def give_a_loader_the_generator_itself() -> None:
    loader = fluid.io.DataLoader.from_generator([fluid.data("x", [None, 4])], capacity=2)
    for _ in loader.set_batch_generator(_batches()):
        pass


def batch_the_samples_themselves() -> None:
    for _ in fluid.io.batch([1, 2, 3], 2)():
        pass


def batch_by_nothing() -> None:
    fluid.io.batch(lambda: iter(range(3)), 0)


def feed_samples_of_sequences_as_numbers() -> None:
    x = fluid.data("x", [None, 1], "int64", lod_level=1)
    fluid.DataFeeder([x], fluid.CPUPlace()).feed([(7,), (8,)])


def use_a_reader_for_two_programs_in_one_scope() -> None:
    layers.py_reader(2, [(-1, 4)], ["float32"], name="train")
    layers.py_reader(2, [(-1, 4)], ["float32"], name="train")


def train_without_a_dataset() -> None:
    fluid.Executor().train_from_dataset()


def create_a_dataset_that_does_not_exist() -> None:
    fluid.DatasetFactory().create_dataset("QueDataset")


def forget_the_variables_of_a_dataset() -> None:
    dataset = _make_dataset()
    dataset.set_use_var([])
    _read(dataset)


def name_a_file_of_a_dataset_that_does_not_exist() -> None:
    dataset = _make_dataset()
    dataset.set_filelist(["part-1"])
    _read(dataset)


def read_a_line_of_another_width() -> None:
    _read(_make_dataset(text="3 1 1 1\n"))


def read_a_line_of_words() -> None:
    _read(_make_dataset(text="4 a b c d\n"))


def read_by_a_command_that_fails() -> None:
    dataset = _make_dataset()
    dataset.set_pipe_command("false")
    _read(dataset)


def train_before_the_memory_is_loaded() -> None:
    _read(_make_dataset("InMemoryDataset"))


def shuffle_a_queue() -> None:
    _make_dataset().local_shuffle()


def compose_readers_of_different_lengths() -> None:
    list(fluid.io.compose(lambda: iter("ab"), lambda: iter("c"))())


def yield_an_item_in_place_of_a_sample() -> None:
    fluid.DataFeeder([fluid.data("x", [None, 1])], fluid.CPUPlace()).feed([1.0, 2.0])


MISTAKES = list_mistakes(globals())
