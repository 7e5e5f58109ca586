"""Cuts the power of real file systems during saves: ``python -m tests.crash.real_power --rounds 70``.

ext4 and xfs are shut down by their own call, which drops everything that is not on the disk. btrfs has no
such call: the process is stopped, and what is in the image of its disk at that moment is what is left.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import functools
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

import paddlelike as fluid
from paddlelike.storage.local.filesystem.system import sync_file_system

KINDS: Final = ("ext4", "xfs", "btrfs")
_SHUTDOWN: Final = 0x8004587D
_WITH_LOG, _WITHOUT_LOG = 1, 2  # whether the file system writes its own journal before it stops
_SIZE: Final = 400 << 20


class Training:
    """A program of two parameters, both filled with the number of a save."""

    def __init__(self, home: Path, rows: int = 300) -> None:
        self.home, self.exe, self.main = home, fluid.Executor(), fluid.Program()
        self._shapes = {"w": (rows, 300), "v": (7,)}
        with fluid.program_guard(self.main, fluid.Program()):
            for name, shape in self._shapes.items():
                self.main.global_block().create_parameter(name=name, shape=shape, dtype="float32")

    def save(self, number: int) -> None:
        """Save by every form that is to survive."""
        for name, shape in self._shapes.items():
            array = np.full(shape, number, "float32")
            fluid.global_scope().var(name).get_tensor().set(array, fluid.CPUPlace())
        fluid.io.Checkpoints(self.home / "ck", keep_last=2).save(self.exe, self.main, number)
        for durability in ("atomic", "power"):
            into = self.home / durability
            into.mkdir(exist_ok=True)
            how: Any = {"durability": durability}
            fluid.io.save_persistables(self.exe, str(into / "all"), self.main, **how)
            fluid.io.save_params(self.exe, str(into / "one"), self.main, "file", **how)
            fluid.save(self.main, str(into / "net"), **how)
        if number % 2:
            beside = str(self.home / "beside")
            pending = fluid.io.save_persistables(self.exe, beside, self.main, blocking=False)
            if number == 1:
                pending.wait()  # that it is on the disk before the first crash

    def check(self, number: int, beside: int) -> list[str]:
        """Return what is wrong after a crash, when the save of that number was the last that returned.

        ``beside``: the least number that may be left of the saves that do not block.
        """
        loads: dict[str, tuple[Callable[[], object], int]] = {"checkpoints": (self._restore, 0)}
        for durability, least in ("atomic", number - 1), ("power", number):  # a default one may be lost
            into = self.home / durability
            loads[f"directory, {durability}"] = functools.partial(self._load, into / "all"), least
            loads[f"one file, {durability}"] = functools.partial(self._load, into / "one", "file"), least
            loads[f"prefix, {durability}"] = self._make_prefix_load(into / "net"), least
        loads["beside"] = functools.partial(self._load, self.home / "beside"), beside
        wrong = []
        for name, (load, least) in loads.items():
            try:
                load()
                found = {float(one) for each in "wv" for one in np.unique(self._value(each))}
                if len(found) != 1 or min(found) < least:
                    wrong.append(f"{name}: {sorted(found)} after {number}")
            except Exception as error:
                wrong.append(f"{name}: {type(error).__name__}: {error}")
        return wrong

    def _load(self, directory: Path, filename: str | None = None) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the save before was taken
            fluid.io.load_persistables(self.exe, str(directory), self.main, filename)

    def _make_prefix_load(self, path: Path) -> Callable[[], object]:
        return lambda: fluid.load(self.main, str(path), self.exe)

    def _restore(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # damaged ones that are passed over
            state = fluid.io.Checkpoints(self.home / "ck").restore(self.exe, self.main)
        assert state is not None, "no checkpoint is left"

    def _value(self, name: str) -> np.ndarray:
        return np.array(fluid.global_scope().find_var(name).get_tensor())


def run_rounds(kind: str, rounds: int, rows: int, dice: random.Random) -> list[str]:
    """Return what was lost in crashes of a file system of that kind; a save has ``rows`` of 1200 bytes."""
    lost, number, beside = [], 0, 1
    with tempfile.TemporaryDirectory() as folder:
        image, home = Path(folder) / "image", Path(folder) / "mounted"
        home.mkdir()
        format_image(kind, image)
        for turn in range(rounds):
            first = number + 1
            with mounted(image, home):
                number = _crash(kind, image, Training(home, rows), number, dice)
            if kind == "btrfs":
                image.with_suffix(".left").replace(image)
            beside = _find_least(first, number, beside)
            with mounted(image, home):
                wrong = _in_fork(Training(home, rows), number, beside)
                lost += [f"{kind}, round {turn}: {one}" for one in wrong]
    return lost


def _find_least(first: int, number: int, before: int) -> int:
    """Return what at least is left of the saves that do not block: every other one, from ``first`` on.

    The call for one returns when the one before has been committed, and that was begun after the disk had
    the one before it. Where so many were not requested since the last crash, what was left then is there.
    """
    asked_for = number if number % 2 else number - 1
    return asked_for - 4 if asked_for - 4 >= first else before


def _crash(kind: str, image: Path, training: Training, number: int, dice: random.Random) -> int:
    """Save in a process until the power is cut; return the number of the last save that returned."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.close(reading)
        with contextlib.suppress(BaseException):
            while True:
                number += 1
                training.save(number)
                if not number % 50 or number == 1:
                    sync_file_system(str(training.home))
                os.write(writing, struct.pack("<q", number))
        os._exit(1)
    os.close(writing)
    told = os.read(reading, 8)  # the first save of this round
    time.sleep(dice.uniform(0, 0.6))
    if kind == "btrfs":
        os.kill(process, signal.SIGSTOP)
        _copy_at_rest(image, image.with_suffix(".left"))
    else:
        shut_down(training.home, dice)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    while more := os.read(reading, 8):
        told = more
    os.close(reading)
    assert len(told) == 8, "the saving process died before the crash"
    return int(struct.unpack("<q", told)[0])


