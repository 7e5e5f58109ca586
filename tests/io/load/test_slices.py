"""Slices: the rows asked for, and no other byte."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import paddlelike as fluid
from paddlelike.errors import LoadError
from paddlelike.formats.paddle import lod_tensor
from paddlelike.io.contents import read
from paddlelike.io.contents.directory import DirectoryContents
from paddlelike.storage import manifest
from paddlelike.storage.local.files import File
from paddlelike.storage.local.transaction import write_all
from tests.io.load.reads import counting_reads, needs_read_counts
from tests.io.loading import network, own, save

F32 = "float32"


@pytest.fixture(autouse=True)
def scope() -> Iterator[fluid.Scope]:
    with fluid.scope_guard(fluid.Scope()):
        yield fluid.global_scope()


@pytest.fixture
def table(tmp_path: Path) -> np.ndarray:
    rows = np.arange(100_000 * 16, dtype=F32).reshape(100_000, 16)
    own(tmp_path, "emb", rows)
    return rows


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(bounds=st.tuples(st.integers(0, 100_000), st.integers(0, 100_000)).map(sorted))
def test_a_slice_equals_indexing(tmp_path: Path, table: np.ndarray, bounds: list[int]) -> None:
    start, stop = bounds
    part = fluid.io.load_slice(tmp_path, "emb", (start, stop))
    assert part.dtype == table.dtype
    np.testing.assert_array_equal(part, table[start:stop])


@needs_read_counts
def test_only_the_header_and_the_rows_are_read(
    tmp_path: Path, table: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted at the calls of the system, and confirmed by what the kernel counts for this process."""
    fluid.io.load_slice(tmp_path, "emb", (0, 1))  # whatever is imported, is
    reads: list[tuple[int, int]] = []
    pread, preadv = File._pread, File._preadv

    def counted_pread(self: File, size: int, offset: int) -> bytes:
        data = pread(self, size, offset)
        reads.append((offset, len(data)))
        return data

    def counted_preadv(self: File, target: memoryview, offset: int) -> int:
        count = preadv(self, target, offset)
        reads.append((offset, count))
        return count

    monkeypatch.setattr(File, "_pread", counted_pread)
    monkeypatch.setattr(File, "_preadv", counted_preadv)

    with counting_reads() as count:
        part = fluid.io.load_slice(tmp_path, "emb", (50_000, 50_100))
        counted = count()
    np.testing.assert_array_equal(part, table[50_000:50_100])
    header, *rest = reads
    assert header == (0, 4096)
    data_offset = (tmp_path / "emb").stat().st_size - table.nbytes
    assert rest == [(data_offset + 50_000 * 64, 6400)]
    assert counted <= 4096 + 6400 + 256  # and the looking


def test_a_large_slice_is_read_in_several_ranges(
    tmp_path: Path, table: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "_RANGE", 1 << 20)
    seen: list[int] = []
    fill = read._fill

    def counted(file: Any, part: Any) -> None:
        seen.append(len(part.target))
        fill(file, part)

    monkeypatch.setattr(read, "_fill", counted)
    part = fluid.io.load_slice(tmp_path, "emb", (1000, 99_000))
    np.testing.assert_array_equal(part, table[1000:99_000])
    assert sum(seen) == part.nbytes
    assert sorted(seen)[-1] == 1 << 20
    assert len(seen) == 6


@pytest.mark.parametrize("bounds", [(-1, 5), (5, 4), (99_999, 100_001), (100_001, 100_001)])
def test_an_error_about_missing_rows_names_both_sizes(
    tmp_path: Path, table: np.ndarray, bounds: tuple[int, int]
) -> None:
    with pytest.raises(LoadError, match=rf"rows {bounds[0]} to {bounds[1]} .* it has 100000 rows"):
        fluid.io.load_slice(tmp_path, "emb", bounds)


@pytest.mark.parametrize("rows", [5, (1,), (1, 2, 3), ("a", "b"), (1.5, 2)])
def test_rows_must_be_two_integers(tmp_path: Path, table: np.ndarray, rows: Any) -> None:
    with pytest.raises(TypeError, match="rows must be"):
        fluid.io.load_slice(tmp_path, "emb", rows)
    assert fluid.io.load_slice(tmp_path, "emb", (np.int64(1), np.int32(2))).shape == (1, 16)


