"""Who has the lock of a directory next: threads in the order in which they asked, processes in turns."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paddlelike.storage.local.filesystem import lock as lock_module
from paddlelike.storage.local.filesystem.lock import Lock
from paddlelike.storage.local.filesystem.lock_file import AWAITED, append


@pytest.fixture(autouse=True, params=["flock", "no flock"])
def locking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    if request.param == "no flock":
        monkeypatch.setattr(lock_module.fcntl, "flock", refuse)


def until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.001)


def test_threads_get_the_lock_in_order_of_request(tmp_path: Path) -> None:
    path, order = str(tmp_path / "entry" / "lock"), list[int]()

    def take(number: int) -> None:
        with Lock(path, "it", wait=60):
            order.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(12)]
    with Lock(path, "it"):
        for count, thread in enumerate(threads, 1):
            thread.start()
            until(lambda count=count: len(lock_module._waiting) == count)  # type: ignore[misc]
    for thread in threads:
        thread.join()
    assert order == list(range(12))


def test_a_thread_that_gives_up_leaves_the_queue(tmp_path: Path) -> None:
    path = str(tmp_path / "entry" / "lock")
    with Lock(path, "it"):
        with pytest.raises(lock_module.SaveError, match="another thread of this process"), Lock(path, "it"):
            pass
        assert lock_module._waiting == []
    with Lock(path, "it"):
        assert Path(path).exists()


def test_a_process_yields_to_another_that_waited_during_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, now = str(tmp_path / "entry" / "lock"), [100.0]
    monkeypatch.setattr(lock_module.time, "monotonic", lambda: now[0])
    lock = Lock(path, "it", wait=1)
    with lock:
        append(path, AWAITED)  # as another process does
    assert lock.is_next()  # its turn is not over
    with lock:
        append(path, AWAITED)
        now[0] += lock_module._TURN
    assert not lock.is_next()
    with Lock(path, "it", wait=0):  # refused for a holder alone
        append(path, AWAITED)
    assert not lock.is_next()
    now[0] += lock_module._TURN  # nobody came
    assert lock.is_next()
    with lock:
        now[0] += lock_module._TURN
    assert lock.is_next()  # nobody waits
    assert lock_module._turns == {}


def test_consecutive_threads_do_not_keep_other_processes_waiting(tmp_path: Path) -> None:
    path, is_over = str(tmp_path / "entry" / "lock"), threading.Event()

    def take() -> None:
        while not is_over.is_set():
            with Lock(path, "it", wait=None):
                time.sleep(0.002)

    threads = [threading.Thread(target=take) for _ in range(3)]
    process = os.fork()
    if not process:
        try:
            for _ in range(5):
                with Lock(path, "it", wait=30):
                    pass
            os._exit(0)
        finally:
            os._exit(1)
    for thread in threads:
        thread.start()
    try:
        assert os.waitpid(process, 0)[1] == 0
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("locking", ["flock"], indirect=True)
def test_a_lock_file_removed_between_its_opening_and_its_look_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, opened = tmp_path / "entry" / "lock", []
    real = lock_module.open_file

    def open_and_lose(files: list[int], *arguments: Any, **how: Any) -> None:
        real(files, *arguments, **how)
        opened.append(arguments)
        if len(opened) == 1:
            path.unlink()  # as the last holder does

    monkeypatch.setattr(lock_module, "open_file", open_and_lose)
    with Lock(str(path), "it"):
        assert path.exists()
    assert list(tmp_path.iterdir()) == []
