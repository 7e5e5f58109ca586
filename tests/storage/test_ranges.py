"""Checksums of a file that several processes write are those of the whole, wherever the borders lie."""

from __future__ import annotations

import random
from contextlib import nullcontext
from itertools import chain, pairwise
from pathlib import Path

import pytest

from paddlelike.errors import StorageError
from paddlelike.storage import hashing
from paddlelike.storage.hashing import PIECE
from paddlelike.storage.local.files import File
from paddlelike.storage.ranges import RangeHasher, RangeSums, join_ranges

SIZE = 3 * PIECE + 100
BORDERS = [
    [30, SIZE],
    [30, 31, SIZE],
    [30, PIECE, SIZE],
    [30, PIECE - 1, PIECE + 1, 2 * PIECE, SIZE],
    [30, PIECE + 7, PIECE + 9, PIECE + 9, PIECE + 11, 3 * PIECE + 99, SIZE],
    [0, SIZE],
]


def write(path: Path, borders: list[int]) -> tuple[bytes, list[RangeSums]]:
    data = random.Random(3).randbytes(SIZE)
    path.write_bytes(data)
    sums = []
    for start, stop in pairwise(borders):
        hasher = RangeHasher(start, stop - start)
        middle = (start + stop) // 2  # in two calls
        hasher.update(data[start:middle])
        hasher.update(memoryview(data)[middle:stop])
        sums.append(RangeSums.parse(hasher.sums().to_json()))
    return data, sums


@pytest.mark.parametrize("borders", BORDERS, ids=str)
def test_joined_ranges_have_the_checksums_of_the_whole_file(tmp_path: Path, borders: list[int]) -> None:
    data, sums = write(tmp_path / "w", borders)
    whole = hashing.PieceHasher()
    whole.update(data)
    with File(tmp_path / "w") as file:
        found = join_ranges(file, data[: borders[0]], sums)
    assert found == hashing.finish(whole, "xxh3_128")


@pytest.mark.parametrize("borders", BORDERS, ids=str)
def test_a_byte_that_changes_before_the_ranges_are_joined_is_detected(
    tmp_path: Path, borders: list[int]
) -> None:
    data, sums = write(tmp_path / "w", borders)
    right = hashing.hash_bytes(data)
    for at in {0, 29, 30, PIECE - 1, PIECE, PIECE + 8, 2 * PIECE, 3 * PIECE, SIZE - 1}:
        bad = bytearray(data)
        bad[at] ^= 1
        (tmp_path / "w").write_bytes(bad)
        inner = [range(-(-start // PIECE), stop // PIECE) for start, stop in pairwise(borders)]
        refused = pytest.raises(StorageError, match="are not those that were written")
        with File(tmp_path / "w") as file, nullcontext() if at // PIECE in chain(*inner) else refused:
            assert join_ranges(file, data[: borders[0]], sums).text == right  # so verify finds the byte


def test_bytes_that_nobody_wrote_are_an_error(tmp_path: Path) -> None:
    data, sums = write(tmp_path / "w", [30, PIECE + 7, PIECE + 9, SIZE])
    with File(tmp_path / "w") as file, pytest.raises(StorageError, match=r"are not those|written by nobody"):
        join_ranges(file, data[:30], [sums[0], sums[2]])


@pytest.mark.parametrize("change", [{"start": None}, {"pieces": "ab"}, {"size": "7"}, {"pieces": 3}], ids=str)
def test_checksums_from_another_process_are_checked(change: dict[str, object]) -> None:
    held = RangeHasher(5, 2 * PIECE).sums().to_json() | change
    with pytest.raises(ValueError, match="checksums"):
        RangeSums.parse(held)
