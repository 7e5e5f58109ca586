"""Saves and loads one directory as a process of another machine, on a file system of other semantics.

    python -m tests.storage.faults.semantics HOME HOST SECONDS SEMANTICS...

``links``: there are hard links, whose calls are answered twice; without it there are none. ``slow``: the
bytes of a new lock file come some time after its name. ``late``: what this process reads of a lock file that
it did not change itself may be as much as 0.2 s old. There is no flock and no exchange, every HOST has its
own clocks, and no process of one can be seen from another. Prints what came of each save and load, with
counts, as JSON: ``stalled`` is an error of a process whose lock file did not change for half a lease, such as
on a busy machine.
"""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.errors import PaddlelikeError
from paddlelike.storage.local import generation
from paddlelike.storage.local.filesystem import lock, lock_file

LEASE = 1.0  # seconds instead of half a minute
_CACHED = 0.2

real_open, real_link, real_write, real_monotonic = builtins.open, os.link, os.write, time.monotonic


def refuse(*args: Any, **kwargs: Any) -> Any:
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


def no_locks(*args: Any) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


class Beats:
    """The longest time for which the lock files of this process did not change."""

    def __init__(self) -> None:
        self.start()
        for name in ("make_content", "renew"):
            setattr(lock_file, name, self._noting(getattr(lock_file, name)))

    def start(self) -> None:
        self._longest, self._last = 0.0, real_monotonic()

    def get_longest(self) -> float:
        return max(self._longest, real_monotonic() - self._last)

    def _noting(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            result = change(*args)
            self._longest, self._last = self.get_longest(), real_monotonic()
            return result

        return call


def install(host: str, semantics: set[str]) -> None:
    """Let this process see the file system so, and be one of that host."""
    dice = random.Random(host + str(os.getpid()))
    skew = random.Random(host).uniform(-1e6, 1e6)
    cache: dict[str, tuple[float, bytes]] = {}
    lock.fcntl.flock = no_locks  # type: ignore[assignment, union-attr]
    generation.exchange = refuse
    lock_file._LEASE, lock_file._BEAT = LEASE, LEASE / 8  # type: ignore[misc]
    lock_file._UNFINISHED = LEASE  # type: ignore[misc]
    lock_file._get_place = lambda: host  # type: ignore[assignment]
    time.time = lambda real=time.time: real() + skew  # type: ignore[assignment, misc]
    time.monotonic = lambda: real_monotonic() + abs(skew)

    def link(source: Any, target: Any, **more: Any) -> None:
        cache.pop(str(target), None)
        if "links" not in semantics:
            refuse()
        real_link(source, target, **more)
        if Path(target).name.startswith("lock"):
            raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))

    def write(fd: int, data: Any) -> int:
        if "slow" in semantics and bytes(data[:6]).split(b" ")[0].isdigit():
            time.sleep(dice.random() * 0.1)
        return real_write(fd, data)

    def forget(name: str) -> None:
        """Let a change by this process be seen by it."""
        real = getattr(os, name)

        def call(*args: Any, **more: Any) -> Any:
            try:
                return real(*args, **more)
            finally:
                for one in args:
                    if isinstance(one, str):
                        cache.pop(one, None)

        setattr(os, name, call)

    def open_cached(path: Any, mode: str = "r", *args: Any, **more: Any) -> Any:
        if "late" not in semantics or not isinstance(path, str) or "w" in mode or "x" in mode:
            return real_open(path, mode, *args, **more)
        if not Path(path).name.startswith("lock"):
            return real_open(path, mode, *args, **more)
        now = real_monotonic()
        if path not in cache or now - cache[path][0] > dice.random() * _CACHED:
            with real_open(path, "rb") as file:
                cache[path] = now, file.read()
        data = cache[path][1]
        return io.BytesIO(data) if "b" in mode else io.StringIO(data.decode("utf-8", "replace"))

    for name in ("open", "unlink", "rename"):
        forget(name)
    os.link, os.write, builtins.open = link, write, open_cached


def main() -> None:
    home, host, seconds, *semantics = sys.argv[1:]
    warnings.simplefilter("ignore")
    install(host, set(semantics))
    beats = Beats()
    exe, scope, main = fluid.Executor(), fluid.global_scope(), fluid.Program()
    names = [f"w_{index}" for index in range(6)]
    for name in names:
        main.global_block().create_parameter(name=name, shape=[5000], dtype="float32")
    counts, end = Counter[str](), real_monotonic() + float(seconds)
    number = os.getpid()
    while real_monotonic() < end:
        number += 1
        beats.start()
        try:
            for name in names:
                scope.var(name).get_tensor().set(np.full(5000, number, "float32"), None)
            fluid.io.save_persistables(exe, f"{home}/model", main)
            counts["saved"] += 1
            fluid.io.load_persistables(exe, f"{home}/model", main)
            values = {float(v) for name in names for v in np.array(scope.find_var(name).get_tensor())}
            counts["loaded" if len(values) == 1 else "mixed"] += 1
        except PaddlelikeError as error:
            stalled = beats.get_longest() > LEASE / 2
            counts["stalled" if stalled else str(error).replace(home, "")[:300]] += 1
    sys.stdout.write(json.dumps(counts))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
