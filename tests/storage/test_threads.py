"""Work in threads: results in order, the first error, and no thread at all where none can be started."""

from __future__ import annotations

import _thread
import threading
import time

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.storage.threads import map_in_threads, run_in_threads


def test_results_of_tasks_keep_their_order():
    def slow_square(number: int) -> int:
        time.sleep(0.01 * (number == 0))
        return number * number

    assert map_in_threads(slow_square, range(50), threads=4) == [number * number for number in range(50)]
    assert run_in_threads([]) == []


def test_several_tasks_run_at_once():
    barrier = threading.Barrier(3, timeout=60)
    assert len(run_in_threads([barrier.wait] * 3, threads=3)) == 3


def test_the_first_error_is_raised_after_running_tasks_ended():
    ended, failing = [], threading.Event()

    def fail() -> None:
        failing.set()
        raise KeyError("first")

    def work() -> None:
        assert failing.wait(60)
        time.sleep(0.05)
        ended.append(1)

    with pytest.raises(KeyError, match="first"):
        run_in_threads([work, fail, *[work] * 20], threads=2)
    count = len(ended)
    time.sleep(0.1)
    assert len(ended) == count < 20


@pytest.mark.parametrize("how", ["refused", "dies at once"])
def test_without_threads_the_caller_does_the_work(monkeypatch, tmp_path, how):
    def refuse(*arguments: object) -> int:
        if how == "refused":
            raise RuntimeError("can't start new thread")
        return 0  # a thread whose memory could not be mapped, before it ran anything

    program = fluid.Program()
    for name in "abc":
        program.global_block().create_var(name=name, shape=[300_000], dtype="float32", persistable=True)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        for name in "abc":
            fluid.global_scope().var(name).get_tensor().set(np.full(300_000, ord(name), "float32"))
        with monkeypatch.context() as patch:
            patch.setattr(_thread, "start_new_thread", refuse)
            assert run_in_threads([lambda: 1, lambda: 2], threads=2) == [1, 2]
            assert fluid.io.save_persistables(exe, str(tmp_path / "m"), program).written == 3
            fluid.io.load_persistables(exe, str(tmp_path / "m"), program)
        assert fluid.io.verify(tmp_path / "m")
