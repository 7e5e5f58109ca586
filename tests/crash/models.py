"""What is saved while the saver is killed: sets of files by seed, old and new, and how they are written."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from paddlelike.errors import SaveError
from paddlelike.storage.local import generation, journal, manifest_file
from paddlelike.storage.local.files import recover
from paddlelike.storage.local.filesystem.system import exchange as exchange_dirs
from paddlelike.storage.local.journal import _move as move
from paddlelike.storage.local.transaction import Transaction

__all__ = ["FOREIGN", "MODELS", "Model", "contents", "refuse"]

Files = dict[str, bytes]

FOREIGN = {"notes.txt": b"not ours", "theirs/deep/file": b"neither"}


@dataclass
class Model:
    """A directory before the save, and the save.

    Attributes
    ----------
    old, third
        What was saved before, None for a new directory; and what is saved after the crash.
    foreign
        Files of other people in the directory.
    save
        ``save(directory, number)`` saves the set of that number: 0 old, 1 new, 2 third.
    one_step
        Whether the commit is one step, so that a reader who knows nothing of us sees one set as well.
    load
        ``load(directory)`` gives the number of the set that is there, or fails.
    """

    name: str
    sets: list[Files]
    save: Callable[[str, int], object]
    load: Callable[[str], int]
    foreign: Files = field(default_factory=dict)
    fresh: bool = False
    one_step: bool = True
    final: int = 1  # the set that is there when nobody is killed
    stays: frozenset[str] = frozenset()  # siblings that are meant to stay after a save
    paddle: Any = None  # how real Paddle reads it, see ``networks``


def contents(directory: Path) -> Files | None:
    """All files below a directory; None when it is not there."""
    if not directory.is_dir():
        return None
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if not path.is_dir() and path.name != "__manifest__"
    }


def _random_sets(seed: int, count: int) -> list[Files]:
    dice = random.Random(seed)
    names = [("sub/" if dice.random() < 0.3 else "") + f"w_{number}" for number in range(count)]
    sizes = [dice.choice([0, 5, 300, 70_000]) for _ in names]
    sizes[0] = (1 << 20) + 7  # one for a thread
    return [{n: bytes([which + 1]) * s for n, s in zip(names, sizes, strict=True)} for which in range(3)]


def _plain(
    name: str,
    seed: int,
    *,
    count: int = 5,
    fresh: bool = False,
    foreign: Mapping[str, bytes] | None = None,
    exchange: bool = True,
    kept: int = 0,
    fault: Callable[[str, str], None] | None = None,
    options: Mapping[str, Any] | None = None,
    stays: frozenset[str] = frozenset(),
    shrinks: bool = False,
) -> Model:
    """Files by a transaction; ``kept`` of them are the same in all sets and not written again.

    ``fault`` moves the files of set 1 into place, instead of the function that a commit in steps uses.
    ``shrinks``: each set has files that the others do not have, which are to go with it.
    """
    sets = _random_sets(seed, count)
    if shrinks:
        for number, files in enumerate(sets):
            files |= {f"only_{number}": b"!", f"folder_{number}/deep/w": b"!!"}
    unchanged = list(sets[0])[1 : 1 + kept]
    for files in sets[1:]:
        files.update({path: sets[0][path] for path in unchanged})

    def save(directory: str, number: int) -> None:
        with (
            mock.patch.object(generation, "exchange", exchange_dirs if exchange else refuse),
            mock.patch.object(journal, "_move", fault if fault is not None and number == 1 else move),
            contextlib.suppress(SaveError if fault is not None and number == 1 else ()),
        ):
            write(directory, number)

    def write(directory: str, number: int) -> None:
        before = manifest_file.read_manifest(directory) if unchanged and number else None
        author = {"program": "5f", "part": "all", "remove_stale": True} if shrinks else {}
        transaction = Transaction(directory, **author, **dict(options or {}))
        for path, data in sets[number].items():
            if before is not None and path in unchanged and transaction.keep(path, before.files[path]):
                continue
            transaction.add(path, [data[:3], data[3:]])
        transaction.commit()

    def load(directory: str) -> int:
        recover(directory)
        found = contents(Path(directory)) or {}
        for number, files in enumerate(sets):
            if all(found.get(path) == data for path, data in files.items()):
                return number
        raise AssertionError(f"a mix of sets, or none: { {p: d[:1] for p, d in found.items()} }")

    mine, final = dict(foreign or {}), 1 if fault is None else 0
    return Model(name, sets, save, load, mine, fresh, one_step=exchange, final=final, stays=stays)


def _interrupted(name: str, seed: int) -> Model:
    """A save that was killed in the middle of its journal, and the one who finishes it."""
    whole = _plain(name, seed, foreign=FOREIGN, exchange=False)
    dying = _plain(name, seed, foreign=FOREIGN, exchange=False, fault=_killed_move)

    def save(directory: str, number: int) -> None:
        if number == 1:
            recover(directory)
            return
        whole.save(directory, number)
        if number == 0:
            process = os.fork()
            if process == 0:
                dying.save(directory, 1)
                os._exit(1)
            _, status = os.waitpid(process, 0)
            assert os.WIFSIGNALED(status), "the first save was to die in the middle of its commit"

    return replace(whole, save=save)


def _broken_move(source: str, target: str) -> None:
    if "/new/" in source and target.endswith("w_2"):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    move(source, target)


def _killed_move(source: str, target: str) -> None:
    if target.endswith("w_2"):
        os.kill(os.getpid(), signal.SIGKILL)
    move(source, target)


def refuse(a: str, b: str) -> None:
    """A system that cannot exchange two directories."""
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


_SPARE: Mapping[str, Any] = {
    "foreign": FOREIGN,
    "options": {"keep_generation": True},
    "stays": frozenset({".set.saving-directory"}),
}
_STEPS: Mapping[str, Any] = {"foreign": FOREIGN, "exchange": False}

#: All models of plain files, by name: functions of a seed.
MODELS: Mapping[str, Callable[[int], Model]] = {
    name: partial(_plain, name, **options)
    for name, options in {
        "new": {"fresh": True},
        "over": {},
        "foreign": {"foreign": FOREIGN},
        "kept": {"foreign": FOREIGN, "kept": 2},
        "one": {"count": 1, "foreign": FOREIGN},
        "shrinks": {"foreign": FOREIGN, "kept": 2, "shrinks": True},
        "journal-shrinks": {**_STEPS, "kept": 2, "shrinks": True},
        "undo-shrinks": {**_STEPS, "fault": _broken_move, "shrinks": True},
        "journal": _STEPS,
        "journal-kept": {**_STEPS, "kept": 2},
        "undo": {**_STEPS, "fault": _broken_move},
        "power": {"foreign": FOREIGN, "options": {"durability": "power"}},
        "spare": _SPARE,
        "spare-shrinks": {**_SPARE, "shrinks": True},
    }.items()
} | {"recovery": partial(_interrupted, "recovery")}
