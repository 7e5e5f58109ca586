"""Checksums: by pieces, independent of how the bytes arrive, and those of other tools."""

from __future__ import annotations

import hashlib
import os
import random
import zlib

import pytest
import xxhash

from paddlelike.storage.hashing import PIECE, PieceHasher, hash_bytes
from paddlelike.storage.manifest import Record
from paddlelike.storage.verification import describes

SIZES = [0, 1, 100, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 17]


def plain(data: bytes) -> str:
    """The definition, written a second time."""
    if len(data) <= PIECE:
        return xxhash.xxh3_128(data).hexdigest()
    pieces = [data[at : at + PIECE] for at in range(0, len(data), PIECE)]
    return xxhash.xxh3_128(b"".join(xxhash.xxh3_128(piece).digest() for piece in pieces)).hexdigest()


@pytest.mark.parametrize("size", SIZES)
def test_the_checksum_does_not_depend_on_the_buffers(size):
    dice = random.Random(size)
    data = dice.randbytes(size)
    hasher = PieceHasher()
    at = 0
    while at < size:
        count = dice.choice([1, 30, 1000, PIECE // 2, PIECE, 2 * PIECE])
        hasher.update(memoryview(data)[at : at + count])
        at += count
    assert hasher.hexdigest() == hasher.copy().hexdigest() == plain(data)
    assert hash_bytes(data) == f"xxh3_128:{plain(data)}"
    pieces = [data[at : at + PIECE] for at in range(0, size, PIECE)]
    wanted = tuple(xxhash.xxh3_128(piece).hexdigest() for piece in pieces) if size > PIECE else ()
    assert hasher.pieces() == wanted


def test_sha256_and_crc32_match_the_standard_library():
    assert hash_bytes(b"abc", "sha256") == "sha256:" + hashlib.sha256(b"abc").hexdigest()
    assert hash_bytes(b"abc", "crc32") == f"crc32:{zlib.crc32(b'abc'):08x}"


def test_a_manifest_of_another_save_is_distinguished_from_damage(tmp_path):
    records = {}
    for name in "abcd":
        (tmp_path / name).write_bytes(name.encode())
        facts = (tmp_path / name).stat()
        records[name] = Record(1, hash_bytes(name.encode()), (facts.st_ino, facts.st_mtime_ns))
    assert describes(tmp_path, records, ["a"])  # one damaged file
    assert describes(tmp_path, records, ["a", "b", "c"])  # d is still the file that was saved
    moved = {name: record._replace(stamp=(1, 2)) for name, record in records.items()}
    assert describes(tmp_path, moved, ["a", "b"])  # a copy with two damaged files
    assert not describes(tmp_path, moved, ["a", "b", "c"])  # of another save
    assert describes(tmp_path, {"a": moved["a"]}, ["a"])  # a single file: damaged


def test_files_saved_later_by_another_program_are_not_reported_as_damaged(tmp_path):
    records = {}
    (tmp_path / "__manifest__").write_bytes(b"")
    os.utime(tmp_path / "__manifest__", ns=(10**18, 10**18))
    for name in "abc":
        (tmp_path / name).write_bytes(name.encode())
        os.utime(tmp_path / name, ns=(10**18 + 2 * 10**9,) * 2)
        records[name] = Record(1, hash_bytes(name.encode()), (1, 2))
    assert not describes(tmp_path, records, ["a"])  # b and c have the same values in both saves
    os.utime(tmp_path / "c", ns=(10**18 + 4 * 10**9,) * 2)  # written by hand, one now, one then
    assert describes(tmp_path, records, ["a"])
    os.utime(tmp_path / "b", ns=(10**18, 10**18))  # a copy that keeps times, where a was damaged
    assert describes(tmp_path, records, ["a"])
