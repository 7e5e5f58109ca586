"""py_reader: the program takes its batches itself, until they end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import EOFException, NotInitializedError

layers = fluid.layers


def samples() -> Iterator[Any]:
    for i in range(5):
        yield np.full(3, i, "float32"), np.array([i])


def epoch(exe: Any, fetch: list[Any]) -> list[Any]:
    found = []
    try:
        while True:
            found.append(exe.run(fetch_list=fetch))
    except EOFException:
        return found


def test_every_epoch_gives_all_batches() -> None:
    reader = layers.double_buffer(layers.py_reader(2, [(-1, 3), (-1, 1)], ["float32", "int64"]))
    x, y = layers.read_file(reader)
    fetch = [layers.reduce_sum(x, dim=1), y]
    reader.decorate_paddle_reader(fluid.io.batch(samples, 2))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for _ in range(2):
        reader.start()
        batches = epoch(exe, fetch)
        reader.reset()
        np.testing.assert_array_equal(np.concatenate([b[0] for b in batches]), [0, 3, 6, 9, 12])
        np.testing.assert_array_equal(np.concatenate([b[1] for b in batches])[:, 0], range(5))


def test_a_reader_feeds_batches_of_arrays_to_declared_data() -> None:
    declared = [fluid.data("a", [None, 2])]
    reader = layers.create_py_reader_by_data(4, declared, use_double_buffer=False)
    out = layers.scale(layers.read_file(reader), 2.0)
    reader.decorate_batch_generator(lambda: iter([[np.ones([4, 2], "float32")]]))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    reader.start()
    assert [one[0].tolist() for one in epoch(exe, [out])] == [[[2.0, 2.0]] * 4]


def test_shapes_dtypes_and_lod_levels_must_have_equal_lengths() -> None:
    with pytest.raises(ValueError, match="2 shapes, 1 dtypes, 2 lod_levels"):
        layers.py_reader(2, [(-1, 3), (-1, 1)], ["float32"])


def test_read_file_refuses_other_objects() -> None:
    with pytest.raises(TypeError, match=r"reader must come from layers.py_reader, got 3"):
        layers.read_file(3)


def test_a_forgotten_startup_program_does_not_look_like_the_end_of_an_epoch() -> None:
    reader = layers.py_reader(2, [(-1, 3)], ["float32"])
    total = layers.reduce_sum(layers.read_file(reader))
    reader.decorate_batch_generator(lambda: iter([[np.ones([4, 3], "float32")]]))
    reader.start()
    with pytest.raises(NotInitializedError, match="run the startup program first"):
        epoch(fluid.Executor(), [total])
    reader.reset()
