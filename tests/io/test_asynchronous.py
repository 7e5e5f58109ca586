"""Saves that do not block: the values of the moment, reported failures, and the exit of the process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import row_changes
from paddlelike.errors import SaveError
from paddlelike.foundation.locks import Event
from paddlelike.foundation.threads import Thread
from paddlelike.io import asynchronous
from paddlelike.io.asynchronous import PendingSave
from paddlelike.io.incremental import ledger
from paddlelike.io.report import SaveReport
from paddlelike.io.save import copies
from paddlelike.storage.local import manifest_file, transaction

ROOT = Path(fluid.__file__).parent.parent
NAMES = ["large", "small"]


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor()


@pytest.fixture(autouse=True)
def program() -> Iterator[fluid.Program]:
    """A large and a small variable."""
    ledger.forget()
    asynchronous.discard_pending()
    program = fluid.Program()
    with fluid.scope_guard(fluid.Scope()):
        for name, size in (("large", 300_000), ("small", 4)):
            program.global_block().create_var(name=name, shape=[size], dtype="float32", persistable=True)
            fluid.global_scope().var(name).get_tensor().set(np.zeros(size, "float32"))
        fill(1)
        yield program
    asynchronous.discard_pending()


def fill(number: float, *names: str) -> None:
    """Write into the arrays in place, as updates do."""
    for name in names or NAMES:
        tensor = fluid.global_scope().find_var(name).get_tensor()
        with tensor.writing() as array:
            array[...] = number


def save(exe: fluid.Executor, path: Path, program: fluid.Program, **options: Any) -> PendingSave:
    pending = fluid.io.save_persistables(exe, str(path), program, blocking=False, **options)
    assert isinstance(pending, PendingSave)
    return pending


def loaded(
    exe: fluid.Executor, path: Path, program: fluid.Program, filename: str | None = None
) -> set[float]:
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(exe, str(path), program, filename)
        return {x for n in NAMES for x in np.array(fluid.global_scope().find_var(n).get_tensor()).tolist()}


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Commits wait until this is set."""
    event = threading.Event()
    real = transaction.Transaction.commit

    def commit(self: transaction.Transaction) -> transaction.Committed:
        assert event.wait(30)
        return real(self)

    monkeypatch.setattr(transaction.Transaction, "commit", commit)
    yield event
    event.set()


@pytest.mark.parametrize("filename", [None, "all"])
def test_a_background_save_writes_the_values_of_its_call(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, gate: threading.Event, filename: str | None
) -> None:
    pending = save(exe, tmp_path / "a", program, filename=filename)
    assert not pending.done()
    fill(2)  # training goes on
    gate.set()
    report = pending.wait(30)
    assert pending.done()
    assert pending.report is report
    assert sorted(report.saved) == NAMES
    assert loaded(exe, tmp_path / "a", program, filename) == {1.0}
    assert manifest_file.verify(tmp_path / "a")


