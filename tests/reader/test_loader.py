"""Loaders: errors of a generator come out, leaving early ends the thread, epochs start and end."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import EOFException, FeedError, GraphError, NotInitializedError, UnsupportedError

pytestmark = pytest.mark.usefixtures("small_heap")

Batch = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def batches(count: int = 3) -> Callable[[], Iterator[Batch]]:
    def generate() -> Iterator[Batch]:
        for i in range(count):
            yield np.full((2, 3), i, "float32"), np.full((2, 1), i)

    return generate


def failing() -> Iterator[Batch]:
    yield from batches(1)()
    raise ValueError("my own error")


@pytest.fixture
def inputs() -> list[Any]:
    return [fluid.data("x", [None, 3]), fluid.data("l", [None, 1], "int64")]


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor()


def threads() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if t.name.startswith("paddlelike")}


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = threads()
    yield
    if threads() - before:
        gc.collect()
    wait_for(lambda: not threads() - before)


def loader(inputs: list[Any], **options: Any) -> Any:
    return fluid.io.DataLoader.from_generator(inputs, **{"capacity": 2, **options})


def test_a_loader_can_be_iterated_repeatedly(inputs: list[Any]) -> None:
    made = loader(inputs).set_batch_generator(batches(), places=fluid.cpu_places(1))
    for _ in range(2):
        seen = [float(np.array(feed["x"])[0, 0]) for (feed,) in made]
        assert seen == [0, 1, 2]


def test_a_generator_error_is_raised_at_its_position(inputs: list[Any]) -> None:
    made = loader(inputs).set_batch_generator(failing)
    seen = []
    with pytest.raises(ValueError, match="my own error"):
        seen.extend(made)
    assert len(seen) == 1


def test_leaving_a_loop_early_ends_the_thread(inputs: list[Any]) -> None:
    made = loader(inputs, capacity=1).set_batch_generator(batches(10**6))
    before = threads()
    for number, _ in enumerate(made()):
        assert threads() - before
        if number == 2:
            break


def test_the_generator_is_closed_when_the_loop_is_left(inputs: list[Any]) -> None:
    closed = threading.Event()

    def generate() -> Iterator[Batch]:
        try:
            yield from batches(10**6)()
        finally:
            closed.set()

    for _ in loader(inputs).set_batch_generator(generate):
        break
    gc.collect()
    assert closed.wait(60)


def test_batches_are_read_ahead(inputs: list[Any]) -> None:
    made, seen = threading.Semaphore(0), []

    def generate() -> Iterator[Batch]:
        for batch in batches(5)():
            made.release()
            seen.append(batch)
            yield batch

    stream = iter(loader(inputs, capacity=2).set_batch_generator(generate))
    next(stream)
    for _ in range(3):
        assert made.acquire(timeout=60)
    time.sleep(0.05)
    assert len(seen) <= 4  # the one in use, two waiting, one in hand
    stream.close()


def test_next_returns_successive_batches(inputs: list[Any]) -> None:
    made = loader(inputs).set_batch_generator(batches(2))
    assert float(np.array(made.next()[0]["x"])[0, 0]) == 0
    assert float(np.array(next(made)[0]["x"])[0, 0]) == 1
    with pytest.raises(StopIteration):
        made.next()
    assert float(np.array(made.next()[0]["x"])[0, 0]) == 0
    made._iterator.close()


def test_tensors_with_lod_pass_through() -> None:
    words = fluid.data("w", [None, 1], "int64", lod_level=1)
    tensor = fluid.create_lod_tensor(np.arange(3).reshape(3, 1), [[1, 2]], fluid.CPUPlace())
    made = loader([words]).set_batch_generator(lambda: iter([tensor]))
    ((feed,),) = made
    assert feed["w"].lod() == [[0, 1, 3]]


def test_batches_that_do_not_fit_are_errors(inputs: list[Any]) -> None:
    made = loader(inputs).set_batch_generator(lambda: iter([(np.ones((2, 3), "float32"),)]))
    with pytest.raises(FeedError, match="a batch has 1 arrays, expected 2"):
        list(made)
    made.set_batch_generator(lambda: iter([([[1.0], [2.0, 3.0]], [[1], [1]])]))
    with pytest.raises((FeedError, ValueError)):
        list(made)


# Inside a program


def inside(inputs: list[Any], generator: Any, **options: Any) -> tuple[Any, Any]:
    made = loader(inputs, iterable=False, **options)
    made.set_batch_generator(generator)
    return made, fluid.layers.scale(inputs[0], 2.0)


def test_a_loader_inside_a_program_is_started_for_each_epoch(inputs: list[Any], exe: fluid.Executor) -> None:
    made, out = inside(inputs, batches())
    for _ in range(2):
        made.start()
        seen = [float(exe.run(fetch_list=[out])[0][0, 0]) for _ in range(3)]
        for _ in range(2):
            with pytest.raises(EOFException):
                exe.run(fetch_list=[out])
        made.reset()
        assert seen == [0, 2, 4]


def test_the_run_raises_an_error_of_the_generator(inputs: list[Any], exe: fluid.Executor) -> None:
    made, out = inside(inputs, failing)
    made.start()
    exe.run(fetch_list=[out])
    with pytest.raises(fluid.core.EnforceNotMet, match="my own error") as caught:
        exe.run(fetch_list=[out])
    assert isinstance(caught.value.__cause__, ValueError)
    made.reset()


def test_a_reset_in_the_middle_of_an_epoch_starts_again(inputs: list[Any], exe: fluid.Executor) -> None:
    made, out = inside(inputs, batches(10**6), capacity=1)
    for _ in range(3):
        made.start()
        assert exe.run(fetch_list=[out])[0][0, 0] == 0
        assert exe.run(fetch_list=[out])[0][0, 0] == 2
        made.reset()


def test_runs_before_the_start_are_refused_and_a_second_start_causes_a_warning(
    inputs: list[Any], exe: fluid.Executor
) -> None:
    made, out = inside(inputs, batches())
    with pytest.raises(NotInitializedError, match=r"start\(\)"):
        exe.run(fetch_list=[out])
    made.start()
    with pytest.warns(UserWarning, match="already started"):
        made.start()
    made.reset()
    made.reset()


def test_a_test_program_reads_from_the_loader(inputs: list[Any], exe: fluid.Executor) -> None:
    made, out = inside(inputs, batches())
    test = fluid.default_main_program().clone(for_test=True)
    made.start()
    assert exe.run(test, fetch_list=[out.name])[0].shape == (2, 3)
    made.reset()


def test_an_exported_model_is_fed_instead_of_reading_from_a_loader(
    inputs: list[Any], exe: fluid.Executor, tmp_path: Any
) -> None:
    made, out = inside(inputs, batches())
    fluid.io.save_inference_model(str(tmp_path), ["x"], [out], exe)
    program, feeds, targets = fluid.io.load_inference_model(str(tmp_path), exe)
    assert "read" not in [op.type for op in program.global_block().ops]
    (value,) = exe.run(program, feed={feeds[0]: np.ones((1, 3), "float32")}, fetch_list=targets)
    assert (value == 2).all()
    assert made.queue is not None


def build_with_loader() -> tuple[Any, Any, Any]:
    """Return program, loader and output of a network built as scripts do for training and for testing."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        inputs = [fluid.data("x", [None, 3]), fluid.data("l", [None, 1], "int64")]
        made = loader(inputs, iterable=False)
        return main, made, fluid.layers.scale(inputs[0], 2.0)


