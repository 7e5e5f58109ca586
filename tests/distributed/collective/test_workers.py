"""Workers of a job as one of them sees the others, with exchanges that this process answers itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import SelectedRows
from paddlelike.distributed.collective import workers
from paddlelike.distributed.collective.jax_runtime import Exchanges
from paddlelike.distributed.collective.job import make_job
from paddlelike.distributed.collective.transpiler import GradAllReduce
from paddlelike.distributed.collective.watch import Watch
from paddlelike.errors import GraphError

JOB = make_job(["127.0.0.1:6170", "127.0.0.1:6171", "127.0.0.1:6172"], 1)


class Notes:
    """The texts that workers share, in this process."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def write_first(self, name: str, text: str, seconds: float) -> str:
        return self.texts.setdefault(name, text)

    def read(self, folder: str) -> dict[int, str]:
        return {int(n.partition("/")[2]): t for n, t in self.texts.items() if n.startswith(folder + "/")}


class Member:
    """Worker 1, whose exchanges are answered with those of ``others``."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.sums: list[Any] = []
        self._job, self._answer = JOB, answer

    def sum(self, value: Any) -> Any:
        self.sums.append(value)
        return self._answer(value)

    def submit(self, function: Callable[[Any], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(self))
        return future

    def wait(self, future: Future[Any]) -> Any:
        return future.result()


def join(answer: Callable[[Any], Any]) -> tuple[workers.JobWorkers, Member]:
    found, member = workers.JobWorkers(), Member(answer)
    found._job, found._member = JOB, member  # type: ignore[assignment]
    return found, member


@pytest.mark.obeys("all workers run the same programs in the same order")
def test_a_worker_that_calls_another_operation_fails_with_the_call_of_the_others() -> None:
    """Proves W1."""
    notes = Notes()

    def compare(rank: int, value: Any) -> None:
        exchanges = Exchanges.__new__(Exchanges)  # without JAX
        exchanges._job = SimpleNamespace(rank=rank, name=lambda one: f"worker {one}")  # type: ignore[assignment]
        exchanges._notes, exchanges._known = notes, {}  # type: ignore[assignment]
        exchanges._compare("sum", value)

    compare(0, np.zeros((2, 3), np.float32))
    compare(1, np.ones((2, 3), np.float32))
    for other in (np.zeros((3, 2), np.float32), np.zeros((2, 3), np.float64)):
        with pytest.raises(
            GraphError, match=r"worker 2 .* where worker 0 exchanges a sum of float32 \[2, 3\]"
        ) as info:
            compare(2, other)
        assert info.value.hint == "all workers run the same programs in the same order"
    compare(2, np.zeros((2, 3), np.float32))


def test_a_silent_worker_and_one_that_ended_early_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves W2."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    notes = Notes()
    notes.texts |= {f"pulse/{rank}": "1 5" for rank in range(3)}
    watch = Watch(notes, JOB, 10.0)  # type: ignore[arg-type]
    assert watch.find_lost() is None
    now[0] = 109.0
    notes.texts["pulse/0"] = "2 6"
    assert watch.find_lost() is None
    now[0] = 110.5
    assert watch.find_lost() == "worker 2 (127.0.0.1:6172), which gives no sign of life"
    notes.texts["left/0"] = "at its end"
    assert (watch.find_lost() or "").startswith("worker 0 (127.0.0.1:6170), which ended before the others")
    notes.texts |= {"pulse/2": "2 5", "left/0": "after a fault"}  # which is a consequence, not the cause
    assert watch.find_lost() is None
    assert watch.find_behind(6) == "worker 2 (127.0.0.1:6172), which does not arrive"


def list_sums(ops: Any) -> list[bool]:
    return [workers._has_sync_before_use(op) for op in ops if op.type == "c_allreduce_sum"]


def test_sums_are_delayed_only_if_nothing_reads_them_before_the_sync() -> None:
    """Proves W3."""
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 2))
    fluid.optimizer.SGD(0.1).minimize(loss)
    block = fluid.default_main_program().global_block()
    GradAllReduce(1).transpile(None, None, 0, "127.0.0.1:6170,127.0.0.1:6171", "127.0.0.1:6170")
    assert list_sums(block.ops) == [True, True]
    (name,) = next(op for op in block.ops if op.type == "c_allreduce_sum").output("Out")
    at = next(i for i, op in enumerate(block.ops) if op.type == "c_sync_comm_stream")
    seen = block.create_var(name="seen", shape=block.var(name).shape, dtype="float32")
    block._insert_op(at, "scale", {"X": block.var(name)}, {"Out": seen}, {"scale": 2.0})
    assert list_sums(block.ops) == [False, True]


def test_the_grouping_of_sums_depends_only_on_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves W3."""
    found, member = join(lambda value: 3 * value)
    parts = [np.full(shape, at + 1, np.float32) for at, shape in enumerate([(2, 3), (4,), (), (5,)])]
    monkeypatch.setattr(workers, "_BUCKET", 40)
    results = [found._stage(part) for part in parts]
    assert [one.size for one in member.sums] == [10]  # the first two fill the bucket, before any wait
    found.wait()
    assert [one.size for one in member.sums] == [10, 6]
    for part, result in zip(parts, results, strict=True):
        np.testing.assert_array_equal(result, 3 * part)
    found.wait()
    assert len(member.sums) == 2


