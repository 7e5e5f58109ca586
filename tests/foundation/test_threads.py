"""Threads that cannot be started, or die before they begin, keep nobody waiting."""

from __future__ import annotations

import _thread
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paddlelike.foundation import threads
from paddlelike.foundation.threads import Pool, Task, Thread
from tests.interrupts.interrupting import interrupt, list_operations

pytestmark = pytest.mark.usefixtures("small_heap")


def refuse(*_: Any) -> int:
    raise RuntimeError("can't start new thread")


def run_out_of_memory(*_: Any) -> int:
    raise MemoryError


def die(*_: Any) -> int:
    """Start a thread that does nothing, as one without memory for its first call."""
    return 1


def test_a_thread_does_its_work_and_wait_returns_after_it() -> None:
    may_end, idents = threading.Event(), []

    def work() -> None:
        assert may_end.wait(30)
        idents.append((threading.get_ident(), threading.current_thread().name, thread.is_current()))

    thread = Thread(work, "beside")
    assert thread.wait()  # it was not started
    thread.start()
    assert thread.is_running()
    assert not thread.is_current()
    assert "beside" in [one.name for one in threading.enumerate()]
    assert not thread.wait(0.001)
    may_end.set()
    assert thread.wait(30)
    ((ident, name, is_current),) = idents
    assert ident != threading.get_ident()
    assert (name, is_current) == ("beside", True)
    assert not thread.is_running()


@pytest.mark.parametrize("start", [refuse, run_out_of_memory])
def test_a_thread_that_cannot_start_raises_an_error_and_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, start: Callable[..., int]
) -> None:
    monkeypatch.setattr(_thread, "start_new_thread", start)
    thread = Thread(lambda: None, "none")
    with pytest.raises(RuntimeError, match="no thread can be started for none"):
        thread.start()
    assert thread.wait()


def test_a_waiting_thread_does_the_work_of_a_dead_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_thread, "start_new_thread", die)
    monkeypatch.setattr(threads, "_PATIENCE", 0.01)
    done = []
    thread = Thread(lambda: done.append(threading.get_ident()), "dead")
    thread.start()
    assert not thread.wait(0.0)
    assert done == []
    assert thread.wait()
    assert done == [threading.get_ident()]


def test_the_last_thread_that_the_system_allows_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", refuse)
    done = threading.Lock()
    done.acquire()
    thread = Thread(done.release, "only")
    thread.start()
    assert done.acquire(timeout=30)
    assert thread.wait(30)


def test_cancelled_work_is_never_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_thread, "start_new_thread", die)
    monkeypatch.setattr(threads, "_PATIENCE", 0.01)
    done: list[int] = []
    thread = Thread(lambda: done.append(1), "cancelled")
    thread.start()
    assert thread.cancel()
    assert thread.wait()
    assert done == []
    assert not thread.cancel()


@pytest.mark.parametrize("daemon", [True, False])
def test_an_interrupted_start_does_the_work_once_or_not_at_all(
    daemon: bool,
) -> None:
    done: list[int] = []

    def start() -> None:
        thread = Thread(lambda: done.append(1), "interrupted", daemon=daemon)
        found.append(thread)
        thread.start()

    found: list[Thread] = []
    for at, times in list_operations(start).items():
        done.clear(), found.clear()
        interrupt(start, at, times)
        if found:
            found[0].cancel()
            assert found[0].wait(30), at
        assert len(done) <= 1
    assert threading.main_thread().is_alive()


def test_the_threads_of_a_pool_end_wherever_it_is_interrupted() -> None:
    def close() -> None:
        pool = Pool(3, "interrupted")
        for _ in range(3):
            pool.submit(int)
        found.append(pool)
        pool.close()

    found: list[Pool] = []
    operations = list_operations(close)
    places = [at for at in operations if at[0].co_filename == threads.__file__]
    assert len(places) > 100
    for at in places:
        interrupt(close, at, operations[at])
        started = [thread for pool in found for thread in pool._threads]
        found.clear()
        gc.collect()  # the pool of an interrupted close ends its threads when it is deleted
        assert all(thread.wait(30) for thread in started), at


@pytest.mark.parametrize("start", [None, refuse])
def test_a_pool_makes_calls_even_without_threads(
    monkeypatch: pytest.MonkeyPatch, start: Callable[..., int] | None
) -> None:
    if start is not None:
        monkeypatch.setattr(_thread, "start_new_thread", start)
    with Pool(2, "calls") as pool:
        assert pool.map(abs, range(-5, 0)) == [5, 4, 3, 2, 1]
        failing = pool.submit(divmod, 1, 0)
        with pytest.raises(ZeroDivisionError):
            failing.result()
        with pytest.raises(ZeroDivisionError):
            pool.map(lambda x: 1 // x, [1, 0])
    assert "calls" not in [one.name for one in threading.enumerate() if one.is_alive()] or start is None


def test_the_threads_of_a_pool_end_with_it() -> None:
    pool = Pool(3, "ending")
    assert pool.map(abs, [-1, -2, -3]) == [1, 2, 3]
    started = [one for one in threading.enumerate() if one.name == "ending"]
    assert started
    del pool
    for one in started:
        one.join(30)
        assert not one.is_alive()


def test_a_call_is_made_once_or_cancelled() -> None:
    task = Task(lambda: 1)
    with pytest.raises(TimeoutError):
        task.result(timeout=0.0)
    task.run()
    task.run()
    assert task.result() == 1
    assert task.cancel()
    other: Task[int] = Task(lambda: 2)
    assert other.cancel()
    other.run()
    assert other._result == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_imports_the_module_that_a_thread_imported_at_the_fork(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import begun, time; begun.set(); time.sleep(0.5); value = 7")
    (tmp_path / "begun.py").write_text("import threading; event = threading.Event(); set = event.set")
    script = """
        import os, signal
        import begun
        from paddlelike.foundation.threads import Thread

        thread = Thread(lambda: __import__("slow"), "imports")
        thread.start()
        begun.event.wait()
        child = os.fork()
        if not child:
            signal.alarm(30)  # ends a child that waits forever
            import slow
            os._exit(slow.value)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(tmp_path)])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == ["7"], done.stderr


def test_forks_wait_only_once_for_an_import_that_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "import_that_waits.py").write_text("from two_events import *; begun.set(); ends.wait(60)")
    monkeypatch.syspath_prepend(tmp_path)
    begun, ends = threading.Event(), threading.Event()
    monkeypatch.setitem(sys.modules, "two_events", SimpleNamespace(begun=begun, ends=ends))  # type: ignore[arg-type]
    sleeps: list[float] = []
    monkeypatch.setattr(threads, "_LONGEST_IMPORT", 0.01)
    monkeypatch.setattr(threads, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleeps.append))
    importing = threading.Thread(target=lambda: __import__("import_that_waits"))
    importing.start()
    try:
        assert begun.wait(60)
        threads._wait_for_imports()
        first = len(sleeps)
        threads._wait_for_imports()
    finally:
        ends.set()
        importing.join()
        sys.modules.pop("import_that_waits", None)
    assert first > 0
    assert len(sleeps) == first
