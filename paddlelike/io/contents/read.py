"""Read bytes of files into arrays: several files at once, large files in ranges, compared during the read."""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import xxhash

from paddlelike.errors import FormatError
from paddlelike.foundation.progress import advance_progress
from paddlelike.io.contents.compare import compare_checksum
from paddlelike.storage import hashing
from paddlelike.storage.location import File
from paddlelike.storage.manifest import Record
from paddlelike.storage.threads import run_in_threads

_RANGE: Final = 16 << 20  # bytes that one thread reads at a time
_PIECE: Final = 1 << 20  # bytes; they stay in the processor's cache between reading and hashing
_NEAR: Final = 64 << 10  # smaller parts of one file are read together, through a buffer


def view_bytes(array: np.ndarray[Any, Any]) -> memoryview:
    """Return the memory of an array in C order as bytes."""
    return array.reshape(-1).view(np.uint8).data


class Part(NamedTuple):
    """A range of a file, and the memory that it is read into."""

    offset: int
    target: memoryview


class Job(NamedTuple):
    """The parts of one file that are read.

    Attributes
    ----------
    size
        The size of the file when its header was read.
    parts
        The parts in the order of their offsets.
    record
        The manifest's record, if the bytes are compared with it.
    partial
        Compare only the pieces of the file that overlap the parts, if the record has their checksums; of a
        piece that is not read whole, compare only its parts.
    """

    name: str
    open: Callable[[], File]
    size: int
    parts: Sequence[Part]
    record: Record | None = None
    partial: bool = False


def read_jobs(jobs: Sequence[Job]) -> list[tuple[str, str]]:
    """Read the parts of all jobs; return the files whose bytes differ from their records, each with a reason.

    Raises
    ------
    StorageError, FormatError
        A file cannot be read, or was replaced after its header was read.
    """
    compared: list[Callable[[], list[tuple[str, str]]]] = []
    small: list[Job] = []
    size = 0
    for job in jobs:
        if job.record is not None and (job.record.pieces or (job.partial and job.record.parts)):
            compared += [functools.partial(_read_pieces, job, run) for run in _group_pieces(job)]
        elif job.record is not None:
            small.append(job)
            size += job.size
            if size >= _RANGE:
                compared.append(functools.partial(_read_hashed, small))
                small, size = [], 0
    compared.append(functools.partial(_read_hashed, small))
    problems = run_in_threads(compared)
    plain = [job for job in jobs if job.record is None]
    run_in_threads([functools.partial(_read_run, run) for run in _group_runs(plain)])
    found: dict[str, str] = {}
    for name, problem in itertools.chain.from_iterable(problems):
        found.setdefault(name, problem)
    return list(found.items())


class _Run(NamedTuple):
    """Parts of one file that one thread reads in order."""

    job: Job
    parts: Sequence[Part]


def _group_runs(jobs: Iterable[Job]) -> list[list[_Run]]:
    """Return work for the threads, about ``_RANGE`` bytes each, with the large parts first."""
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
            _check_size(file, job)
            for near in _group_near(parts):
                if len(near) == 1:
                    _fill(file, near[0])
                else:
                    _fill_near(file, near)