class _Donated:
    """An array of a device whose memory a step of training has given to another one, as XLA does."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise RuntimeError("Array has been deleted")


@pytest.mark.parametrize("filename", [None, "all"])
def test_a_background_save_reads_no_variable_after_its_call(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, gate: threading.Event, filename: str | None
) -> None:
    pending = save(exe, tmp_path / "a", program, filename=filename)
    for name in NAMES:
        fluid.global_scope().find_var(name).get_tensor().adopt_from_device(_Donated())
    gate.set()
    assert {name: one.shape for name, one in pending.wait(30).saved.items()} == {
        "large": (300_000,),
        "small": (4,),
    }
    assert loaded(exe, tmp_path / "a", program, filename) == {1.0}


def test_a_load_plan_waits_for_the_save_under_way(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, gate: threading.Event
) -> None:
    (tmp_path / "a.pdparams").write_bytes(b"what a plan would look at where there is no directory a")
    pending = save(exe, tmp_path / "a", program)
    threading.Timer(0.2, gate.set).start()
    assert [row.what for row in fluid.io.plan_load(tmp_path / "a", program).rows] == ["load", "load"]
    assert pending.done()


def test_a_wait_may_end_before_the_save(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, gate: threading.Event
) -> None:
    pending = save(exe, tmp_path / "a", program)
    with pytest.raises(TimeoutError, match="has not ended after"):
        pending.wait(0.01)
    assert "running" in repr(pending)
    gate.set()
    assert pending.wait(30)


def test_values_changed_during_a_save_are_written_by_the_next(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, gate: threading.Event
) -> None:
    first = save(exe, tmp_path / "a", program)
    fill(2, "small")
    gate.set()
    first.wait(30)
    second = save(exe, tmp_path / "a", program).wait(30)
    assert (second.written, second.kept) == (1, 1)
    assert loaded(exe, tmp_path / "a", program) == {1.0, 2.0}


def test_the_next_save_anywhere_waits_for_the_last(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, gate: threading.Event
) -> None:
    first = save(exe, tmp_path / "a", program)
    threading.Timer(0.2, gate.set).start()
    second = fluid.io.save_persistables(exe, str(tmp_path / "b"), program)
    assert first.done()
    assert second.written == 2


def test_a_late_thread_does_not_discard_a_newer_save(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, gate: threading.Event
) -> None:
    """A third save would not wait for the second otherwise, and both would use the same memory."""
    first = save(exe, tmp_path / "a", program)
    waits, goes_on = threading.Event(), threading.Event()

    class LateEvent(threading.Event):
        """The end of a save, of which one thread learns only when it is told to go on."""

        def wait(self, timeout: float | None = None) -> bool:
            if threading.current_thread() is late:
                waits.set()
                assert goes_on.wait(30)
            return super().wait(timeout)

    late = threading.Thread(target=asynchronous.check_pending)
    first._finished = LateEvent()
    late.start()
    assert waits.wait(30)
    gate.set()
    first.wait(30)
    gate.clear()
    second = save(exe, tmp_path / "b", program)
    goes_on.set()
    late.join(30)
    assert not second.done()
    threading.Timer(0.2, gate.set).start()
    asynchronous.check_pending()
    assert second.done()


def test_threads_that_save_at_once_take_turns(exe: fluid.Executor, tmp_path: Path) -> None:
    """Each has variables of its own; the memory for copies is the same."""
    failures: list[BaseException] = []
    programs = [fluid.Program() for _ in range(3)]
    names = [[f"{name}_{number}" for name in NAMES] for number in range(3)]
    for program, mine in zip(programs, names, strict=True):
        for name, size in zip(mine, (300_000, 4), strict=True):
            program.global_block().create_var(name=name, shape=[size], dtype="float32", persistable=True)
            fluid.global_scope().var(name).get_tensor().set(np.zeros(size, "float32"))

    def saves(number: int) -> None:
        try:
            for round_ in range(6):
                fill(10 * number + round_, *names[number])
                save(exe, tmp_path / str(number), programs[number])
                fill(-1, *names[number])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=saves, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    asynchronous.check_pending()
    assert failures == []
    for number, program in enumerate(programs):
        fluid.io.load_persistables(exe, str(tmp_path / str(number)), program, verify=True)
        for name in names[number]:
            found = np.array(fluid.global_scope().find_var(name).get_tensor())
            assert set(found.tolist()) == {10.0 * number + 5}


# Failures


def broken(path: Path) -> None:
    """Make saves into ``path`` fail at the commit: a file is where the directory should be."""
    path.write_text("in the way")


def test_the_handle_raises_the_error_of_the_save(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    broken(tmp_path / "a")
    pending = save(exe, tmp_path / "a", program)
    for _ in range(2):
        with pytest.raises(SaveError, match="is a file"):
            pending.wait(30)
    with pytest.raises(SaveError, match="is a file"):
        _ = pending.report
    assert isinstance(pending.error, SaveError)
    assert "failed" in repr(pending)
    assert save(exe, tmp_path / "b", program).wait(30)  # it was told


def test_the_next_save_raises_an_unreported_failure(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    broken(tmp_path / "a")
    save(exe, tmp_path / "a", program)
    with pytest.raises(SaveError, match=r"(?s)a failed, and this save was not begun.*is a file"):
        fluid.io.save_persistables(exe, str(tmp_path / "b"), program)
    assert not (tmp_path / "b").exists()
    assert fluid.io.save_persistables(exe, str(tmp_path / "b"), program).written == 2


def test_a_failed_save_is_written_completely_by_the_next(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program
) -> None:
    broken(tmp_path / "a")
    with pytest.raises(SaveError):
        save(exe, tmp_path / "a", program).wait(30)
    (tmp_path / "a").unlink()
    assert save(exe, tmp_path / "a", program).wait(30).written == 2


def test_the_handle_raises_errors_of_any_class() -> None:
    def work() -> SaveReport:
        raise MemoryError("no room")

    pending = asynchronous.start_save("x", work)
    with pytest.raises(SaveError, match="MemoryError: no room"):
        asynchronous.check_pending()
    with pytest.raises(MemoryError):
        pending.wait(5)
    asynchronous.check_pending()


@pytest.mark.parametrize(
    "wait",
    [
        lambda save: save.wait(30),
        lambda save: asynchronous.check_pending(),
        lambda save: asynchronous.wait_for_pending(),
        lambda save: asynchronous.start_save("y", lambda: SaveReport("y")).wait(30),
    ],
    ids=["wait", "check", "load", "next save"],
)
def test_waiting_for_a_save_makes_it_continue_at_once(
    gate: threading.Event, wait: Callable[[asynchronous.PendingSave], object]
) -> None:
    def work() -> SaveReport:
        gate.wait()
        return SaveReport("x")

    pending = asynchronous.start_save("x", work, gate.set)
    wait(pending)
    assert gate.is_set()
    assert pending.wait(30).target == "x"


# Interrupts, and processes that are forked


@pytest.mark.parametrize("has_begun", [False, True], ids=["before", "after"])
def test_an_interrupt_during_a_thread_start_leaves_no_forgotten_save(
    exe: fluid.Executor,
    tmp_path: Path,
    program: fluid.Program,
    gate: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    has_begun: bool,
) -> None:
    real = Thread.start

    def start(self: Thread) -> None:
        if has_begun:
            real(self)
            pending = asynchronous._state.last
            assert pending is not None
            while pending._work:  # a thread that runs has not always begun the save
                time.sleep(0.001)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", start)
        with pytest.raises(KeyboardInterrupt):
            save(exe, tmp_path / "a", program)
    threading.Timer(0.2, gate.set).start()
    asynchronous.check_pending()
    assert (tmp_path / "a").exists() == has_begun
    assert gate.is_set() == has_begun  # a save that runs is waited for
    gate.set()
    assert save(exe, tmp_path / "b", program).wait(30).written == 2


def test_an_interrupt_ends_a_wait_and_not_the_save(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, gate: threading.Event
) -> None:
    class Interrupted(Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    pending = save(exe, tmp_path / "a", program)
    finished, pending._finished = pending._finished, Interrupted()
    for wait in (pending.wait, asynchronous.check_pending, asynchronous.wait_for_pending):
        with pytest.raises(KeyboardInterrupt):
            wait()
    pending._finished = finished
    gate.set()
    assert pending.wait(30).written == 2
    asynchronous.check_pending()


def test_a_save_begins_after_the_one_that_nobody_checked_has_ended() -> None:
    gate, order = threading.Event(), []

    def first() -> SaveReport:
        assert gate.wait(30)
        order.append("the first ends")
        raise OSError("of the first")

    def second() -> SaveReport:
        order.append("the second begins")
        raise OSError("of the second")

    asynchronous.start_save("a", first)
    threading.Timer(0.2, gate.set).start()
    asynchronous.start_save("b", second)._finished.wait(30)
    assert order == ["the first ends", "the second begins"]
    for failure in ("of the first", "of the second"):  # each is reported
        with pytest.raises(SaveError, match=failure):
            asynchronous.check_pending()
    asynchronous.check_pending()


def test_without_a_thread_the_save_does_not_wait_for_itself(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(self: Thread) -> None:
        raise RuntimeError("can't start new thread")

    checkpoints = fluid.io.Checkpoints(tmp_path, keep_last=1, blocking=False)
    monkeypatch.setattr(Thread, "start", start)
    for step in (1, 2):  # after each, the earlier ones are listed, which waits for a running save
        fill(step)
        checkpoints.save(exe, program, step)
    assert [one.step for one in checkpoints.list()] == [2]


def test_a_forked_process_can_save_and_waits_for_no_thread_of_its_parent(tmp_path: Path) -> None:
    """The fork comes while one thread holds the lock of the first save ever, and another one saves."""
    done = run(
        tmp_path,
        """
        from paddlelike.io import asynchronous
        from paddlelike.io.report import SaveReport

        def in_child(*steps):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                for step in steps:
                    step()
                os._exit(7)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        def save(path):
            fluid.io.save_persistables(exe, path, main, blocking=False).wait()

        held, gate = threading.Event(), threading.Event()

        def hold():
            with asynchronous.pending_lock().hold():
                held.set()
                gate.wait()

        threading.Thread(target=hold).start()
        held.wait()
        print("child", in_child(lambda: save("b")), flush=True)
        gate.set()
        end = threading.Event()
        pending = asynchronous.start_save("a", lambda: end.wait() and SaveReport("a"))

        def wait():
            try:
                pending.wait()
            except fluid.errors.SaveError as error:
                print(error, flush=True)
            assert pending.done()

        print("child", in_child(wait, lambda: save("c")))
        end.set()
        pending.wait()
        """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("child 7") == 2, done.stdout + done.stderr
    assert "the save into a runs in the process that this one was forked from" in done.stdout
    assert manifest_file.verify(tmp_path / "b")
    assert manifest_file.verify(tmp_path / "c")


# The end of the process

SCRIPT = """
import atexit, os, signal, sys, threading, time
import numpy as np
import paddlelike as fluid

