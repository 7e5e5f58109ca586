"""What is left of saves that are killed, and whether damage is noticed: ``nox -s torture``.

The same is done to this library and to others, each where it is found: in this interpreter, or in that which
PADDLELIKE_TORCH_PYTHON, PADDLELIKE_ORBAX_PYTHON or PADDLELIKE_PADDLE262_PYTHON names. A table is printed, as it
stands in ``paddlelike/storage/README.md``.

- kill: a save over a save is killed at a random moment. Old or new is whole; a mix of both that loads is silent
- flip: one random bit of a random file; cut: a random file ends early; empty: a random file has no bytes
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

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
        return lines + ["refused Crash"] * (len(homes) - len(lines))  # the process itself died

    def kill(self, rounds: int, dice: random.Random) -> Counter[str]:
        """Kill saves over a save."""
        old = self.home / "old"
        self.save(old, 1)
        seconds = self.save(self.home / "other", 1)
        homes = []
        for number in range(rounds):
            home = self.home / f"kill-{number}"
            shutil.copytree(old, home)
            homes.append(home)
            with self.start("save", str(home), "2") as process:
                assert process.stdout is not None
                process.stdout.readline()
                time.sleep(dice.random() * seconds)
                process.kill()
        return Counter({"1": "old", "2": "new", "mix": "mix"}.get(word, "lost") for word in self.load(homes))

    def harm(self, how: str, rounds: int, dice: random.Random) -> Counter[str]:
        """Damage files of a save."""
        homes = []
        for number in range(rounds):
            home = self.home / f"{how}-{number}"
            shutil.copytree(self.home / "old", home)
            homes.append(home)
            files = [path for path in sorted(home.rglob("*")) if path.is_file() and path.stat().st_size]
            path = dice.choice(files)
            path.write_bytes(HARMS[how](bytearray(path.read_bytes()), dice))
        words = [word.partition(" ")[0] for word in self.load(homes)]
        return Counter({"1": "harmless", "refused": "refused"}.get(word, "silent") for word in words)


def torture(names: list[str], rounds: int, seed: int) -> list[str]:
    """Return the rows of the table, of the libraries that are found."""
    rows = [
        "| | killed: old or new | lost | a mix, silent | bit: refused | silent | cut, empty: refused | silent |"
    ]
    rows.append("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            python = find_python(name)
            if python is None:
                rows.append(f"| {name} | not found | | | | | | |")
                continue
            dice, one = random.Random(seed), Tortured(name, python, Path(folder) / name)
            killed, flips = one.kill(rounds, dice), one.harm("flip", rounds, dice)
            cuts = one.harm("cut", rounds, dice) + one.harm("empty", rounds, dice)
            cells = [killed["old"] + killed["new"], killed["lost"], killed["mix"]]
            cells += [flips["refused"], flips["silent"], cuts["refused"], cuts["silent"]]
            rows.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(NAMES), help="libraries, with commas between")
    given = parser.parse_args()
    print("\n".join(torture(given.only.split(","), given.rounds, given.seed)))


if __name__ == "__main__":
    main()
