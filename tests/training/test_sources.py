"""Minibatch sources: what CNTK's own read, restored positions, what is refused."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import paddlelike as fluid
from paddlelike import training
from paddlelike.errors import FormatError, SourceError
from paddlelike.reader.readers import READING, ReadAhead
from tests.training.small import GOLDEN

NUMBERS = np.arange(10, dtype="float32").reshape(10, 1)


@pytest.fixture(autouse=True)
def no_readers() -> None:
    """Loaders that tests left in the middle shuffle in their threads, by the generator of all."""
    if not any(thread.name.startswith(READING) for thread in threading.enumerate()):
        return
    for one in gc.get_objects():
        if issubclass(type(one), ReadAhead):  # isinstance() looks behind weak proxies, also dead ones
            one.close()
            one.thread.wait(10)


def take(source: Any, size: int, count: int = 100) -> list[list[float]]:
    """The values of the first stream in the next minibatches."""
    found = []
    for _ in range(count):
        minibatch = source.next_minibatch(size)
        if not minibatch:
            break
        found.append(np.asarray(next(iter(minibatch.values()))).ravel().tolist())
    return found


def test_arrays_are_read_as_cntk_reads_them() -> None:
    source = training.MinibatchSourceFromData({"x": NUMBERS}, max_samples=27)
    for values, ends, cursor, total in GOLDEN["memory"]:
        minibatch = source.next_minibatch(4)
        assert minibatch[source.streams.x].ravel().tolist() == values
        assert minibatch.end_of_sweep == ends
        state = source.get_checkpoint_state()
        assert (state["cursor"], state["total_num_samples"]) == (cursor, total)
    assert source.next_minibatch(4) == {}


@pytest.mark.parametrize("name", ["sequences", "dense"])
def test_text_is_read_as_cntk_reads_it(tmp_path: Path, name: str) -> None:
    real = GOLDEN["ctf"][name]
    path = tmp_path / "data.ctf"
    path.write_text(real["text"])
    stream = training.StreamDef
    streams = {
        "sequences": training.StreamDefs(w=stream("w", 5, is_sparse=True), y=stream("y", 2)),
        "dense": training.StreamDefs(x=stream("x", 2), y=stream("y", 1)),
    }[name]
    source = training.MinibatchSource(training.CTFDeserializer(path, streams), max_sweeps=2, randomize=False)
    size = 4 if name == "sequences" else real["size"]  # CNTK counts the rows of sequences, 7 of 4
    for want in real["minibatches"]:
        minibatch = source.next_minibatch(size)
        if want is None:
            assert minibatch == {}
            continue
        for stream_name, given_ in want.items():
            rows = [row for sequence in given_["rows"] for row in sequence]
            value = minibatch[stream_name]
            np.testing.assert_array_equal(np.asarray(value), np.array(rows, "float32"))
            assert minibatch.end_of_sweep == given_["ends"]
            if name == "sequences":
                lengths = [len(sequence) for sequence in given_["rows"]]
                assert value.recursive_sequence_lengths() == [lengths]


def memory(tmp_path: Path) -> Any:
    return training.MinibatchSourceFromData({"x": NUMBERS}, randomize=True, randomization_seed=4)


def text(tmp_path: Path) -> Any:
    path = tmp_path / "data.ctf"
    path.write_text("".join(f"|x {number[0]}\n" for number in NUMBERS))
    return training.MinibatchSource(
        training.CTFDeserializer(path, training.StreamDefs(x=training.StreamDef(shape=1)))
    )


def seed() -> None:
    random.seed(3)
    np.random.seed(3)


def samples() -> Iterator[Any]:
    for number in NUMBERS:
        yield (number + np.random.rand(1).astype("float32") / 4,)  # the generator of the script


def generator(tmp_path: Path) -> Any:
    return training.GeneratorSource(fluid.io.shuffle(samples, 4), [fluid.data("x", [None, 1])])


def loader(tmp_path: Path) -> Any:
    made = fluid.io.DataLoader.from_generator([fluid.data("x", [None, 1])], capacity=3)
    reader = fluid.io.xmap_readers(lambda one: one, fluid.io.shuffle(samples, 4), 2, 4)
    made.set_sample_generator(reader, batch_size=3, drop_last=False)
    return training.LoaderSource(made)


ALL = pytest.mark.parametrize("make", [memory, text, generator, loader], ids=lambda make: make.__name__)


@ALL
def test_a_restored_source_gives_the_same_minibatches(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    """Row C18 and C22: at every position of the first sweeps, in a source made anew, whatever is drawn."""
    seed()
    source = make(tmp_path)
    sizes = [3, 4, 2, 5, 1, 4, 3, 3, 6, 2]
    states, found = [], []
    for size in sizes:
        states.append(source.get_checkpoint_state())
        found += take(source, size, 1)
        if make is not loader:  # whose thread draws at any time
            np.random.rand(5)  # a script that draws, too
    for start, state in enumerate(states):
        with fluid.program_guard(fluid.Program()):
            again = make(tmp_path)
        again.restore_from_checkpoint(state)
        assert [one for size in sizes[start:] for one in take(again, size, 1)] == found[start:]


@ALL
def test_every_sweep_has_every_sample_once_and_is_shuffled(
    tmp_path: Path, make: Callable[[Path], Any]
) -> None:
    source = make(tmp_path)
    values = [value for one in take(source, 1 if make is not loader else 3, 30) for value in one][:30]
    sweeps = [[int(value) for value in values[start : start + 10]] for start in (0, 10, 20)]
    assert all(sorted(sweep) == list(range(10)) for sweep in sweeps)
    assert len({tuple(sweep) for sweep in [list(range(10)), *sweeps]}) == 4


@ALL
def test_workers_divide_the_minibatches(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    def read(rank: int, size: int) -> list[list[float]]:
        seed()
        with fluid.program_guard(fluid.Program()):
            source = make(tmp_path)
        parts = [source.next_minibatch(6, number_of_workers=size, worker_rank=rank) for _ in range(3)]
        assert {part.total_samples for part in parts} <= {6, 4}
        return [np.asarray(part["x"]).ravel().tolist() for part in parts]

    if make is loader:  # each worker takes every second batch of the same batches
        seed()
        whole = take(make(tmp_path), 3, 8)
        assert read(0, 2) == [whole[0], whole[2], whole[4]]
        assert read(1, 2) == [whole[1], whole[3], whole[5]]
    else:
        whole = read(0, 1)
        assert [a + b for a, b in zip(read(0, 2), read(1, 2), strict=True)] == whole


@settings(max_examples=30)
@given(
    count=st.integers(1, 12),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    crosses=st.booleans(),
)
def test_minibatches_end_at_the_end_of_a_sweep(count: int, sizes: list[int], crosses: bool) -> None:
    """A second formula: the sequence of all sweeps, cut by sizes."""

    class Source(training.MinibatchSourceFromData):
        crosses_sweeps = crosses

    source = Source({"x": np.arange(count)})
    position = 0
    for size in sizes:
        wanted = size if crosses else min(size, count - position % count)
        minibatch = source.next_minibatch(size)
        assert minibatch["x"].tolist() == [index % count for index in range(position, position + wanted)]
        ends = [index for index in range(position, position + wanted) if index % count == count - 1]
        assert minibatch.end_of_sweep == bool(ends)
        position += wanted


def test_lists_of_arrays_are_sequences() -> None:
    words = [np.arange(3), np.arange(1), np.arange(2)]
    source = training.MinibatchSourceFromData({"words": words, "label": np.arange(3)})
    found = source.next_minibatch(2)["words"]
    assert found.recursive_sequence_lengths() == [[3, 1]]
    assert np.asarray(found).tolist() == [[0], [1], [2], [0]]


def test_source_states_of_cntk_are_restored() -> None:
    """What its trainers keep as external state, see the golden files."""
    source = training.MinibatchSourceFromData({"x": NUMBERS})
    source.restore_from_checkpoint({"cursor": 4, "total_num_samples": 14})
    assert take(source, 2, 1) == [[4.0, 5.0]]


def bad_order(tmp_path: Path) -> None:
    source = training.MinibatchSourceFromData({"x": NUMBERS})
    source.restore_from_checkpoint(memory(tmp_path).get_checkpoint_state())


def unseeded(tmp_path: Path) -> None:
    def reader() -> Iterator[Any]:
        yield from np.random.default_rng().random((9, 1)).astype("float32")

    x = fluid.data("x", [None, 1])
    source = training.GeneratorSource(reader, [x])
    source.next_minibatch(4)
    training.GeneratorSource(reader, [x]).restore_from_checkpoint(source.get_checkpoint_state())


@pytest.mark.parametrize(
    ("do", "text"),
    [
        (lambda p: training.MinibatchSourceFromData({"x": NUMBERS, "y": NUMBERS[:5]}), "'x': 10, 'y': 5"),
        (lambda p: training.MinibatchSourceFromData({"x": [1, 2]}), "stream 'x' is a list"),
        (lambda p: training.MinibatchSourceFromData({}), "they have none"),
        (lambda p: memory(p).restore_from_checkpoint({"sweep": 1}), "it has no 'total_num_samples'"),
        (bad_order, "randomize True there, False here"),
        (unseeded, "does not repeat its earlier samples"),
        (lambda p: memory(p).next_minibatch(2, {"x": "z"}), "no stream 'z' to feed 'x'"),
        (lambda p: generator(p).restore_from_checkpoint({"cursor": 1}), "GeneratorSource cannot continue"),
        (lambda p: take(training.GeneratorSource(lambda: iter(()), []), 1), "gave nothing in sweep 0"),
        (lambda p: training.GeneratorSource(samples, [], "rows"), "form must be one of"),
        (lambda p: training.LoaderSource(3), "iterates over a loader, got int"),
        (lambda p: training.MinibatchSource([]), "takes one CTFDeserializer"),
        (lambda p: training.CTFDeserializer(p / "x", {"x": training.StreamDef()}), "has the shape None"),
        (lambda p: memory(p).next_minibatch(1, number_of_workers=3), "too small for 3 workers"),
    ],
)  # fmt: skip
def test_invalid_sources_are_refused(tmp_path: Path, do: Callable[[Path], Any], text: str) -> None:
    with pytest.raises(SourceError, match=text):
        do(tmp_path)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "is empty"),
        ("\n", "holds no line"),
        ("|x 1 2\n|x 1 2 3\n", "line 2: stream 'x': 3 values, expected 2"),
        ("|x 1 a\n", "line 1: stream 'x': could not convert"),
        ("|x 1 2\n|y 1\n", "line 2: the sequence that ends here has no stream 'x'"),
        ("|x 1 2\n3 |x 1 2\n", "line 2: expected a stream"),
        ("3 |x 1 2\n|x 1 2\n", "line 2: expected a sequence id; there is none"),
        ("x 1 2 |y 1\n", "line 1: expected a sequence id; there is b'x 1 2'"),
    ],
)
def test_text_that_is_not_in_the_format_is_refused(tmp_path: Path, content: str, text: str) -> None:
    path = tmp_path / "data.ctf"
    path.write_text(content)
    with pytest.raises(FormatError, match=text):
        take(
            training.MinibatchSource(
                training.CTFDeserializer(path, {"x": training.StreamDef(shape=2)}), randomize=False
            ),
            1,
            3,
        )


def test_sparse_indexes_and_ids_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "data.ctf"
    path.write_text("|w 2:1\n|w 5:1\n|w 1:1 2:1\n|w 1\n")
    file = training.CTFDeserializer(path, {"w": training.StreamDef(shape=5, is_sparse=True, ids=True)})
    assert file.read_sequences([0])["w"].tolist() == [[2]]
    for index, text_ in (
        (1, "outside of 0 .. 4"),
        (2, "expected one nonzero value"),
        (3, "expected index:value"),
    ):
        with pytest.raises(FormatError, match=text_):
            file.read_sequences([index])


def test_a_reader_that_shuffles_in_place_is_read_again_from_its_start() -> None:
    """What many scripts do: the order of a sweep follows from those before it."""
    x = fluid.data("x", [None, 1])

    def make() -> Any:
        order = list(range(10))

        def reader() -> Iterator[Any]:
            np.random.shuffle(order)
            for index in order:
                yield (NUMBERS[index],)

        return training.GeneratorSource(reader, [x])

    np.random.seed(1)
    source = make()
    take(source, 4, 8)  # two sweeps and a half
    state, want = source.get_checkpoint_state(), take(source, 4, 9)
    again = make()
    with pytest.warns(UserWarning, match="keeps data between sweeps: all 2 sweeps"):
        again.restore_from_checkpoint(state)
    assert take(again, 4, 9) == want


def test_threads_of_other_readers_do_not_disturb_a_reader() -> None:
    """Another loader starts its thread while the thread of this one reads the first sample."""
    reading, disturbed = threading.Event(), threading.Event()

    def slow() -> Iterator[Any]:
        reading.set()
        assert disturbed.wait(60)
        yield from samples()

    def read(reader: Callable[[], Iterator[Any]]) -> list[list[float]]:
        with fluid.program_guard(fluid.Program()):
            made = fluid.io.DataLoader.from_generator([fluid.data("x", [None, 1])], capacity=3)
        made.set_sample_generator(reader, batch_size=3, drop_last=False)
        return take(training.LoaderSource(made, max_sweeps=1), 3)

    def disturb() -> None:
        assert reading.wait(60)
        others.append(ReadAhead(lambda: iter(NUMBERS), 1))  # its thread waits until a sample is taken
        disturbed.set()

    seed()
    want = read(samples)
    others: list[Any] = []
    disturber = threading.Thread(target=disturb)
    disturber.start()
    seed()
    before = np.random.get_state()[1:3]
    assert read(slow) == want
    disturber.join()
    others.pop().close()
    after = np.random.get_state()[1:3]
    np.testing.assert_equal(after, before)  # the reader drew from its own


@pytest.mark.parametrize("make", [memory, generator, loader], ids=lambda make: make.__name__)
def test_a_source_can_be_restored_repeatedly(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    """As cross validations do."""
    seed()
    source = make(tmp_path)
    found = []
    for _ in range(3):
        state = source.get_checkpoint_state()
        found.append(take(source, 3, 5))
        source.restore_from_checkpoint(state)
    assert found[0] == found[1] == found[2]


def test_a_user_defined_source_is_accepted(tmp_path: Path) -> None:
    class Numbers(training.UserMinibatchSource):
        position = 0

        @property
        def streams(self) -> training.Streams:
            return training.Streams(["x"])

        def read(self, num_samples: int, number_of_workers: int, worker_rank: int) -> training.Minibatch:
            self.position += num_samples
            return training.Minibatch({"x": np.full((num_samples, 1), self.position)}, num_samples)

        def get_checkpoint_state(self) -> dict[str, Any]:
            return {"position": self.position}

        def restore_from_checkpoint(self, state: Any) -> None:
            self.position = state["position"]

    source = Numbers()
    assert take(source, 2, 2) == [[2, 2], [4, 4]]
    other = Numbers()
    other.restore_from_checkpoint(source.get_checkpoint_state())
    assert take(other, 2, 1) == [[6, 6]]
