"""What is left of saves that are killed, and whether damage is noticed: ``nox -s torture``.

The same is done to this library and to others, each where it is found: in this interpreter, or in that which
PADDLELIKE_TORCH_PYTHON, PADDLELIKE_ORBAX_PYTHON or PADDLELIKE_PADDLE262_PYTHON names. A table is printed, as it
stands in ``tutorials/measurements/storage.md``.

- kill: a save over a save is killed at a random moment. Old or new is whole; a mix of both that loads is silent
- interrupt: the same with a Ctrl-C; full: the disk has too little space, and others fill it (root alone)
- power: the same on an ext4 image, which is shut down at a random moment of the save or after it (root alone)
- flip: one random bit of a random file; cut: a random file ends early; empty: a random file has no bytes
- code: each file in turn is a pickle that creates a file when it is loaded
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from tests.crash.real_power import explain_refusal, format_image, mounted, shut_down

PEERS: Final = Path(__file__).with_name("drive_peers.py")
ROOT: Final = PEERS.parents[2]
NAMES: Final = {  # what is called, the module that must be there, the variable that names another interpreter
    "paddlelike": ("paddlelike", None),
    "np_save": ("numpy", None),
    "safetensors": ("safetensors", None),
    "torch": ("torch", "PADDLELIKE_TORCH_PYTHON"),
    "torch_distributed": ("torch", "PADDLELIKE_TORCH_PYTHON"),
    "orbax": ("orbax", "PADDLELIKE_ORBAX_PYTHON"),
    "paddle": ("paddle", "PADDLELIKE_PADDLE262_PYTHON"),
}
HARMS: Final[dict[str, Callable[[bytearray, random.Random], bytes]]] = {
    "flip": lambda data, dice: _flip(data, dice),
    "cut": lambda data, dice: bytes(data[: dice.randrange(len(data))]),
    "empty": lambda data, dice: b"",
}


def _flip(data: bytearray, dice: random.Random) -> bytes:
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(data)


def find_python(name: str) -> str | None:
    """Return the interpreter that has a library."""
    module, variable = NAMES[name]
    if variable is not None and os.environ.get(variable):
        return os.environ[variable]
    return sys.executable if importlib.util.find_spec(module) is not None else None


class Tortured:
    """One library, and where its saves are."""

    def __init__(self, name: str, python: str, home: Path) -> None:
        self._command = [python, str(PEERS), name]
        self.home = home
        self.home.mkdir()
        self.said = Counter[str]()  # the errors
        self._environ = {**os.environ, "PYTHONPATH": str(ROOT)} if python == sys.executable else None

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start it in a process of its own, which says when it begins."""
        return subprocess.Popen(
            [*self._command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environ,
        )

    def save(self, home: Path, number: int) -> float:
        """Save that number into all arrays, and return the seconds it took."""
        home.mkdir(exist_ok=True)
        with self.start("save", str(home), str(number)) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == "begin\n", process.stderr.read()
            begin = time.perf_counter()
            assert process.wait() == 0, process.stderr.read()
            return time.perf_counter() - begin

    def load(self, homes: list[Path]) -> list[str]:
        """Return what each directory holds."""
        with self.start("load", *map(str, homes)) as process:
            lines = process.communicate()[0].split("\n")[:-1]
        lines += ["refused Crash"] * (len(homes) - len(lines))  # the process itself died
        self.said.update(line for line in lines if line.startswith("refused"))
        return lines

    def stop(self, number: int, rounds: int, dice: random.Random) -> str:
        """Send a signal to saves over a save."""
        old = self.home / "old"
        if not old.exists():
            self.save(old, 1)
        seconds = self.save(self.home / "other", 1)
        homes = []
        for each in range(rounds):
            home = self.home / f"{signal.Signals(number).name}-{each}"
            shutil.copytree(old, home)
            homes.append(home)
            with self.start("save", str(home), "2") as process:
                assert process.stdout is not None
                process.stdout.readline()
                time.sleep(dice.random() * seconds)
                process.send_signal(number)
                process.communicate()
        words = self.load(homes)
        for home in homes:
            shutil.rmtree(home)
        return _sum_up(words)

    def fill_disk(self, rounds: int, dice: random.Random) -> str:
        """Save over a save on a disk with too little space, which others fill as soon as some is free."""
        place, words = self.home / "full", []
        place.mkdir()
        for _ in range(rounds):
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", str(place)], check=True)
            try:
                self.save(place / "model", 1)
                found = os.statvfs(place)
                size = sum(path.stat().st_size for path in (place / "model").rglob("*") if path.is_file())
                with (place / "others").open("wb", 0) as others:
                    room = found.f_bavail * found.f_frsize - dice.randrange(size)
                    os.posix_fallocate(others.fileno(), 0, room)
                    others.seek(room)
                    with self.start("save", str(place / "model"), "2") as process:
                        self._fill(others, process)
                (place / "others").unlink()
                words += self.load([place / "model"])
                if words[-1] != "2" and not process.returncode:
                    words[-1] = "mix"  # it was said to be saved
            finally:
                subprocess.run(["umount", str(place)], check=True)
        return _sum_up(words)

    def _fill(self, others: IO[bytes], process: subprocess.Popen[str]) -> None:
        """Take what a save frees on a disk with little space, until it ends."""
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        found = os.statvfs(others.name)
        least = found.f_bavail
        while process.poll() is None:
            free = os.statvfs(others.name).f_bavail
            if free > least:
                with contextlib.suppress(OSError):
                    others.write(bytes((free - least) * found.f_frsize))
            least = min(least, free)
            time.sleep(0.0005)
        self.said[f"disk full, exit {process.returncode}: {process.stderr.read()[-160:]!r}"] += 1

    def cut_power(self, rounds: int, dice: random.Random) -> str:
        """Cut the power of a file system during saves over a save, or shortly after them."""
        image, place, words = self.home / "image", self.home / "mounted", []
        place.mkdir()
        seconds = self.save(self.home / "timed", 1)
        for _ in range(rounds):
            format_image("ext4", image)
            with mounted(image, place):
                self.save(place / "model", 1)
                os.sync()
                with self.start("save", str(place / "model"), "2") as process:
                    assert process.stdout is not None
                    process.stdout.readline()
                    time.sleep(dice.random() * 2 * seconds)
                    shut_down(place, dice)
                    process.kill()
            with mounted(image, place):
                words += self.load([place / "model"])
        return _sum_up(words)

    def plant_code(self) -> str:
        """Let each file of a save in turn be a pickle with code."""
        found = Counter[str]()
        for path in sorted(path for path in (self.home / "old").rglob("*") if path.is_file()):
            home, mark = self.home / "code", self.home / "was-run"
            shutil.copytree(self.home / "old", home)
            (home / path.relative_to(self.home / "old")).write_bytes(
                pickle.dumps(_Code(str(mark)), protocol=2)
            )
            (word,) = self.load([home])
            found["run" if mark.exists() else "refused" if word.startswith("refused") else "passed over"] += 1
            shutil.rmtree(home)
            with contextlib.suppress(FileNotFoundError):
                mark.unlink()
        return f"{found['refused']} / {found['run']}"

    def harm(self, ways: str, rounds: int, dice: random.Random) -> str:
        """Damage files of a save."""
        homes = []
        for how in ways.split():
            for number in range(rounds):
                home = self.home / f"{how}-{number}"
                shutil.copytree(self.home / "old", home)
                homes.append(home)
                files = [path for path in sorted(home.rglob("*")) if path.is_file() and path.stat().st_size]
                path = dice.choice(files)
                path.write_bytes(HARMS[how](bytearray(path.read_bytes()), dice))
        words = [word.partition(" ")[0] for word in self.load(homes)]
        for home in homes:
            shutil.rmtree(home)
        found = Counter({"1": "harmless", "refused": "refused"}.get(word, "silent") for word in words)
        return f"{found['refused']} / {found['silent']}"


def _sum_up(words: list[str]) -> str:
    found = Counter({"1": "whole", "2": "whole", "mix": "mix"}.get(word, "lost") for word in words)
    return f"{found['whole']} / {found['lost']} / {found['mix']}"


class _Code:
    def __init__(self, mark: str) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self._mark, "w")


