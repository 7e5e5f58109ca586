"""Kills savers and looks at what is left: ``python -m tests.crash.harness --model over --seed 3``.

For every model the saver is killed before each call of the system that can change files in turn (that the
others change nothing is checked first), then at random times. After every kill: the directory holds exactly
the old or exactly the new set and other people's files, nothing else is in it, it loads, its manifest fits,
the next save works and leaves nothing of the dead saver beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # forks of one thread

import xxhash

from paddlelike.storage.local import syncing
from paddlelike.storage.local.manifest_file import verify
from tests.crash import tracer
from tests.crash.models import MODELS, Model, contents
from tests.crash.networks import NETWORKS
from tests.crash.servers import SERVERS

__all__ = ["Look", "main", "run"]

Look = Callable[[Model, Path, str], None]  # at what a kill left, before anybody repairs it

_OURS = {".set.saving-directory"}  # the one entry beside the directory that a kill may leave


@dataclass
class Tally:
    """How often which set was there after a kill."""

    kills: int = 0
    old: int = 0
    new: int = 0
    calls: int = 0
    seen: int = 0

    def __str__(self) -> str:
        calls = f"{self.calls} of {self.seen} calls of the system can change files"
        return f"{self.kills} kills ({calls}): {self.old} old, {self.new} new"


def run(model: Model, home: Path, *, every: int, times: int, seed: int, look: Look | None = None) -> Tally:
    """Kill at every ``every``-th call, then ``times`` times at random; AssertionError at the first fault."""
    tally = Tally()
    place = _prepare(model, home / "watched")
    tally.seen = tracer.watched(lambda: model.save(str(place), 1), lambda: _state(place.parent)).seen
    number = 1 + seed % every
    while True:
        place = _prepare(model, home / f"call-{number}")
        outcome = tracer.kill_at(lambda: model.save(str(place), 1), number)  # noqa: B023
        if not outcome.killed:
            assert outcome.status == 0, f"the save failed by itself: {outcome}"
            tally.calls = outcome.calls
            assert _check(model, place, f"{model.name}, not killed") == model.final
            break
        _count(tally, _check(model, place, f"{model.name}, before call {number} ({outcome})", look))
        shutil.rmtree(place.parent)
        number += every
    dice = random.Random(seed)
    begin = time.perf_counter()
    model.save(str(_prepare(model, home / "timed")), 1)
    usual = time.perf_counter() - begin
    for attempt in range(times):
        place = _prepare(model, home / f"time-{attempt}")
        seconds = dice.uniform(0, 1.5 * usual)
        outcome = tracer.kill_after(lambda: model.save(str(place), 1), seconds)  # noqa: B023
        found = _check(model, place, f"{model.name}, after {seconds:.6f} s", look)
        if outcome.killed:
            _count(tally, found)
        shutil.rmtree(place.parent)
    return tally


def _state(home: Path) -> dict[str, tuple[int | bytes, ...]]:
    """Return kind, inode, links, size, time of writing and contents of everything below a directory."""
    found: dict[str, tuple[int | bytes, ...]] = {}
    inside = (Path(folder, name) for folder, folders, files in os.walk(home) for name in (*folders, *files))
    for path in inside:  # os.walk passes over a directory, and lstat over a file, that a thread deletes
        with contextlib.suppress(OSError):
            facts = path.lstat()
            data = path.read_bytes() if path.is_file() else b""
            found[str(path)] = (
                facts.st_mode,
                facts.st_ino,
                facts.st_nlink,
                facts.st_size,
                facts.st_mtime_ns,
                xxhash.xxh3_128_digest(data),
            )
    return found


def _prepare(model: Model, home: Path) -> Path:
    home.mkdir(parents=True)
    place = home / "set"
    if not model.fresh:
        model.save(str(place), 0)
    for name, data in model.foreign.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    return place


def _count(tally: Tally, found: int) -> None:
    tally.kills += 1
    if found == 1:
        tally.new += 1
    else:
        tally.old += 1


def _check(model: Model, place: Path, when: str, look: Look | None = None) -> int:
    """The number of the set that is there (-1: nothing was there before and nothing is); all else fails."""
    if look is not None:
        look(model, place, when)
    assert {path.name for path in place.parent.iterdir()} <= _OURS | {"set"}, when
    raw = contents(place)
    if model.one_step and raw is not None and model.sets:
        sets = [_expected(model, number) for number in (0, 1)]
        assert raw in sets, f"{when}: others see a mix: {_brief(raw)}"
    if raw is None:
        assert model.fresh, f"{when}: the directory is gone"
        found = -1
    else:
        try:
            found = model.load(str(place))
        except Exception as error:
            raise AssertionError(f"{when}: it does not load: {error}") from error
        assert found in (0, 1), when
        assert found or not model.fresh, when
        if model.sets:
            assert contents(place) == _expected(model, found), f"{when}: something foreign"
        for name, data in model.foreign.items():
            assert (place / name).read_bytes() == data, f"{when}: {name} is harmed"
        _check_manifest(model, place, when)
    model.save(str(place), 2)
    assert model.load(str(place)) == 2, f"{when}: the next save"
    for thread in list(syncing._running.values()):  # what waits for the disk stays beside until then
        thread.wait()
    left = {path.name for path in place.parent.iterdir()} - model.stays
    assert left <= {"set"}, f"{when}: {left} left beside"
    if model.sets:
        assert contents(place) == _expected(model, 2), f"{when}: the next save"
    _check_manifest(model, place, f"{when}: the next save")
    return found


def _brief(files: dict[str, bytes]) -> dict[str, tuple[int, bytes]]:
    return {name: (len(data), data[:1]) for name, data in files.items()}


def _expected(model: Model, number: int) -> dict[str, bytes]:
    return model.foreign | model.sets[number]


def _check_manifest(model: Model, place: Path, when: str) -> None:
    base = place / "net" if model.name == "fluid-pickles" else place
    left = [path for path in place.parent.rglob("*.saving-*") if path.name not in _OURS]
    assert len(left) <= (model.name == "fluid-pickles"), f"{when}: {left}"
    found = verify(base)
    wrong = found.problem or found.missing or found.cut or found.changed or found.unchecked
    assert not wrong, f"{when}: {found}"
    assert set(found.extra) <= set(model.foreign), f"{when}: {found}"


def _copies(leave: Path) -> Look:
    def copy(model: Model, place: Path, when: str) -> None:
        shutil.copytree(place.parent, leave / f"{model.name}-{place.parent.name}", symlinks=True)

    return copy


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", help="one or several; all without it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds from --seed on")
    parser.add_argument("--every", type=int, default=1, help="kill at every n-th call only")
    parser.add_argument("--times", type=int, default=30, help="kills at random times")
    parser.add_argument("--leave", type=Path, help="copy what every kill leaves into this directory")
    parser.add_argument("--home", help="where to work (another file system)")
    options = parser.parse_args(arguments)
    reason = tracer.usable()
    if reason:
        sys.stdout.write(f"skipped: {reason}\n")
        return 77
    for seed in range(options.seed, options.seed + options.seeds):
        models = {**MODELS, **NETWORKS, **SERVERS}
        for name in options.model or models:
            begin = time.perf_counter()
            with tempfile.TemporaryDirectory(dir=options.home) as home:
                tally = run(
                    models[name](seed),
                    Path(home),
                    every=options.every,
                    times=options.times,
                    seed=seed,
                    look=None if options.leave is None else _copies(options.leave),
                )
            seconds = time.perf_counter() - begin
            sys.stdout.write(f"{name}, seed {seed}: {tally}, {seconds:.1f} s\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
