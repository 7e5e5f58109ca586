"""Locks, conditions and events that an interrupt at any operation leaves as they were."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paddlelike.foundation.locks import (
    Condition,
    Event,
    Lock,
    RLock,
    close_at_end,
    close_files,
    make_keys,
    open_file,
)
from tests.interrupts.interrupting import interrupt, list_operations

KINDS = [Lock, RLock, Condition]


def is_free(lock: Any) -> bool:
    """Return whether another thread can take the lock."""
    raw = lock.lock._lock if isinstance(lock, Condition) else lock._lock
    return not raw.locked()


def hold(lock: Any) -> None:
    with lock.hold():
        [1].count(1)


def fail_inside(lock: Any) -> None:
    with lock.hold():
        raise ValueError


def return_inside(lock: Any) -> int:
    for _ in range(3):
        with lock.hold():
            return 1
    return 0


def hold_in_a_generator(lock: Any) -> list[int]:
    def count() -> Any:
        for i in range(2):
            hold(lock)
            yield i

    return list(count())


def take_twice(lock: Any) -> None:
    with lock.hold(), lock.hold():
        pass


def hold_for_a_time(lock: Any) -> None:
    with lock.hold_within(5.0):
        pass


CALLS = [hold, fail_inside, return_inside, hold_in_a_generator]


@pytest.mark.parametrize("is_kept", [False, True], ids=["dropped", "kept"])
@pytest.mark.parametrize(
    ("kind", "call"),
    [(kind, call) for kind in KINDS for call in CALLS] + [(RLock, take_twice), (Lock, hold_for_a_time)],
)
def test_an_interrupt_at_any_operation_leaves_the_lock_free(
    kind: Any, call: Callable[[Any], object], is_kept: bool
) -> None:
    kept: list[BaseException | None] = []
    lock = kind()
    # Everything that these functions do, also what Python looks for no signals after.
    operations = list_operations(lambda: _call(call, lock), also=(__file__,))
    assert len(operations) > 8
    for at, times in operations.items():
        for turn in {1, times}:
            lock = kind()
            error = interrupt(lambda lock=lock: _call(call, lock), at, turn, also=(__file__,))  # type: ignore[misc]
            if is_kept:
                kept.append(error)  # with its frames, as an interactive session keeps the last one
            assert is_free(lock), at
            hold(lock)


def _call(call: Callable[[Any], object], lock: Any) -> None:
    if call is fail_inside:
        with pytest.raises(ValueError):  # noqa: PT011
            call(lock)
    else:
        call(lock)


@pytest.mark.parametrize("kind", KINDS)
def test_one_thread_at_a_time_holds_a_lock(kind: Any) -> None:
    lock, inside, most, counted = kind(), [0], [0], [0]

    def work() -> None:
        for _ in range(300):
            with lock.hold():
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                before = counted[0]
                time.sleep(0)
                counted[0] = before + 1
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most[0], counted[0]) == (1, 1200)


def test_waiting_too_long_for_a_lock_raises_a_timeout() -> None:
    lock = Lock()
    with lock.hold(), pytest.raises(TimeoutError, match="for more than"):
        lock.hold_within(0.01)
    with lock.hold_within(0.01):
        assert lock.is_held()


def test_a_lock_is_released_when_another_thread_ends_its_key() -> None:
    """As a tool does that lists all objects, and drops the list after the lock was to be given back."""
    lock, listed = RLock(), []
    is_listed, may_end = threading.Event(), threading.Event()

    def list_all() -> None:
        listed.append(gc.get_objects())
        is_listed.set()
        may_end.wait(30)
        listed.clear()

    thread = threading.Thread(target=list_all)
    with lock.hold():
        thread.start()
        assert is_listed.wait(30)
    may_end.set()
    thread.join()
    assert is_free(lock)


def test_a_fork_finds_the_lock_free() -> None:
    lock = RLock()
    lock.hold_in_forks()
    may_end, is_held = threading.Event(), threading.Event()

    def work() -> None:
        with lock.hold():
            is_held.set()
            may_end.wait(0.2)

    thread = threading.Thread(target=work)
    thread.start()
    is_held.wait()
    child = os.fork()  # waits for the thread
    if child == 0:
        os._exit(7 if is_free(lock) else 1)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert is_free(lock)


def test_threads_that_wait_for_a_condition_are_woken() -> None:
    changed, ready, woken = Condition(), [], []

    def wait(number: int) -> None:
        with changed.hold():
            assert changed.wait_for(lambda: ready, 30)
            woken.append(number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    with changed.hold():
        ready.append(True)
        changed.notify_all()
    for thread in threads:
        thread.join()
    assert sorted(woken) == [0, 1, 2]
    with changed.hold():
        assert not changed.wait_for(lambda: False, 0.01)


def test_an_interrupted_wait_holds_the_lock_until_it_leaves() -> None:
    changed = Condition()

    def wait() -> None:
        with changed.hold():
            changed.wait(0.0)

    for at, times in list_operations(wait).items():
        interrupt(wait, at, times)
        assert is_free(changed), at
        with changed.hold():
            changed.notify_all()
        assert changed._doors == []


def test_an_event_wakes_all_waiting_threads_even_if_one_is_interrupted() -> None:
    event = Event()
    assert not event.wait(0.0)
    for call in (lambda: event.wait(0.001), event.set):
        for at, times in list_operations(call).items():
            event.clear()
            interrupt(call, at, times)
    event.clear()
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(event.wait(30)))
    thread.start()
    event.set()
    thread.join()
    assert seen == [True]
    assert event.is_set()


def test_lock_keys_count_begun_operations_exactly() -> None:
    running: list[bool] = []
    begin = make_keys(running.append, running.pop)

    def work() -> None:
        with begin():
            [1].count(1)

    for at, times in list_operations(work, also=(__file__,)).items():
        interrupt(work, at, times, also=(__file__,))
        assert running == []


def test_a_file_that_is_opened_is_closed_once(tmp_path: Path) -> None:
    files: list[int] = []
    open_file(files, str(tmp_path / "a"), os.O_RDWR | os.O_CREAT)
    (number,) = files
    os.fstat(number)
    close_files(files)
    assert files == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
    close_files(files)
    with pytest.raises(FileNotFoundError):
        open_file(files, str(tmp_path / "no" / "b"), os.O_RDONLY)
    assert files == []


def test_a_file_is_closed_when_its_key_is_deleted(tmp_path: Path) -> None:
    for is_open in (True, False):
        files: list[int] = []
        key = close_at_end(files)
        open_file(files, str(tmp_path), os.O_RDONLY)
        (number,) = files
        if not is_open:
            close_files(files)
        del key
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(number)