def shut_down(home: Path, dice: random.Random) -> None:
    """Cut the power of a mounted ext4 or xfs."""
    directory = os.open(home, os.O_RDONLY)
    try:
        fcntl.ioctl(directory, _SHUTDOWN, struct.pack("<I", dice.choice((_WITH_LOG, _WITHOUT_LOG))))
    finally:
        os.close(directory)


def format_image(kind: str, image: Path) -> None:
    """Make a file an empty file system."""
    with image.open("wb") as file:
        file.truncate(_SIZE)
    _call(f"mkfs.{kind}", "-q", "-F" if kind == "ext4" else "-f", image)


def _copy_at_rest(image: Path, target: Path) -> None:
    """Copy an image while nothing is written to it."""
    while True:
        before = image.stat().st_mtime_ns
        _call("cp", "--sparse=always", image, target)
        if image.stat().st_mtime_ns == before:
            return


def _in_fork(training: Training, number: int, beside: int) -> list[str]:
    """Check in a process of its own, which knows nothing of what was saved."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.write(writing, "\n".join(training.check(number, beside)).encode()[:60_000] or b"\n")
        os._exit(0)
    os.close(writing)
    os.waitpid(process, 0)
    with os.fdopen(reading, "rb") as file:
        said = file.read().decode()
    return [line for line in said.splitlines() if line] if said else ["the check died"]


@contextlib.contextmanager
def mounted(image: Path, home: Path) -> Iterator[None]:
    """Mount a file system inside the ``with``."""
    _call("mount", "-o", "loop", image, home)
    try:
        yield
    finally:
        for _ in range(1200):  # however long a busy machine takes to end the processes that were killed
            if not subprocess.run(["umount", home], capture_output=True).returncode:
                break
            time.sleep(0.1)
        else:
            raise RuntimeError(f"{home} cannot be unmounted")


def _call(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True)


def explain_refusal(kind: str) -> str | None:
    """Return why this machine cannot run the rounds of a file system; None: it can."""
    if not sys.platform.startswith("linux") or os.geteuid():
        return "mounting needs Linux and root"
    if not shutil.which(f"mkfs.{kind}"):
        return f"there is no mkfs.{kind}"
    with tempfile.TemporaryDirectory() as folder:
        image, home = Path(folder) / "image", Path(folder) / "mounted"
        home.mkdir()
        try:
            format_image(kind, image)
            with mounted(image, home):
                pass
        except (OSError, subprocess.CalledProcessError) as error:
            return f"a {kind} image cannot be mounted: {error}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    lost = []
    for kind in given.kind or KINDS:
        if reason := explain_refusal(kind):
            sys.stdout.write(f"{reason}\n")
            return 77
        found = []
        for part, rows in enumerate((300, 1500)):  # those below 1 MiB wait for the disk for a moment
            rounds = (given.rounds + part) // 2
            found += run_rounds(kind, rounds, rows, random.Random(f"{given.seed} {rows}"))
        lost += found
        lines = [f"{kind}: {given.rounds} crashes, {len(found)} lost", *found]
        sys.stdout.write("\n  ".join(lines) + "\n")
        sys.stdout.flush()
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
