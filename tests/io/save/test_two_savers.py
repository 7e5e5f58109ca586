"""Several processes that save into one directory, and processes that fork or end while they save."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError, SaveError
from paddlelike.formats.paddle import lod_tensor
from paddlelike.storage.local.files import open_file
from paddlelike.storage.local.filesystem.lock import Lock

ROOT = Path(fluid.__file__).parent.parent

SAVER = """
    import sys, time
    import numpy as np
    import paddlelike as fluid
    from paddlelike.errors import SaveError

    path, number, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    program = fluid.Program()
    for name in ("a", "b", "c"):
        program.global_block().create_var(name=name, shape=[40_000], dtype="float32", persistable=True)
    exe = fluid.Executor(fluid.CPUPlace())
    saved = refused = 0
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.monotonic() + seconds
    while time.monotonic() < end or not saved:
        for name in ("a", "b", "c"):
            fluid.global_scope().var(name).get_tensor().set(np.full(40_000, number + saved, "float32"))
        try:
            fluid.io.save_persistables(exe, path, program)
            saved += 1
        except SaveError as error:
            assert "is being saved by" in str(error), error
            assert "nothing was changed" in str(error)
            refused += 1
    print(saved, refused, flush=True)
"""


def python(code: str, *arguments: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        cwd=ROOT,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "always::UserWarning",
            **options.pop("env", {}),
        },  # type: ignore[dict-item]
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str], says: str = "") -> tuple[str, str]:
    try:
        return process.communicate(says, timeout=120)
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_concurrent_saves_of_two_processes_never_mix(tmp_path: Path) -> None:
    """Whoever reads meanwhile finds one save, whole; who comes second is told."""
    path = tmp_path / "m"
    savers = [python(SAVER, str(path), number, "2") for number in ("1000", "2000000")]
    try:
        for saver in savers:
            assert saver.stdout is not None
            assert saver.stdout.readline() == "ready\n"
        for saver in savers:
            assert saver.stdin is not None
            saver.stdin.write("go\n")
            saver.stdin.flush()
        program = fluid.Program()
        for name in "abc":
            program.global_block().create_var(name=name, shape=[40_000], dtype="float32", persistable=True)
        exe = fluid.Executor()
        seen, refusals = set(), []
        while any(saver.poll() is None for saver in savers):
            with fluid.scope_guard(fluid.Scope()):
                try:
                    fluid.io.load_persistables(exe, str(path), program)
                except LoadError as error:
                    refusals.append(str(error))
                    continue
                values = [np.array(fluid.global_scope().find_var(name).get_tensor()) for name in "abc"]
            found = {float(value) for array in values for value in (array.min(), array.max())}
            assert len(found) == 1, "a mix of saves"
            seen |= found
    finally:
        results = [ended(saver) for saver in savers]
    assert all(len(out.split()) == 2 for out, _ in results), results
    counts = [tuple(map(int, out.split())) for out, _ in results]
    assert all(saved > 0 for saved, _ in counts), results
    assert seen
    assert all("does not exist" in said or "saved again" in said for said in refusals), refusals
    last = {open_number(path, name) for name in "abc"}
    assert last in ({999.0 + counts[0][0]}, {1999999.0 + counts[1][0]})
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["m"]
    assert fluid.io.verify(path)


def open_number(directory: Path, name: str) -> float:
    with open_file(directory, name) as file:
        return float(np.array(lod_tensor.read(file))[0])


def test_a_fork_does_not_keep_the_lock_of_a_parent_that_was_killed(tmp_path: Path) -> None:
    """As the workers of a data reader do, which were forked while a save was under way."""
    code = """
        import os, signal, sys
        from paddlelike.storage.local.filesystem.lock import Lock

        lock = Lock(sys.argv[1], "the model")
        lock.__enter__()
        child = os.fork()
        if child == 0:
            print(os.getpid(), flush=True)
            os.close(1)
            os.close(2)
            signal.pause()
        sys.stdin.readline()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    parent = python(code, str(tmp_path / "lock"))
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        with pytest.raises(SaveError, match=f"process {parent.pid}"), Lock(str(tmp_path / "lock"), "x"):
            pass
        ended(parent, "\n")
        with Lock(str(tmp_path / "lock"), "x", wait=60):  # though the child lives
            os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)
    assert not (tmp_path / "lock").exists()


def test_a_fork_inside_a_save_leaves_the_lock_to_its_parent(tmp_path: Path) -> None:
    with Lock(str(tmp_path / "lock"), "x") as lock:
        child = os.fork()
        if child == 0:
            lock.__exit__(None, None, None)  # as an exception on its way out does
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with pytest.raises(SaveError, match="being saved"), Lock(str(tmp_path / "lock"), "x"):
            pass
    assert not (tmp_path / "lock").exists()


def test_a_process_forked_while_a_save_is_recorded_can_save(tmp_path: Path) -> None:
    """The thread that holds the lock of the ledger at the moment of the fork is not in the child."""
    code = """
        import os, sys
        import numpy as np
        import paddlelike as fluid
        from paddlelike.io.incremental import ledger

        program = fluid.Program()
        program.global_block().create_var(name="a", shape=[2], dtype="float32", persistable=True)
        fluid.global_scope().var("a").get_tensor().set(np.ones(2, "float32"))
        with ledger._lock.hold():
            child = os.fork()
            if child == 0:
                fluid.io.save_persistables(fluid.Executor(fluid.CPUPlace()), sys.argv[1], program)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    """
    process = python(code, str(tmp_path / "m"))
    _, said = ended(process)
    assert process.returncode == 0, said
    assert (tmp_path / "m" / "a").exists()


TRAINER = """
    import sys
    import numpy as np
    import paddlelike as fluid

    program = fluid.Program()
    program.global_block().create_var(name="a", shape=[2], dtype="float32", persistable=True)
    fluid.global_scope().var("a").get_tensor().set(np.ones(2, "float32"))
    fluid.io.save_persistables(fluid.Executor(fluid.CPUPlace()), sys.argv[1], program)
"""


@pytest.mark.parametrize(
    ("trainer", "count", "warned"),
    [
        pytest.param("0", "2", False, marks=pytest.mark.slow),
        ("1", "2", True),
        pytest.param("1", "1", False, marks=pytest.mark.slow),
    ],
)
def test_saving_from_a_trainer_other_than_the_first_causes_a_warning(
    tmp_path: Path, trainer: str, count: str, warned: bool
) -> None:
    environment = {"PADDLE_TRAINER_ID": trainer, "PADDLE_TRAINERS_NUM": count}
    process = python(TRAINER, str(tmp_path / "m"), env=environment)
    _, said = ended(process)
    assert process.returncode == 0, said
    assert ("trainer 1 of 2 saves; usually trainer 0 does" in said) is warned
    assert (tmp_path / "m" / "a").exists()