def _group_near(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Yield the parts, small ones that are close together in one list."""
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
    advance_progress(count)
    if count != len(part.target):
        raise FormatError(f"offset {part.offset}: only {count} of {len(part.target)} bytes were read")


def _fill_near(file: File, parts: list[Part]) -> None:
    start = parts[0].offset
    size = parts[-1].offset + len(parts[-1].target) - start
    data = memoryview(file.read_at(start, size))
    if len(data) != size:
        raise FormatError(f"offset {start}: only {len(data)} of {size} bytes were read")
    advance_progress(size)
    for offset, target in parts:
        target[:] = data[offset - start : offset - start + len(target)]


def _group_pieces(job: Job) -> list[list[int]]:
    """Return the indexes of the pieces that are read and compared, several for each task."""
    count = -(-job.size // hashing.PIECE)
    indexes: Iterable[int] = range(count)
    if job.partial:
        touched = {
            index
            for part in job.parts
            for index in range(
                part.offset // hashing.PIECE, (part.offset + len(part.target) - 1) // hashing.PIECE + 1
            )
        }
        indexes = sorted(touched | {0})  # the header is in the first one
    listed = list(indexes)
    step = _RANGE // hashing.PIECE
    return [listed[at : at + step] for at in range(0, len(listed), step)]


def _read_pieces(job: Job, indexes: Sequence[int]) -> list[tuple[str, str]]:
    """Read pieces of a file into the parts that they overlap; return the first piece that differs, if any.
    All pieces are read even then, since the manifest may belong to another save.
    """
    assert job.record is not None
    problem: list[tuple[str, str]] = []
    begins = [part.offset for part in job.parts]
    sums = job.record.pieces or (str(job.record.checksum).partition(":")[2],)
    step, digests = hashing.list_parts(job.record.parts, job.size) if job.partial else (0, [])
    with job.open() as file:
        _check_size(file, job)
        for index in indexes:
            begin = index * hashing.PIECE
            end = min(begin + hashing.PIECE, job.size)
            overlapping = _find_overlapping(job.parts, begins, begin, end)
            if digests and _count_wanted(overlapping, begin, end) < end - begin:
                is_good = _fill_ends(file, overlapping, (begin, end), step, digests)
            else:
                fill = _fill_and_hash if len(overlapping) == 1 else _copy_and_hash
                is_good = fill(file, overlapping, begin, end) == (sums[index] if index < len(sums) else None)
            if not problem and not is_good:
                problem.append(
                    (job.name, f"{job.name}: its bytes {begin} to {end} are not those that were saved")
                )
    return problem


def _count_wanted(parts: Sequence[Part], begin: int, end: int) -> int:
    """Return the number of requested bytes in a range of the file."""
    return sum(min(part.offset + len(part.target), end) - max(part.offset, begin) for part in parts)


def _fill_ends(
    file: File, parts: Sequence[Part], piece: tuple[int, int], step: int, digests: Sequence[bytes]
) -> bool:
    """Fill the requested part of a piece of the file; return whether it matches its record."""
    begin, end = piece
    touched = {0} if begin == 0 else set()  # the header
    for offset, target in parts:
        start, stop = max(offset, begin), min(offset + len(target), end)
        touched.update(range(start // step, -(-stop // step)))
    is_good = True
    for first, last in _find_runs(sorted(touched)):
        start, stop = first * step, min(last * step, end)
        data = memoryview(file.read_at(start, stop - start))
        if len(data) != stop - start:
            raise FormatError(f"offset {start}: only {len(data)} of {stop - start} bytes were read")
        advance_progress(len(data))
        for index in range(first, last):
            part = data[index * step - start : (index + 1) * step - start]
            is_good = is_good and hashing.hash_part(part, step) == digests[index]
        for offset, target in parts:
            a, b = max(offset, start), min(offset + len(target), stop)
            if a < b:
                target[a - offset : b - offset] = data[a - start : b - start]
    return is_good


def _find_runs(indexes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges (first, last + 1) of consecutive indexes."""
    for _, run in itertools.groupby(enumerate(indexes), lambda pair: pair[1] - pair[0]):
        listed = [index for _, index in run]
        yield listed[0], listed[-1] + 1


def _find_overlapping(parts: Sequence[Part], begins: list[int], begin: int, end: int) -> Sequence[Part]:
    """Return the parts that overlap a range; their offsets are ``begins``, and they do not overlap."""
    first = max(bisect.bisect_right(begins, begin) - 1, 0)
    if first < len(parts) and parts[first].offset + len(parts[first].target) <= begin:
        first += 1
    return parts[first : bisect.bisect_left(begins, end)]


def _fill_and_hash(file: File, parts: Sequence[Part], begin: int, end: int) -> str:
    """Copy a piece of the file into the only part that overlaps it, and return the checksum of the piece."""
    offset, target = parts[0]
    start, stop = max(offset, begin), min(offset + len(target), end)
    inside = target[start - offset : stop - offset]
    _fill(file, Part(start, inside))
    if start == begin and stop == end:
        return xxhash.xxh3_128_hexdigest(inside)
    hasher = xxhash.xxh3_128(file.read_at(begin, start - begin))
    hasher.update(inside)
    hasher.update(file.read_at(stop, end - stop))
    return hasher.hexdigest()


def _copy_and_hash(file: File, parts: Sequence[Part], begin: int, end: int) -> str:
    """Copy a piece of the file into the parts that overlap it, and return the checksum of the piece."""
    piece = memoryview(file.read_at(begin, end - begin))
    if len(piece) != end - begin:
        raise FormatError(f"offset {begin}: only {len(piece)} of {end - begin} bytes were read")
    advance_progress(end - begin)
    for offset, target in parts:
        start, stop = max(offset, begin), min(offset + len(target), end)
        target[start - offset : stop - offset] = piece[start - begin : stop - begin]
    return xxhash.xxh3_128_hexdigest(piece)


def _read_hashed(jobs: Sequence[Job]) -> list[tuple[str, str]]:
    """Read whole files into the parts of their jobs; return those that differ from their records."""
    problems = [(job.name, _fill_and_compare(job)) for job in jobs]
    return [(name, problem) for name, problem in problems if problem is not None]


def _fill_and_compare(job: Job) -> str | None:
    """Fill the parts of a job and hash the whole file, piece by piece while it is in the cache."""
    assert job.record is not None
    algorithm = job.record.algorithm
    assert algorithm is not None
    hasher = hashing.new_hasher(algorithm)
    with job.open() as file:
        _check_size(file, job)
        at = 0
        for part in (*job.parts, Part(file.size, memoryview(b""))):
            while at < part.offset:  # headers, and the bytes after the last part
                gap = file.read_at(at, min(part.offset - at, _PIECE))
                if not gap:
                    raise FormatError(f"offset {at}: the file became shorter")
                hasher.update(gap)
                at += len(gap)
            for start in range(0, len(part.target), _PIECE):
                piece = part.target[start : start + _PIECE]
                _fill(file, Part(at, piece))
                hasher.update(piece)
                at += len(piece)
    return compare_checksum(job.name, f"{algorithm}:{hasher.hexdigest()}", job.record)


def _check_size(file: File, job: Job) -> None:
    if file.size != job.size:
        raise FormatError(f"the file had {job.size} bytes a moment ago, now it has {file.size}")