main = fluid.Program()
main.global_block().create_var(name="w", shape=[3_000_000], dtype="float32", persistable=True)
fluid.global_scope().var("w").get_tensor().set(np.full(3_000_000, 5, "float32"))
exe = fluid.Executor()
atexit.register(lambda: print("others were asked too"))
"""


def run(tmp_path: Path, rest: str) -> subprocess.CompletedProcess[str]:
    script = SCRIPT + textwrap.dedent(rest)
    return subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, text=True, capture_output=True, timeout=120,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("", marks=pytest.mark.slow),
        "sys.exit(3)",
        pytest.param("raise KeyError('oops')", marks=pytest.mark.slow),
    ],
)
def test_the_interpreter_ends_after_the_save(tmp_path: Path, end: str) -> None:
    done = run(tmp_path, "fluid.io.save_persistables(exe, 'a', main, blocking=False)\n" + end)
    assert done.returncode == {"": 0, "sys.exit(3)": 3}.get(end, 1)
    assert (tmp_path / "a" / "w").stat().st_size > 12_000_000
    assert manifest_file.verify(tmp_path / "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]
    assert "others were asked too" in done.stdout


def test_an_unreported_failure_is_printed_at_exit(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("in the way")
    done = run(tmp_path, "fluid.io.save_persistables(exe, 'a', main, blocking=False)")
    assert done.returncode == 1
    assert "the save into a failed" in done.stderr
    assert "is a file" in done.stderr
    assert "others were asked too" in done.stdout


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_failure_in_a_process_of_multiprocessing_is_reported(tmp_path: Path, method: str) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        textwrap.dedent(
            """
            import multiprocessing, sys
            import numpy as np
            import paddlelike as fluid

            def save(path):
                program = fluid.Program()
                program.global_block().create_var(name="w", shape=[2], dtype="float32", persistable=True)
                fluid.global_scope().var("w").get_tensor().set(np.ones(2, "float32"))
                fluid.io.save_persistables(fluid.Executor(fluid.CPUPlace()), path, program, blocking=False)

            if __name__ == "__main__":
                save(sys.argv[2] + "/of-the-parent")
                context = multiprocessing.get_context(sys.argv[1])
                for path in ("/good", "/a-file"):
                    child = context.Process(target=save, args=(sys.argv[2] + path,))
                    child.start()
                    child.join()
                    print(child.exitcode)
            """
        )
    )
    (tmp_path / "a-file").write_text("")
    done = subprocess.run(
        [sys.executable, str(script), method, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == ["0", "1"], done.stderr
    assert "the save into" in done.stderr
    assert "is a file" in done.stderr
    assert (tmp_path / "good" / "w").exists()
    assert (tmp_path / "of-the-parent" / "w").exists()
    assert done.returncode == 0


def test_a_reported_failure_is_not_printed_at_exit(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("in the way")
    done = run(
        tmp_path,
        """
        pending = fluid.io.save_persistables(exe, 'a', main, blocking=False)
        try:
            pending.wait()
        except fluid.errors.SaveError:
            print("caught")
        """,
    )
    assert done.returncode == 0, done.stderr
    assert "caught" in done.stdout


def test_a_forked_process_does_not_inherit_pending_saves(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        from paddlelike.storage.local.transaction import Transaction
        real = Transaction.commit
        def slow(self):
            time.sleep(0.5)
            return real(self)
        Transaction.commit = slow
        pending = fluid.io.save_persistables(exe, 'a', main, blocking=False)
        child = os.fork()
        if child == 0:
            Transaction.commit = real
            fluid.io.save_persistables(exe, 'b', main)
            os._exit(7)
        print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
    )
    assert "child 7" in done.stdout, done.stderr
    assert done.returncode == 0
    assert manifest_file.verify(tmp_path / "a")
    assert manifest_file.verify(tmp_path / "b")


def test_a_killed_background_save_leaves_the_old_files(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        fluid.io.save_persistables(exe, 'a', main)
        fluid.global_scope().find_var("w").get_tensor().set(np.full(3_000_000, 6, "float32"))
        from paddlelike.storage.local import generation
        generation.Generation.commit = lambda self, **_: os.kill(os.getpid(), 9)
        fluid.io.save_persistables(exe, 'a', main, blocking=False)
        """,
    )
    assert done.returncode == -9
    check = run(
        tmp_path,
        """
        fluid.io.load_persistables(exe, 'a', main)
        print(set(np.array(fluid.global_scope().find_var("w").get_tensor()).tolist()))
        """,
    )
    assert "{5.0}" in check.stdout, check.stderr