def test_a_slice_of_a_scalar_or_of_sequences_is_refused(tmp_path: Path) -> None:
    own(tmp_path, "s", np.float32(1))
    with pytest.raises(LoadError, match="it has 0 rows"):
        fluid.io.load_slice(tmp_path, "s", (0, 1))
    from paddlelike.formats.paddle import lod_tensor

    tensor = fluid.create_lod_tensor(np.zeros((5, 1), F32), [[2, 3]], fluid.CPUPlace())
    (tmp_path / "lod").write_bytes(b"".join(bytes(b) for b in lod_tensor.encode(tensor)))
    with pytest.raises(LoadError, match="LoD"):
        fluid.io.load_slice(tmp_path, "lod", (0, 1))


def test_errors_about_slices_suggest_near_names(tmp_path: Path, table: np.ndarray) -> None:
    with pytest.raises(LoadError, match=r"did you mean 'emb"):
        fluid.io.load_slice(tmp_path, "embb", (0, 1))
    with pytest.raises(LoadError, match="there is no directory"):
        fluid.io.load_slice(tmp_path / "nowhere", "emb", (0, 1))


@pytest.mark.parametrize("known", ["manifest", "names", "program"])
def test_a_slice_of_a_combined_file_is_read(tmp_path: Path, known: str) -> None:
    saved = save(tmp_path / "a", network(words=50), "all")
    names: Any = {"manifest": None, "names": list(saved), "program": network(words=50)[0]}[known]
    if known != "manifest":
        (tmp_path / "a" / "__manifest__").unlink()
        with pytest.raises(LoadError, match="stores no names"):
            fluid.io.load_slice(tmp_path / "a", "embedding_0.w_0", (0, 1), filename="all")
    part = fluid.io.load_slice(tmp_path / "a", "embedding_0.w_0", (10, 20), filename="all", names=names)
    np.testing.assert_array_equal(part, saved["embedding_0.w_0"][10:20])
    with pytest.raises(LoadError, match=r"does not hold 'embedding_0\.w_1'"):
        fluid.io.load_slice(tmp_path / "a", "embedding_0.w_1", (10, 20), filename="all", names=names)


def test_slices_have_the_memory_layout_of_the_scope(tmp_path: Path, table: np.ndarray) -> None:
    from paddlelike.core import memory

    assert memory.is_placed(fluid.io.load_slice(tmp_path, "emb", (10, 90_000)))


def test_a_slice_is_compared_with_the_manifest(tmp_path: Path) -> None:
    """Of a file of 4 MB only the pieces that the rows are in; a changed byte elsewhere is not seen."""
    rows = 65_536
    saved = save(tmp_path / "a", network(words=rows))["embedding_0.w_0"]
    path = tmp_path / "a" / "embedding_0.w_0"
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    part = fluid.io.load_slice(tmp_path / "a", "embedding_0.w_0", (0, 10))
    np.testing.assert_array_equal(part, saved[:10])
    with pytest.raises(LoadError, match=r"not what was saved.*\n.*embedding_0\.w_0"):
        fluid.io.load_slice(tmp_path / "a", "embedding_0.w_0", (rows - 10, rows))
    wrong = fluid.io.load_slice(tmp_path / "a", "embedding_0.w_0", (rows - 10, rows), verify=False)
    assert (wrong != saved[-10:]).sum() == 1


