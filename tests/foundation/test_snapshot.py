"""Snapshots of the memory of this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from paddlelike.foundation import snapshot
from paddlelike.foundation.snapshot import Snapshot


def test_a_snapshot_whose_process_is_killed_is_an_error() -> None:
    array = np.ones(100)
    taken = Snapshot()
    (child,) = taken._children
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    with pytest.raises(OSError, match="was killed by signal 9"):
        list(taken.read(array.ctypes.data, array.nbytes))
    taken.close()
    with pytest.raises(ChildProcessError):
        os.waitpid(child, 0)


def test_the_process_of_a_snapshot_ends_with_a_killed_parent() -> None:
    script = """
        import sys
        from paddlelike.foundation.snapshot import Snapshot
        taken = Snapshot()
        print("taken", flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"taken\n"
        process.kill()
        assert process.stdout.read() == b""  # nobody has it any more


def test_a_snapshot_process_is_idle_after_its_work_until_it_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def work(request: object, rest: Callable[[], None]) -> object:
        until = time.process_time() + 0.001
        while time.process_time() < until:
            pass
        rest()
        return request

    monkeypatch.setattr(snapshot, "_SHARE", 1e-9)
    monkeypatch.setattr(snapshot, "_RESTS", 1e9)
    taken, answers = Snapshot(work), list[object]()
    asking = threading.Thread(target=lambda: answers.append(taken.ask("done")))
    asking.start()
    asking.join(0.1)
    assert asking.is_alive()  # for eleven days
    taken.hurry()
    asking.join()
    assert answers == ["done"]
    taken.close()