def torture(names: list[str], rounds: int, cuts_of_power: int, seed: int) -> list[str]:
    """Return the rows of the table, of the libraries that are found."""
    whole, refused = "old or new / lost / a mix", "refused / silent"
    heads = [f"killed: {whole}", "interrupted", "disk full", "power cut", f"bit: {refused}", "cut, empty"]
    heads.append("code: refused / run")
    rows = [f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    can_mount = explain_refusal("ext4") is None
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            python = find_python(name)
            if python is None:
                rows.append(f"| {name} | not found |" + " |" * (len(heads) - 1))
                continue
            dice, one = random.Random(seed), Tortured(name, python, Path(folder) / name)
            cells = [one.stop(signal.SIGKILL, rounds, dice), one.stop(signal.SIGINT, rounds, dice)]
            cells.append(one.fill_disk(rounds, dice) if can_mount else "")
            cells.append(one.cut_power(cuts_of_power, dice) if can_mount and cuts_of_power else "")
            cells += [one.harm("flip", rounds, dice), one.harm("cut empty", rounds, dice), one.plant_code()]
            rows.append(f"| {name} | {' | '.join(cells)} |")
            shutil.rmtree(one.home)
            said = "".join(f"  {count} {words}\n" for words, count in one.said.most_common())
            sys.stderr.write(f"{rows[-1]}\n{said}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--power", type=int, default=10, help="cuts of the power")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(NAMES), help="libraries, with commas between")
    given = parser.parse_args()
    print("\n".join(torture(given.only.split(","), given.rounds, given.power, given.seed)))


if __name__ == "__main__":
    main()
