"""The losses of a training run in a file of JSON lines, which is continued after restarts.

A line is ``{"run": 2, "step": 30, "values": {"loss": 0.25}, "crc32": "872773a6"}``; a value that is not
finite is a text, "nan" or "inf". The checksum covers the text before it; lines without a checksum are read as
well.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from paddlelike.errors import StorageError
from paddlelike.foundation.display import Displayed
from paddlelike.foundation.locks import close_at_end, close_files, open_file
from paddlelike.foundation.warn import warn_user
from paddlelike.hooks import Hook
from paddlelike.storage.local.filesystem.opening import open_regular
from paddlelike.storage.local.filesystem.owners import check_not_planted
from paddlelike.storage.local.filesystem.system import sync_directory
from paddlelike.storage.options import Durability, SaveOptions
from paddlelike.storage.problems import explain, is_there

if TYPE_CHECKING:
    from paddlelike.core.typing import Numbers

_CHECK: Final = re.compile(r'(?<=}), "crc32": "(.{8})"}')
_plot_log: Final[Hook[[TrainingLog, str | os.PathLike[str]], None]] = Hook("plot_log")


class Curve(NamedTuple):
    """A value by step; the steps rise."""

    steps: tuple[int, ...]
    values: tuple[float, ...]


class Record(NamedTuple):
    """A line of the file."""

    run: int
    step: int
    values: dict[str, float]


class Curves:
    """The values of all records so far; a later run's values replace the values of the steps it repeated.

    >>> found = Curves()
    >>> for record in (Record(1, 0, {"loss": 2.0}), Record(1, 1, {"loss": 1.0}), Record(2, 1, {"loss": 1.5})):
    ...     found.add(record)
    >>> found.by_name(), found.restarts
    ({'loss': Curve(steps=(0, 1), values=(2.0, 1.5))}, [1])
    """

    def __init__(self) -> None:
        self._points: dict[str, dict[int, float]] = {}
        self._firsts: dict[int, int] = {}
        self._run: int | None = None

    def add(self, record: Record) -> None:
        """Add a record, in the order of the file."""
        if record.run != self._run:
            self._run = record.run
            self._firsts.setdefault(record.run, record.step)
            for points in self._points.values():
                for step in [step for step in points if step >= record.step]:
                    del points[step]
        for name, value in record.values.items():
            self._points.setdefault(name, {})[record.step] = value

    def by_name(self) -> dict[str, Curve]:
        """Return the curves that have values."""
        return {name: Curve(*_sort(points)) for name, points in self._points.items() if points}

    @property
    def restarts(self) -> list[int]:
        """The first step of every run except the first run."""
        return list(self._firsts.values())[1:]


class TrainingLog(Displayed):
    """A file ``path`` of losses and other numbers by step, to which one process at a time appends.

    The first write of each object begins a run. A run that resumes from a checkpoint repeats the steps after
    it; :meth:`curves` then returns the values of the later run. Keep the file outside of saved directories,
    because Paddle reads every file there as a variable.

    Without ``durability="power"`` the system writes lines to the disk later, and a power cut may lose the
    last half minute.

    Parameters
    ----------
    path
        The path of the file, outside of saved directories.
    durability
        ``"power"`` writes every line to the disk before :meth:`write` returns.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/losses.jsonl"
    >>> log = TrainingLog(path)
    >>> for step in range(4):
    ...     log.write(step, loss=1.0 / (step + 1))
    >>> TrainingLog(path).write(2, loss=0.25)  # resumed from the checkpoint after step 1
    >>> log.curves()["loss"], log.restarts()
    (Curve(steps=(0, 1, 2), values=(1.0, 0.5, 0.25)), [2])
    """

    def __init__(
        self, path: str | os.PathLike[str], *, durability: Durability = SaveOptions.durability
    ) -> None:
        self.path = os.fspath(path)
        self._power = SaveOptions(durability=durability).durability == "power"
        self._run: int | None = None

    def write(self, step: int, **values: Numbers) -> None:
        """Append the values of a step: numbers, or arrays of one element as ``Executor.run`` returns them.

        Raises
        ------
        ValueError
            There is no value, one has several elements, or the step is negative.
        OSError
            The file cannot be written; it is named.
        """
        if not values or step < 0:
            raise ValueError(
                f"TrainingLog.write takes a step of 0 or more and values, got {step} and {values}"
            )
        record = {name: _encode_number(name, value) for name, value in values.items()}
        begin, is_new = "", False
        if self._run is None:
            begin, self._run = self._begin_run()
            is_new = not is_there(self.path)
        line = json.dumps({"run": self._run, "step": int(step), "values": record})[:-1]
        line += f', "crc32": "{_compute(line)}"}}'
        files: list[int] = []
        try:
            with close_at_end(files):
                open_file(files, self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
                data = f"{begin}{line}\n".encode()
                count = os.write(files[0], data)  # one call, so that readers see only whole lines
                if count < len(data):
                    os.ftruncate(files[0], os.fstat(files[0]).st_size - count)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
                if self._power:
                    os.fsync(files[0])
                close_files(files)
        except OSError as error:
            raise explain(StorageError, f"{self.path} cannot be written", error) from error
        if is_new and self._power:
            sync_directory(os.path.dirname(self.path) or ".")

    def curves(self) -> dict[str, Curve]:
        """Return the values by name. If a later run repeated a step, its values replace the earlier ones."""
        return self._collect().by_name()

    def restarts(self) -> list[int]:
        """Return the first step of every run except the first run."""
        return self._collect().restarts

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the curves into a file, ``.svg``, ``.png`` or ``.pdf``; restarts are dotted lines.

        Raises ExtraMissingError without matplotlib, ValueError for another ending.
        """
        _plot_log.function(self, path)

    def __repr__(self) -> str:
        return f"TrainingLog({self.path!r})"

    def _begin_run(self) -> tuple[str, int]:
        """Return the bytes that complete a line left by a killed process, and the index of the new run."""
        run = 1 + max((record.run for record in self._read()), default=0)
        try:
            check_not_planted(self.path)
            with open(self.path, "rb") as file:
                file.seek(-1, os.SEEK_END)
                return ("" if file.read() == b"\n" else "\n"), run
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EINVAL):  # there is no file, or it is empty
                raise explain(StorageError, f"{self.path} cannot be read", error) from error
            return "", run

    def _collect(self) -> Curves:
        found = Curves()
        for record in self._read():
            found.add(record)
        return found

    def _read(self) -> Iterator[Record]:
        """Yield the records."""
        damaged: list[str] = []
        if not is_there(self.path):
            return
        opened, _ = open_regular(self.path)  # not a pipe: nobody may ever write to it
        try:
            with opened as (fd, _), open(fd, encoding="utf-8", errors="replace", closefd=False) as file:
                for index, line in enumerate(file, 1):
                    record = decode_record(line)
                    if record is not None:
                        yield record
                    elif _is_damaged(line):
                        damaged.append(str(index))
        except OSError as error:
            raise explain(StorageError, f"{self.path} cannot be read", error) from error
        if damaged:
            warn_user(f"{self.path} is damaged: these lines were left out: {', '.join(damaged[:8])}")


