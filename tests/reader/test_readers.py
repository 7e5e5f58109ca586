"""Readers and what is done with them: order, laziness, errors, threads."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, strategies as st

from paddlelike.io import (
    ComposeNotAligned,
    batch,
    buffered,
    cache,
    chain,
    compose,
    firstn,
    map_readers,
    multiprocess_reader,
    shuffle,
    xmap_readers,
)

Reader = Callable[[], Iterator[int]]


def count(stop: int, start: int = 0) -> Reader:
    return lambda: iter(range(start, stop))


def failing(after: int) -> Reader:
    def read() -> Iterator[int]:
        yield from range(after)
        raise KeyError("mine")

    return read


@given(st.integers(0, 30), st.integers(1, 7), st.booleans())
def test_batches_hold_all_samples_in_order(total: int, size: int, drop_last: bool) -> None:
    found = list(batch(count(total), size, drop_last)())
    assert all(len(one) == size for one in found[:-1])
    kept = total - total % size if drop_last else total
    assert list(itertools.chain(*found)) == list(range(kept))


@given(st.integers(0, 30), st.integers(1, 7))
def test_a_shuffle_keeps_every_sample_in_its_window(total: int, window: int) -> None:
    found = list(shuffle(count(total), window)())
    for start in range(0, total, window):
        assert sorted(found[start : start + window]) == list(range(total))[start : start + window]


def test_a_shuffle_follows_the_seed() -> None:
    def order() -> list[int]:
        random.seed(3)
        return list(shuffle(count(50), 50)())

    assert order() == order() != list(range(50))


def test_a_cached_reader_reads_its_source_once() -> None:
    times = []

    def read() -> Iterator[int]:
        times.append(1)
        yield from range(3)

    cached = cache(read)
    assert times == [1]  # at once, as in Fluid
    assert [list(cached()), list(cached())] == [[0, 1, 2], [0, 1, 2]]
    assert len(times) == 1


def test_readers_are_composed_and_chained() -> None:
    pairs = lambda: iter([(1, 2), (3, 4)])
    assert list(chain(count(2), count(4, 2))()) == [0, 1, 2, 3]
    assert list(compose(count(2), pairs)()) == [(0, 1, 2), (1, 3, 4)]
    assert list(map_readers(max, count(3), count(6, 3))()) == [3, 4, 5]
    with pytest.raises(ComposeNotAligned):
        list(compose(count(2), count(3))())
    assert list(compose(count(2), count(3), check_alignment=False)()) == [(0, 0), (1, 1)]
    with pytest.raises(TypeError, match="aligned"):
        compose(count(2), aligned=True)


def test_firstn_reads_only_the_first_samples() -> None:
    assert list(firstn(itertools.count, 3)()) == [0, 1, 2]
    assert list(itertools.islice(batch(itertools.count, 2)(), 2)) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "made",
    [
        lambda read: buffered(read, 2),
        lambda read: xmap_readers(lambda sample: sample, read, 2, 3, order=True),
        lambda read: multiprocess_reader([read], queue_size=3),
    ],
    ids=["buffered", "xmap", "multiprocess"],
)
def test_a_reader_error_is_raised_at_its_position(made: Callable[[Reader], Reader]) -> None:
    assert list(made(count(9))()) == list(range(9))
    seen = []
    with pytest.raises(KeyError, match="mine"):
        seen.extend(made(failing(4))())
    assert seen == [0, 1, 2, 3]


def test_a_mapper_error_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(xmap_readers(lambda sample: 1 // sample, count(3), 2, 2, order=True)())


def test_unordered_mapping_loses_no_samples() -> None:
    def slow(sample: int) -> int:
        time.sleep(0.01 if sample == 0 else 0)
        return sample * 2

    assert sorted(xmap_readers(slow, count(20), 4, 8)()) == [2 * i for i in range(20)]


def test_several_readers_are_read_at_once() -> None:
    assert sorted(multiprocess_reader([count(5), count(9, 5)])()) == list(range(9))


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_size_below_one_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="batch_size"):
        batch(count(3), size)


def test_leaving_a_loop_early_ends_the_thread() -> None:
    before = set(threading.enumerate())
    stream = buffered(itertools.count, 2)()
    assert next(stream) == 0
    stream.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()
