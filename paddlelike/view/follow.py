"""A running training as seen in its directory: losses and saves as they appear.

Files are only read, never locked or repaired, so that training is not disturbed.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, Final, NamedTuple

from paddlelike.errors import PaddlelikeError
from paddlelike.foundation.locks import Lock
from paddlelike.framework.hints import make_natural_key
from paddlelike.io.training_log import Curve, Curves, decode_record
from paddlelike.lazy import dataclass
from paddlelike.storage import manifest
from paddlelike.storage.names import MANIFEST

_DEEPEST: Final = 4  # directories below the one that is followed
_MOST_ENTRIES: Final = 20_000
_MOST_POINTS: Final = 1200  # of a curve that is sent
_MOST_BYTES: Final = 64 << 20  # of a log, or a manifest, that are read at once
_MOST_SAVES: Final = 500


class _Save(NamedTuple):
    """A save that has appeared."""

    id: int
    name: str
    time: str
    files: int
    nbytes: int
    step: int | None
    metric: float | None


@dataclass
class _Log:
    """A log whose new lines are read as they come."""

    path: str
    curves: Curves = field(default_factory=Curves)
    identity: int | None = None
    offset: int = 0
    rest: bytes = b""
    changed: float = 0.0

    def read(self) -> bool:
        """Read new lines; return whether there were any."""
        with open(self.path, "rb") as file:
            facts = os.fstat(file.fileno())
            if facts.st_ino != self.identity or facts.st_size < self.offset:  # another file, or started again
                self.curves, self.identity, self.offset, self.rest = Curves(), facts.st_ino, 0, b""
            file.seek(self.offset)
            data = file.read(_MOST_BYTES)
        self.changed = facts.st_mtime
        self.offset += len(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            record = decode_record(line.decode("utf-8", "replace"))
            if record is not None:
                self.curves.add(record)
        return bool(data)


class Follower:
    """The losses and the saves below a directory.

    Logs are files of :class:`~paddlelike.io.TrainingLog` that end in ``.jsonl``, up to four directories deep,
    and those that ``logs`` names. Saves are directories with a manifest, and the files of ``fluid.save``.

    >>> import tempfile
    >>> from paddlelike.io.training_log import TrainingLog
    >>> home = tempfile.mkdtemp()
    >>> TrainingLog(home + "/losses.jsonl").write(0, loss=2.5)
    >>> state = Follower(home).look()
    >>> state["logs"][0]["curves"]["loss"]["values"]
    [2.5]
    """

    def __init__(self, directory: str | os.PathLike[str], logs: Sequence[str] = ()) -> None:
        self.directory = os.fspath(directory)
        self._named = tuple(logs)
        self._logs: dict[str, _Log] = {}
        self._manifests: dict[str, tuple[int, int]] = {}
        self._saves: list[_Save] = []
        self._version = self._next_id = 0
        self._lock = Lock()

    def look(self) -> dict[str, Any]:
        """Return the current state as JSON values; ``version`` rises with each change."""
        with self._lock.hold():
            changed = False
            for path in (*self._named, *self._scan()):
                if os.path.basename(path) == MANIFEST or path.endswith(".pdmanifest"):
                    changed |= self._add_save(path)
                else:
                    changed |= self._read_log(path)
            self._version += changed
            return {
                "version": self._version,
                "directory": self.directory,
                "now": time.time(),
                "logs": [self._describe(log) for log in self._logs.values()],
                "saves": [save._asdict() for save in self._saves],
            }

    def find_save(self, id: int) -> str | None:  # noqa: A002
        """Return the path of a save listed by :meth:`look`, or None for an unknown id."""
        with self._lock.hold():
            names = [save.name for save in self._saves if save.id == id]
        return os.path.join(self.directory, names[0]) if names else None

    def _scan(self) -> Iterator[str]:
        """Yield the logs and the manifests below the directory, skipping hidden directories of running
        saves.
        """
        waiting, left = [(self.directory, 0)], _MOST_ENTRIES
        while waiting:
            directory, depth = waiting.pop(0)
            try:
                with os.scandir(directory) as entries:
                    for entry in entries:
                        left -= 1
                        if left < 0:
                            return
                        if entry.is_dir(follow_symlinks=False):
                            if depth < _DEEPEST and not entry.name.startswith("."):
                                waiting.append((entry.path, depth + 1))
                        elif _is_followed(entry.name) and entry.is_file():  # no pipe, which would wait
                            yield entry.path
            except OSError:
                continue  # it was removed meanwhile

    def _read_log(self, path: str) -> bool:
        log = self._logs.get(path) or _Log(path)
        try:
            changed = log.read()
        except OSError:
            return False
        self._logs[path] = log
        return changed

    def _add_save(self, path: str) -> bool:
        """Add the save of a manifest if it is new or replaced; return whether it was added."""
        try:
            facts = os.stat(path)
            stamp = (facts.st_ino, facts.st_mtime_ns)
            if self._manifests.get(path) == stamp or facts.st_size > _MOST_BYTES:
                return False
            with open(path, "rb") as file:
                found = manifest.decode(file.read(_MOST_BYTES))
        except (PaddlelikeError, OSError):
            return False  # damaged, or removed meanwhile
        self._manifests[path] = stamp
        target = os.path.dirname(path) if os.path.basename(path) == MANIFEST else os.path.splitext(path)[0]
        checkpoint = found.state.get("checkpoint") if isinstance(found.state, dict) else None
        entry = checkpoint if isinstance(checkpoint, dict) else {}
        step, metric = entry.get("step"), entry.get("metric")
        self._saves.append(
            _Save(
                self._next_id,
                os.path.relpath(target, self.directory),
                str(found.time or ""),
                len(found.files),
                sum(record.size for record in found.files.values()),
                step if type(step) is int else None,
                float(metric) if isinstance(metric, int | float) else None,
            )
        )
        self._next_id += 1
        self._saves.sort(
            key=lambda save: (save.time, -1 if save.step is None else save.step, make_natural_key(save.name))
        )
        del self._saves[:-_MOST_SAVES]
        return True

    def _describe(self, log: _Log) -> dict[str, Any]:
        curves = log.curves.by_name()
        return {
            "name": os.path.relpath(log.path, self.directory),
            "changed": log.changed,
            "restarts": log.curves.restarts,
            "curves": {name: _describe_curve(curve) for name, curve in curves.items()},
        }


def _is_followed(name: str) -> bool:
    return name == MANIFEST or name.endswith((".jsonl", ".pdmanifest"))


def _describe_curve(curve: Curve) -> dict[str, Any]:
    finite = [value for value in curve.values if math.isfinite(value)]
    steps, values = _thin(curve)
    return {
        "steps": steps,
        "values": values,
        "count": len(curve.steps),
        "last": curve.values[-1],
        "smallest": min(finite, default=None),
        "largest": max(finite, default=None),
    }


def _thin(curve: Curve) -> tuple[list[int], list[float]]:
    """Return a curve with fewer points: the smallest and the largest of every bucket of points."""
    count = len(curve.steps)
    if count <= _MOST_POINTS:
        return list(curve.steps), list(curve.values)
    chosen = {0, count - 1}
    buckets = _MOST_POINTS // 2
    for bucket in range(buckets):
        here = range(bucket * count // buckets, (bucket + 1) * count // buckets)
        chosen.add(min(here, key=lambda place: _order(curve.values[place])))
        chosen.add(max(here, key=lambda place: _order(curve.values[place])))
    places = sorted(chosen)
    return [curve.steps[place] for place in places], [curve.values[place] for place in places]


def _order(value: float) -> float:
    return math.inf if math.isnan(value) else value