def _is_damaged(line: str) -> bool:
    """Return whether a complete line is damaged, rather than cut off because its writer ended."""
    if re.search(r', "crc32": ".{10}', line):
        return True
    if not line.startswith('{"run"') or line.count("{") != line.count("}"):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False  # another program's


def decode_record(line: str) -> Record | None:
    """Return the record of a line; None if it is incomplete, damaged or not a record.

    >>> decode_record('{"run": 1, "step": 3, "values": {"loss": "nan"}}')
    Record(run=1, step=3, values={'loss': nan})
    """
    try:
        record = json.loads(line)
        check = _CHECK.search(line)
        if check is not None and check[1] != _compute(line[: check.start()]):
            return None
        values = {str(name): float(value) for name, value in record["values"].items()}
        return Record(int(record["run"]), int(record["step"]), values)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def _compute(front: str) -> str:
    return f"{zlib.crc32(front.encode()):08x}"


def _encode_number(name: str, value: object) -> float | str:
    array = np.asarray(value)
    if array.size != 1:
        raise ValueError(f"TrainingLog.write: {name} has shape {array.shape}, expected one element")
    number = float(array.reshape(-1)[0])
    return number if math.isfinite(number) else str(number)


def _sort(points: dict[int, float]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    steps = tuple(sorted(points))
    return steps, tuple(points[step] for step in steps)