def test_a_scope_begins_with_the_values_of_worker_0() -> None:
    """Proves W4."""
    program, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(program, startup):
        fluid.layers.fc(fluid.data("x", [None, 3]), 2)
    fluid.Executor().run(startup, scope=scope)
    theirs = np.arange(8, dtype=np.float32)  # fc_0.b_0, then fc_0.w_0
    found, member = join(lambda value: theirs.view(np.uint32))
    found.share(scope, program, program)
    (sent,) = member.sums
    assert not sent.any()  # what worker 1 has does not count
    np.testing.assert_array_equal(np.array(scope.find_var("fc_0.b_0").get_tensor()), [0, 1])
    np.testing.assert_array_equal(np.array(scope.find_var("fc_0.w_0").get_tensor()), theirs[2:].reshape(3, 2))
    found.share(scope, program, program)
    assert len(member.sums) == 1  # once for each program and scope


def test_sparse_rows_need_one_exchange_once_their_capacity_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves W3: the room follows from what all workers have sent."""
    found, member = join(lambda value: value)
    counts = {0: [5, 5, 40, 2, 2], 1: [3, 5, 2, 2, 3], 2: [0, 5, 9, 1, 1]}
    others = {rank: rows_of(rank, counts[rank]) for rank in counts}
    step, exchanges = 0, []

    def gather(value: Any) -> Any:
        width = 2 * 8
        room = (len(value) - 8) // (8 + width)
        lines = []
        for rank in range(3):
            rows, values = others[rank][step]
            parts = [np.array([len(rows)]), rows, values]
            packed = b"".join(one.tobytes() for one in (parts if len(rows) <= room else parts[:1]))
            lines.append(np.frombuffer(packed.ljust(len(value), b"\0"), np.uint8))
        np.testing.assert_array_equal(lines[1], value)  # this worker's own
        exchanges.append(room)
        return np.concatenate(lines)

    monkeypatch.setattr(Exchanges, "gather", lambda self, value: gather(value))
    for step in range(5):
        ctx = SimpleNamespace(op=SimpleNamespace(input=lambda slot: ["table@GRAD"], type="c_allreduce_sum"))
        rows, values = others[1][step]
        result = found._add_up_rows(ctx, SelectedRows(rows, 100, values), "sum")  # type: ignore[arg-type]
        np.testing.assert_array_equal(
            result.row_array, np.concatenate([others[r][step][0] for r in range(3)])
        )
        np.testing.assert_array_equal(result.array, np.concatenate([others[r][step][1] for r in range(3)]))
    # Grown at once for all, by an eighth at most; and smaller when a quarter is enough.
    assert exchanges == [0, 5, 5, 5, 40, 40, 2, 3]
    assert not member.sums


def rows_of(rank: int, counts: list[int]) -> list[tuple[Any, Any]]:
    random = np.random.default_rng(rank)
    return [(random.integers(0, 100, one), random.random((one, 2))) for one in counts]