def test_a_background_save_blocks_only_while_values_are_copied(
    exe: fluid.Executor, tmp_path: Path, program: fluid.Program, gate: threading.Event
) -> None:
    begin = time.perf_counter()
    save(exe, tmp_path / "a", program)
    assert time.perf_counter() - begin < 25  # the gate would hold it for 30


@pytest.mark.slow
@pytest.mark.parametrize("rows", [False, True], ids=["", "old rows"])
@pytest.mark.parametrize("held", [0, sys.maxsize], ids=["snapshots", "copies"])
@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_background_saves_do_not_contain_later_training_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, held: int, rows: bool
) -> None:
    """Of 100 steps, or as many as PADDLELIKE_STEPS says."""
    if backend == "jax":
        pytest.importorskip("jax")
    monkeypatch.setattr(copies, "_HELD", held)
    tables = []

    def keep(found: Any, saved: memoryview) -> row_changes.OldRows | None:
        if (old := row_changes.keep_old_rows(found, saved)) is not None:
            tables.append(old._rows.shape)
        return old

    if rows:
        monkeypatch.setattr(row_changes, "LEAST", 64 << 10)
        monkeypatch.setattr(row_changes, "_PIECE", 1000)
        monkeypatch.setattr(copies, "keep_old_rows", keep)
    fluid.set_flags({"FLAGS_backend": backend})
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids, label = fluid.data("ids", [None, 8], "int64"), fluid.data("label", [None, 1])
        words = fluid.embedding(ids, [4_000, 16], is_sparse=True, param_attr="table")
        hidden = fluid.layers.fc(fluid.layers.reduce_mean(words, 1), 200)
        hidden = fluid.layers.fc(hidden, 200)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), label))
        fluid.optimizer.Adam(0.01, lazy_mode=rows).minimize(loss)
    exe, rng = fluid.Executor(), np.random.default_rng(0)
    exe.run(startup)
    names = [v.name for v in main.list_vars() if v.persistable]
    pending, expected, checked = None, {}, 0
    for step in range(int(os.environ.get("PADDLELIKE_STEPS", "100"))):
        feed = {"ids": rng.integers(0, 4_000, (8, 8)), "label": rng.random((8, 1), np.float32)}
        exe.run(main, feed=feed, fetch_list=[loss])
        if pending is None or pending.done() or step % 25 == 24:
            if pending is not None:
                pending.wait()
                with fluid.scope_guard(fluid.Scope()):
                    fluid.io.load_persistables(exe, str(tmp_path / "m"), main)
                    for name, array in expected.items():
                        np.testing.assert_array_equal(fluid.global_scope().find_var(name).get_tensor(), array)
                checked += 1
            values = {name: fluid.global_scope().find_var(name).get_tensor() for name in names}
            expected = {name: np.array(value.borrow()) for name, value in values.items()}  # none is kept
            pending = fluid.io.save_persistables(exe, str(tmp_path / "m"), main, blocking=False)
        elif step % 16 == 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the child does nothing
                child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
    assert pending is not None
    pending.wait()
    assert checked >= 4
    # A table and its moments, of which rows are written, and a dense parameter and its.
    assert sorted(tables[:6]) == ([(200, 200)] * 3 + [(4_000, 16)] * 3 if rows else [])
    assert len(tables) >= (6 * checked if rows else 0)
