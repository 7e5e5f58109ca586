"""Bytes of files straight into new arrays: several files at once, large ones in ranges, hashed on the way."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from paddlelike.errors import FormatError, PaddlelikeError
from paddlelike.storage import hashing
from paddlelike.storage.location import File
from paddlelike.storage.manifest import Record
from paddlelike.storage.threads import run_in_threads

__all__ = ["Job", "Part", "bytes_of", "hash_file", "misfit", "of_buffer", "read_jobs"]

T = TypeVar("T")

_RANGE: Final = 16 << 20  # bytes that one thread reads at a time
_PIECE: Final = 1 << 20  # stays in the processor's cache between reading and hashing
_NEAR: Final = 64 << 10  # parts of one file below this are read together, through a buffer


def bytes_of(array: np.ndarray[Any, Any]) -> memoryview:
    """The memory of a C-order array as bytes."""
    return array.reshape(-1).view(np.uint8).data


class Part(NamedTuple):
    """Where bytes of a file go."""

    offset: int
    target: memoryview


class Job(NamedTuple):
    """What is wanted of one file."""

    name: str
    open: Callable[[], File]
    size: int  # of the file, when its header was read
    parts: Sequence[Part]  # in the order of their offsets
    record: Record | None = None  # what the manifest says, where it is compared


def read_jobs(jobs: Sequence[Job]) -> list[tuple[str, str]]:
    """Carry out the jobs; returns the names of files whose bytes are not those of their records, and why.

    Raises
    ------
    StorageError, FormatError
        A file cannot be read, or is another one than when its header was read.
    """
    checked = [job for job in jobs if job.record is not None]
    problems = run_in_threads([functools.partial(_read_hashed, job) for job in checked])
    plain = [job for job in jobs if job.record is None]
    run_in_threads([functools.partial(_read_run, run) for run in _runs(plain)])
    return [
        (job.name, problem) for job, problem in zip(checked, problems, strict=True) if problem is not None
    ]


def misfit(name: str, size: int, record: Record | None) -> str | None:
    """Why a file of ``size`` bytes cannot be what was saved or cannot be compared, or None."""
    if record is None:
        return f"{name}: the manifest does not know this file"
    if size != record.size:
        return f"{name}: {size} bytes, saved were {record.size}"
    if record.checksum is None:
        return f"{name}: no checksum was taken when it was saved"
    return None


def of_buffer(name: str, data: bytes | memoryview, record: Record | None) -> str | None:
    """Why the bytes of a file are not those that were saved, or None."""
    problem = misfit(name, len(data), record)
    if problem is not None:
        return problem
    assert record is not None
    assert record.checksum is not None
    return _compared(name, hashing.hash_buffers([data], _algorithm(record)), record)


class _Run(NamedTuple):
    """Bytes that one thread reads, one after the other."""

    job: Job
    parts: Sequence[Part]


def _runs(jobs: Iterable[Job]) -> list[list[_Run]]:
    """Work for the threads, about ``_RANGE`` bytes each, the large pieces first."""
    runs: list[list[_Run]] = []
    small: list[_Run] = []
    size = 0
    for job in jobs:
        near: list[Part] = []
        for part in job.parts:
            if len(part.target) < _RANGE:
                near.append(part)
                continue
            runs += [
                [_Run(job, [Part(part.offset + at, part.target[at : at + _RANGE])])]
                for at in range(0, len(part.target), _RANGE)
            ]
        while near:
            count, taken = 0, 0
            while count < len(near) and taken + size < _RANGE:
                taken += len(near[count].target)
                count += 1
            small.append(_Run(job, near[:count]))
            near, size = near[count:], size + taken
            if size >= _RANGE:
                runs.append(small)
                small, size = [], 0
    if small:
        runs.append(small)
    return runs


def _read_run(run: list[_Run]) -> None:
    for job, parts in run:
        with job.open() as file:
            _same_size(file, job)
            for near in _near(parts):
                if len(near) == 1:
                    _fill(file, near[0])
                else:
                    _fill_near(file, near)


def _near(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """The parts, small ones that lie close together in one list."""
    batch: list[Part] = []
    for part in parts:
        small = len(part.target) < _NEAR
        if batch and (not small or part.offset + len(part.target) - batch[0].offset > _PIECE):
            yield batch
            batch = []
        if small:
            batch.append(part)
        else:
            yield [part]
    if batch:
        yield batch


def _fill(file: File, part: Part) -> None:
    count = file.readinto_at(part.offset, part.target)
    if count != len(part.target):
        raise FormatError(f"offset {part.offset}: only {count} of {len(part.target)} bytes came")


def _fill_near(file: File, parts: list[Part]) -> None:
    start = parts[0].offset
    size = parts[-1].offset + len(parts[-1].target) - start
    data = memoryview(file.read_at(start, size))
    if len(data) != size:
        raise FormatError(f"offset {start}: only {len(data)} of {size} bytes came")
    for offset, target in parts:
        target[:] = data[offset - start : offset - start + len(target)]


def _read_hashed(job: Job) -> str | None:
    """Fill the parts of a job and hash the whole file, piece by piece while it is in the cache."""
    assert job.record is not None
    assert job.record.checksum is not None
    algorithm = _algorithm(job.record)
    made = hashing.new_hasher(algorithm)
    with job.open() as file:
        _same_size(file, job)
        at = 0
        for part in (*job.parts, Part(file.size, memoryview(b""))):
            while at < part.offset:  # headers, and what follows the last part
                gap = file.read_at(at, min(part.offset - at, _PIECE))
                if not gap:
                    raise FormatError(f"offset {at}: the file became shorter")
                made.update(gap)
                at += len(gap)
            for start in range(0, len(part.target), _PIECE):
                piece = part.target[start : start + _PIECE]
                _fill(file, Part(at, piece))
                made.update(piece)
                at += len(piece)
    return _compared(job.name, f"{algorithm}:{made.hexdigest()}", job.record)


def _same_size(file: File, job: Job) -> None:
    if file.size != job.size:
        raise FormatError(f"the file had {job.size} bytes a moment ago, now it has {file.size}")


def _algorithm(record: Record) -> str:
    assert record.checksum is not None
    return record.checksum.partition(":")[0]


def _compared(name: str, checksum: str, record: Record) -> str | None:
    if checksum == record.checksum:
        return None
    return f"{name}: its bytes are not those that were saved ({checksum}; the manifest has {record.checksum})"


def hash_file(name: str, open_file: Callable[[], File], record: Record | None) -> str | None:
    """Why a file is not what was saved, or None."""
    try:
        with open_file() as file:
            problem = misfit(name, file.size, record)
            return (
                problem if problem is not None else _read_hashed(Job(name, open_file, file.size, (), record))
            )
    except (PaddlelikeError, OSError) as error:
        return f"{name}: {error}"