def test_loaders_built_under_different_guards_have_separate_queues(exe: fluid.Executor) -> None:
    (train, train_loader, train_out), (test, test_loader, test_out) = build_with_loader(), build_with_loader()
    train_loader.set_batch_generator(batches(3))
    test_loader.set_batch_generator(lambda: iter([(np.full((1, 3), 7, "float32"), np.ones((1, 1), "int64"))]))
    train_loader.start()
    assert [exe.run(train, fetch_list=[train_out])[0][0, 0] for _ in range(2)] == [0, 2]
    test_loader.start()
    assert exe.run(test, fetch_list=[test_out])[0].tolist() == [[14, 14, 14]]
    assert exe.run(train, fetch_list=[train_out])[0][0, 0] == 4
    for program in (train, test):
        with pytest.raises(EOFException):
            exe.run(program)
    train_loader.reset()
    test_loader.reset()


def test_name_guards_do_not_affect_the_counters_of_loader_names() -> None:
    names = [build_with_loader()[0].global_block().ops[0].input("blocking_queue")[0] for _ in range(2)]
    assert names == ["lod_tensor_blocking_queue_0", "lod_tensor_blocking_queue_1"]  # as in Fluid 1.8.5


def test_a_second_py_reader_of_one_name_is_refused() -> None:
    for name in (None, "train"):
        with fluid.unique_name.guard():
            fluid.layers.py_reader(2, [(-1, 3)], ["float32"], name=name)
        with fluid.unique_name.guard(), pytest.raises(GraphError, match=r"already.*\n.*name=\.\.\."):
            fluid.layers.py_reader(2, [(-1, 3)], ["float32"], name=name)


def test_a_queue_reports_the_number_of_ready_batches(inputs: list[Any], exe: fluid.Executor) -> None:
    made, out = inside(inputs, batches(3), capacity=8)
    assert (made.queue.size(), made.queue.capacity()) == (0, 8)
    made.start()
    wait_for(lambda: made.queue.size() == 3)
    exe.run(fetch_list=[out])
    assert made.queue.size() == 2
    made.reset()
    assert made.queue.size() == 0


def wait_for(condition: Callable[[], bool]) -> None:
    """Return as soon as a condition holds."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_misuse_of_a_loader_raises_an_error(inputs: list[Any]) -> None:
    with pytest.raises(UnsupportedError, match="from_generator"):
        fluid.io.DataLoader([1, 2, 3])
    with pytest.raises(GraphError, match="capacity"):
        fluid.io.DataLoader.from_generator(inputs)
    with pytest.raises(GraphError, match="feed_list"):
        fluid.io.DataLoader.from_generator(capacity=2)
    with pytest.raises(GraphError, match="iterable=True"):
        list(loader(inputs, iterable=False))
    with pytest.raises(GraphError, match="iterable=False"):
        loader(inputs).start()
    with pytest.raises(GraphError, match="no source"):
        list(loader(inputs))
