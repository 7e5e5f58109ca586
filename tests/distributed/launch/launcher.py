"""A launcher in a directory of its own, with a script whose processes report when they are ready."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PROJECT = Path(__file__).parents[3]
DEADLINE = 600.0

#: Each process writes its id to a file when it is ready.
PREAMBLE = """
import os, signal, sys, time
from pathlib import Path
server = os.environ["TRAINING_ROLE"] == "PSERVER"
name = ("server" if server else "worker") + os.environ["PADDLE_PSERVER_ID" if server else "PADDLE_TRAINER_ID"]
starts = Path(name + ".starts")
start = int(starts.read_text()) if starts.exists() else 0
starts.write_text(str(start + 1))
def ready():
    Path(name + ".new").write_text(str(os.getpid()))
    os.replace(name + ".new", name + ".pid")
def until(path, seconds=50):
    end = time.monotonic() + seconds
    while not Path(path).exists():
        if time.monotonic() > end: sys.exit(f"{path} did not appear")
        time.sleep(0.02)
"""


class Launcher:
    """A launcher that runs a script in a directory of its own."""

    def __init__(self, home: Path, script: str, *options: str, module: str = "launch") -> None:
        self.home = home
        (home / "train.py").write_text(PREAMBLE + script)
        command = [
            sys.executable,
            "-m",
            f"paddlelike.distributed.{module}",
            *options,
            "train.py",
            "--lr",
            "0.1",
        ]
        environment = os.environ | {"PYTHONPATH": str(PROJECT)}
        self.process = subprocess.Popen(
            command, cwd=home, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Launcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> tuple[int, str]:
        _, said = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, said

    def pid(self, name: str) -> int:
        wait_until(lambda: (self.home / f"{name}.pid").exists(), f"{name} to be ready")
        return int((self.home / f"{name}.pid").read_text())

    def starts(self, name: str) -> int:
        return int((self.home / f"{name}.starts").read_text())


def wait_until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end, f"waited for {what}"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    """Return whether a process has ended, also if its parent has not noticed yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True
