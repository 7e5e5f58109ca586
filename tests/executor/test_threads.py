"""Threads of runs: kernels take what the flags say, BLAS one, and afterwards what it took before."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import threadpoolctl

import paddlelike as fluid
from paddlelike.executor import threads
from paddlelike.framework import flags
from paddlelike.ops.kernels.threads import count_threads


@pytest.fixture(autouse=True)
def no_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "_flags", {})
    for name in ("FLAGS_paddle_num_threads", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def five_outside() -> Iterator[None]:
    """A pool of 5 threads outside of runs."""
    threads._find_pools.cache_clear()  # other tests load libraries that bring a BLAS of their own
    pools = [pool for pool in threadpoolctl.ThreadpoolController().lib_controllers if pool.user_api == "blas"]
    before = [pool.get_num_threads() for pool in pools]
    for pool in pools:
        threads._bind_pool(pool).set_count(5)
    yield
    after = [pool.get_num_threads() for pool in pools]
    for pool, count in zip(pools, before, strict=True):
        threads._bind_pool(pool).set_count(count)
    assert set(after) <= {5}


def count_blas() -> set[int]:
    return {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"}


def program_that(call: Any) -> tuple[Any, Any]:
    """Return a program that calls a function, and a variable to fetch."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.layers.fill_constant([2, 2], "float32", 1.0)
        out = main.current_block().create_var(name="out", shape=[2, 2], dtype="float32")
        fluid.layers.py_func(call, x, out)
    return main, out


def threads_of_a_run() -> set[int]:
    seen: list[set[int]] = []

    def call(x: Any) -> Any:
        seen.append(count_blas())
        return np.array(x)

    main, out = program_that(call)
    fluid.Executor(fluid.CPUPlace()).run(main, fetch_list=[out])
    return seen[0]


def test_one_thread_by_default() -> None:
    assert threads_of_a_run() == {1}


def test_blas_uses_one_thread_when_more_are_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads_of_a_run() == {1}


def test_the_flag_has_precedence_over_omp_num_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    assert count_threads() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert count_threads() == 2
    monkeypatch.setenv("FLAGS_paddle_num_threads", "3")
    assert count_threads() == 3
    fluid.set_flags({"FLAGS_paddle_num_threads": 4})
    assert count_threads() == 4


@pytest.mark.parametrize("text", ["", "all", "-1", "0"])
def test_an_omp_num_threads_that_is_not_a_number_counts_as_one(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert count_threads() == 1


def test_the_thread_limit_is_restored_after_a_failed_run() -> None:
    def fail(x: Any) -> Any:
        raise ValueError("no")

    main, out = program_that(fail)
    with pytest.raises(fluid.core.EnforceNotMet, match="no"):
        fluid.Executor(fluid.CPUPlace()).run(main, fetch_list=[out])
    assert count_blas() == {5}


def test_pools_of_one_thread_are_limited_again_once_they_have_more() -> None:
    seen = []
    for count in (1, 5):
        for pool in threads._find_pools():
            pool.set_count(count)
        seen.append((threads_of_a_run(), count_blas()))
    assert seen == [({1}, {1}), ({1}, {5})]


def test_runs_in_threads_keep_the_limit_until_the_last_one_ends() -> None:
    first_inside, second_done = threading.Event(), threading.Event()
    seen: list[set[int]] = []

    def wait(x: Any) -> Any:
        first_inside.set()
        assert second_done.wait(30)
        seen.append(count_blas())
        return np.array(x)

    main, out = program_that(wait)
    exe = fluid.Executor(fluid.CPUPlace())
    thread = threading.Thread(
        target=exe.run, args=(main,), kwargs={"fetch_list": [out], "scope": fluid.Scope()}
    )
    thread.start()
    assert first_inside.wait(30)
    assert threads_of_a_run() == {1}
    second_done.set()
    thread.join(30)
    assert seen == [{1}]


def test_a_run_that_begins_while_another_looks_at_the_pools_does_not_lift_its_limit() -> None:
    limit, code = threads.ThreadLimit(), threads.ThreadLimit.run.__code__
    inside, end = threading.Event(), threading.Event()
    other = threading.Thread(target=limit.run, args=(lambda: (inside.set(), end.wait(30)),))

    def begin_other(frame: Any, event: str, _: Any) -> Any:
        """Begin the other run at the line ``wanted`` of the traced one."""
        nonlocal lines
        if frame.f_code is code and event == "line":
            lines += 1
            if lines == wanted:
                other.start()
                assert inside.wait(30)
        return begin_other if frame.f_code is code else None

    def work() -> set[int]:
        sys.settrace(before)
        end.set()
        if other.ident is not None:
            other.join(30)
        return count_blas()

    before, seen = sys.gettrace(), []
    for wanted in range(1, 100):  # noqa: B007  (begin_other reads it)
        lines = 0
        sys.settrace(begin_other)
        seen.append(limit.run(work))
        if other.ident is None:
            break
        other = threading.Thread(target=limit.run, args=(lambda: (inside.set(), end.wait(30)),))
        inside.clear()
        end.clear()
    assert len(seen) > 8
    assert seen == [{1}] * len(seen)


TRAINS = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
import in_fluid, paddlelike
for net in ("lenet", "resnet20", "lstm", "encoder"):
    step = in_fluid.prepare(net, paddlelike)
    print(net, hashlib.md5(b"".join(step().tobytes() for _ in range(3))).hexdigest())
"""


@pytest.mark.slow
def test_losses_of_nets_have_the_same_bits_on_any_number_of_threads() -> None:
    nets = Path(__file__).parents[1] / "benchmarks" / "nets"
    seen = set()
    for count in ("1", "2", "4"):
        environment = {**os.environ, "OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count}
        command = [sys.executable, "-W", "ignore", "-c", TRAINS, str(nets)]
        seen.add(
            subprocess.run(command, env=environment, check=True, capture_output=True, timeout=300).stdout
        )
    (only,) = seen
    assert len(only.splitlines()) == 4
