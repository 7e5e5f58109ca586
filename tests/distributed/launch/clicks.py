"""The first day of the tutorial on parameter servers as a job whose processes can be found and killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.distributed.launch.launcher import wait_until
from tests.helpers.saved_files import read_variables

PROJECT = Path(__file__).parents[3]
SCRIPT = PROJECT / "tutorials" / "04_parameter_servers.py"


@contextmanager
def launch_tutorial(
    home: Path, mark: str, *options: str, **variables: str
) -> Iterator[subprocess.Popen[str]]:
    """The first day of the tutorial; its processes can be told by ``mark`` in their environment."""
    (home / "clicks").mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "paddlelike.distributed.launch", "--grace=10", *options, str(SCRIPT), "1"],
        cwd=home,
        env=os.environ
        | {
            "PYTHONPATH": str(PROJECT),
            "OMP_NUM_THREADS": "1",
            "PADDLELIKE_JOB_ID": mark,
            "CLICKS_HOME": str(home / "clicks"),
        }
        | variables,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def pid_of(mark: str, *variables: str) -> int | None:
    """Return the id of the process with these variables in its environment, if there is one."""
    wanted = {f"PADDLELIKE_JOB_ID={mark}".encode(), *(one.encode() for one in variables)}
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted <= set(path.read_bytes().split(b"\0")):
                return int(path.parent.name)
        except OSError:
            continue
    return None


def find_process(mark: str, *variables: str) -> int:
    """Wait for the process with these variables in its environment; return its id."""
    wait_until(lambda: pid_of(mark, *variables) is not None, f"a process with {variables}")
    found = pid_of(mark, *variables)
    assert found is not None
    return found


def find_parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def last_save(home: Path) -> dict[str, bytes]:
    return read_variables(home / "clicks/checkpoints/step-00000060")