def test_a_slice_of_a_changed_combined_file_is_refused(tmp_path: Path) -> None:
    saved = save(tmp_path / "a", network(words=50), "all")
    path = tmp_path / "a" / "all"
    data = bytearray(path.read_bytes())
    at = data.index(saved["embedding_0.w_0"][11].tobytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(LoadError, match="not what was saved"):
        fluid.io.load_slice(tmp_path / "a", "embedding_0.w_0", (10, 20), filename="all")
    part = fluid.io.load_slice(tmp_path / "a", "embedding_0.w_0", (10, 20), filename="all", verify=False)
    assert part.shape == (10, saved["embedding_0.w_0"].shape[1])


def test_rows_come_from_one_save_even_if_another_save_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is replaced by one of another shape after its header was read."""
    first, second = np.arange(40, dtype=F32).reshape(10, 4), np.arange(60, dtype=F32).reshape(10, 6)
    write_all(tmp_path, {"emb": lod_tensor.encode(first)})
    read_values, calls = DirectoryContents.read, []

    def replaced_before(self: DirectoryContents, *args: Any, **keywords: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            write_all(tmp_path, {"emb": lod_tensor.encode(second)})
        return read_values(self, *args, **keywords)

    monkeypatch.setattr(DirectoryContents, "read", replaced_before)
    np.testing.assert_array_equal(fluid.io.load_slice(tmp_path, "emb", (2, 5)), second[2:5])
    assert len(calls) == 2


@needs_read_counts
@pytest.mark.parametrize("servers", [2, 4, 7])
def test_a_verified_slice_reads_hardly_more_than_its_rows(tmp_path: Path, servers: int) -> None:
    """Pieces of 1 MiB that a slice shares with others are compared by parts."""
    rows = 300_000
    values = np.arange(rows * 32, dtype=F32).reshape(rows, 32)
    fluid.global_scope().var("emb").get_tensor().set(values, fluid.CPUPlace())
    main = fluid.Program()
    main.global_block().create_parameter(name="emb", shape=values.shape, dtype=F32)
    fluid.io.save_persistables(fluid.Executor(), str(tmp_path / "m"), main)
    for server in range(servers):
        start, stop = rows * server // servers, rows * (server + 1) // servers
        with counting_reads() as count:
            part = fluid.io.load_slice(tmp_path / "m", "emb", (start, stop), verify=True)
            counted = count()
        np.testing.assert_array_equal(part, values[start:stop])
        assert counted <= 1.01 * part.nbytes + (tmp_path / "m" / "__manifest__").stat().st_size


@pytest.mark.parametrize("parts", ["x", "\u00e9", "AAAA"])
def test_slices_are_verified_by_whole_pieces_if_part_checksums_do_not_match(
    tmp_path: Path, parts: str
) -> None:
    values = np.arange(300_000 * 4, dtype=F32).reshape(-1, 4)
    fluid.global_scope().var("emb").get_tensor().set(values, fluid.CPUPlace())
    main = fluid.Program()
    main.global_block().create_parameter(name="emb", shape=values.shape, dtype=F32)
    fluid.io.save_persistables(fluid.Executor(), str(tmp_path / "m"), main)
    path = tmp_path / "m" / "__manifest__"
    record = manifest.decode(path.read_bytes()).files["emb"]
    path.write_bytes(manifest.encode({"emb": record._replace(parts=parts)}))
    np.testing.assert_array_equal(fluid.io.load_slice(tmp_path / "m", "emb", (5, 9)), values[5:9])
    with (tmp_path / "m" / "emb").open("r+b") as file:
        file.seek(900)
        file.write(b"damage")
    os.utime(tmp_path / "m" / "emb", ns=(0, record.stamp[1]))
    with pytest.raises(LoadError, match="are not those that were saved"):
        fluid.io.load_slice(tmp_path / "m", "emb", (5, 9))


@pytest.mark.parametrize("size", [3_000, 200_000, 1_000_000, 5_000_000])
def test_a_slice_detects_flipped_bits_only_in_its_own_rows(tmp_path: Path, size: int) -> None:
    values = np.arange(size // 16 * 4, dtype=F32).reshape(-1, 4)
    fluid.global_scope().var("emb").get_tensor().set(values, fluid.CPUPlace())
    main = fluid.Program()
    main.global_block().create_parameter(name="emb", shape=values.shape, dtype=F32)
    fluid.io.save_persistables(fluid.Executor(), str(tmp_path / "m"), main)
    path = tmp_path / "m" / "emb"
    whole, stamp = path.read_bytes(), path.stat()
    front = len(whole) - values.nbytes
    dice = np.random.default_rng(0)
    for _ in range(30):
        start, stop = sorted(dice.integers(0, len(values), 2).tolist())
        at = front + int(dice.integers(start * 16, stop * 16 + 1))
        flipped = bytearray(whole)
        flipped[min(at, len(whole) - 1)] ^= 1 << int(dice.integers(0, 8))
        path.write_bytes(flipped)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        if start * 16 <= at - front < stop * 16:
            with pytest.raises(LoadError, match=r"not those that were saved|differ|changed"):
                fluid.io.load_slice(tmp_path / "m", "emb", (start, stop))
    path.write_bytes(whole)
    np.testing.assert_array_equal(fluid.io.load_slice(tmp_path / "m", "emb", (1, 5)), values[1:5])
