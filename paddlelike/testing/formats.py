"""The contract of a format, as a test suite that the tests of every format inherit.

A test module subclasses :class:`FormatContract` and sets ``format``, ``golden_values`` and ``golden_files``;
the suite tests every promise of :mod:`paddlelike.formats.base`. A format of one file has its bytes under the
name "".
"""

from __future__ import annotations

import io
import random
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, ClassVar

import numpy as np
import pytest

from paddlelike.core import LoDTensor, SelectedRows, VarType, numpy_dtype
from paddlelike.errors import FormatError
from paddlelike.formats import registry
from paddlelike.formats.base import SNIFF_BYTES, FileFormat, FolderFormat
from paddlelike.formats.sources import Buffer, Source, as_source
from paddlelike.testing.damage import cuts, flips, peak_memory

Files = dict[str, bytes]

EXTREMES = (2**31 - 1, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1)


class MemoryFolder:
    """A folder whose files are byte strings."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = dict(files)

    def list_names(self) -> list[str]:
        return sorted(self._files)

    def has(self, name: str) -> bool:
        return name in self._files

    def open_file(self, name: str) -> AbstractContextManager[Source]:
        if name not in self._files:
            raise FormatError(f"no such file: {name}")
        return nullcontext(as_source(self._files[name]))


class CountingSource:
    """A source that counts the bytes read from it."""

    def __init__(self, data: bytes) -> None:
        self._source = as_source(data)
        self.size = len(data)
        self.read_bytes = 0

    def read_at(self, offset: int, size: int) -> Buffer:
        data = self._source.read_at(offset, size)
        self.read_bytes += len(data)
        return data

    def readinto_at(self, offset: int, target: memoryview) -> int:
        count = self._source.readinto_at(offset, target)
        self.read_bytes += count
        return count


class FormatContract:
    """The base of a format's tests; a subclass in a test module tests the whole contract."""

    format: ClassVar[FileFormat | FolderFormat]
    golden_values: ClassVar[Mapping[str, Any]]
    golden_files: ClassVar[Files]  # what writing golden_values gives; small enough to be read
    memory_per_byte: ClassVar[int] = 64  # that reading damaged files may take

    # --- the format seen through files that are byte strings ------------------------------------------

    @classmethod
    def write(cls, values: Mapping[str, Any]) -> Files:
        written = cls.format.write(values)
        if isinstance(written, Mapping):
            return {name: b"".join(buffers) for name, buffers in written.items()}
        return {"": b"".join(written)}

    @classmethod
    def source(cls, files: Files) -> Any:
        return MemoryFolder(files) if isinstance(cls.format, FolderFormat) else files[""]

    @classmethod
    def read(cls, files: Files) -> dict[str, Any]:
        return cls.format.read_all(cls.source(files))

    @classmethod
    def sniff(cls, files: Files) -> bool:
        if isinstance(cls.format, FolderFormat):
            return cls.format.sniff(MemoryFolder(files))
        return cls.format.sniff(files[""][:SNIFF_BYTES], len(files[""]))

    @classmethod
    def sample(cls) -> dict[str, Any]:
        """Return values of every kind that the format can hold, sorted by name."""
        rng = np.random.default_rng(0)
        holds = cls.format.holds
        values: dict[str, Any] = {}
        for dtype in sorted(holds.dtypes):
            array = rng.integers(0, 2 if dtype == VarType.BOOL else 100, (2, 3))
            values[f"dtype.{dtype.name}"] = array.astype(numpy_dtype(dtype))
        kind = numpy_dtype(sorted(holds.dtypes)[0])
        values["shape.none"] = np.ones((), kind)
        values["shape.empty"] = np.ones((0, 4), kind)
        values["shape.five"] = np.ones((1, 2, 1, 3, 2), kind)
        if holds.lod:
            values["lod"] = LoDTensor(np.ones((5, 1), kind), [[0, 1, 3], [0, 2, 3, 5]])
        if holds.selected_rows:
            values["rows"] = SelectedRows([4, 0, 4], 9, np.ones((3, 2), kind))
        return dict(sorted(values.items()))

    @classmethod
    def expected(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values under the names that the format gives them when they are read."""
        if cls.format.holds.names:
            return dict(values)
        return {str(index): value for index, value in enumerate(values.values())}

    @classmethod
    def damaged(cls, files: Files) -> Iterator[Files]:
        """Yield files cut at every length, with every byte changed, and with impossible sizes."""
        for name, data in files.items():
            for changed in (*cuts(data), *flips(data)):
                yield {**files, name: changed}
        yield from cls.oversized(files)

    @classmethod
    def oversized(cls, files: Files) -> Iterator[Files]:
        """Yield copies of the files in which a huge number replaces 4 or 8 bytes, at each position."""
        for name, data in files.items():
            for changed in _with_extremes(data):
                yield {**files, name: changed}

    # --- round trips ----------------------------------------------------------------------------------

    def test_golden_bytes(self) -> None:
        """Files of an earlier version stay readable, and equal values give equal bytes."""
        assert self.write(self.golden_values) == self.golden_files
        assert_same(self.read(self.golden_files), self.expected(self.golden_values))

    def test_values_come_back_as_they_were(self) -> None:
        values = self.sample()
        assert len(values) >= 4
        assert_same(self.read(self.write(values)), self.expected(values))

    def test_entries_describe_the_values_without_reading_them(self) -> None:
        values = self.expected(self.sample())
        files = self.write(self.sample())
        entries = {entry.name: entry for entry in self.format.entries(self.source(files))}
        assert entries.keys() == values.keys()
        for name, value in values.items():
            entry, array = entries[name], to_array(value)
            assert numpy_dtype(entry.dtype) == array.dtype
            assert (entry.shape, entry.nbytes) == (array.shape, array.nbytes)
            assert [list(level) for level in entry.lod] == (
                value.lod() if isinstance(value, LoDTensor) else []
            )
            assert (entry.kind == VarType.SELECTED_ROWS) == isinstance(value, SelectedRows)
            if entry.offset is not None:
                data = files[entry.file][entry.offset : entry.offset + entry.nbytes]
                assert data == array.tobytes()

    def test_the_order_of_entries_is_as_declared(self) -> None:
        values = dict(reversed(self.sample().items()))
        names = [entry.name for entry in self.format.entries(self.source(self.write(values)))]
        if not self.format.holds.names:
            assert names == [str(index) for index in range(len(values))]
        elif self.format.holds.order:
            assert names == list(values)
        else:
            assert sorted(names) == sorted(values)

    def test_equal_values_give_equal_bytes(self) -> None:
        assert self.write(self.sample()) == self.write(self.sample())
        if not self.format.holds.order:
            assert self.write(dict(reversed(self.sample().items()))) == self.write(self.sample())

    def test_other_layouts_are_written_in_c_order_and_little_endian(self) -> None:
        dtype = numpy_dtype(max(self.format.holds.dtypes, key=lambda one: numpy_dtype(one).itemsize))
        array = np.arange(6).reshape(2, 3).astype(dtype)
        assert self.write({"w": np.asfortranarray(array)}) == self.write({"w": array})
        assert self.write({"w": array.astype(dtype.newbyteorder(">"))}) == self.write({"w": array})

    def test_elements_that_are_not_encoded_are_not_copied(self) -> None:
        array = np.ones((64, 1024), numpy_dtype(sorted(self.format.holds.dtypes)[0]))
        (entry,) = self.format.entries(self.source(self.write({"w": array})))
        written = self.format.write({"w": array})
        files = list(written.values()) if isinstance(written, Mapping) else [written]
        buffers = [np.frombuffer(buffer, np.uint8) for file in files for buffer in file if len(buffer)]
        assert any(np.shares_memory(buffer, array) for buffer in buffers) == (entry.offset is not None)

    def test_reading_fills_a_given_array(self) -> None:
        array = np.ones((2, 3), numpy_dtype(sorted(self.format.holds.dtypes)[0]))
        source = self.source(self.write({"w": array}))
        (entry,) = self.format.entries(source)
        into = np.zeros_like(array)
        self.format.read(source, entry, into=into)
        np.testing.assert_array_equal(into, array)
        with pytest.raises(FormatError, match=r"\[2, 3\]"):
            self.format.read(source, entry, into=np.zeros((3, 3), array.dtype))

    # --- slices ---------------------------------------------------------------------------------------

    def test_slices_are_those_of_the_whole(self) -> None:
        source = self.source(self.write(self.sample()))
        seen = 0
        for entry in self.format.entries(source):
            whole = to_array(self.format.read(source, entry))
            height = entry.shape[0] if entry.shape else 0
            if entry.lod or entry.kind == VarType.SELECTED_ROWS:
                with pytest.raises(FormatError, match="cannot be read in slices"):
                    self.format.read_slice(source, entry, 0, 0)
                continue
            for start, stop in ((0, height), (0, 1), (1, 2), (height, height)):
                if entry.shape and stop <= height:
                    part = self.format.read_slice(source, entry, start, stop)
                    np.testing.assert_array_equal(part, whole[start:stop])
                    assert part.dtype == whole.dtype
                    seen += 1
            for start, stop in ((0, height + 1), (-1, height), (height, height - 1)):
                with pytest.raises(FormatError, match=f"it has {height} rows"):
                    self.format.read_slice(source, entry, start, stop)
        assert seen > 4

    def test_a_slice_reads_its_own_bytes_only(self) -> None:
        array = np.ones((1000, 100), numpy_dtype(sorted(self.format.holds.dtypes)[0]))
        files = self.write({"w": array})
        (entry,) = self.format.entries(self.source(files))
        if entry.offset is None:
            np.testing.assert_array_equal(self.format.read_slice(self.source(files), entry, 7, 9), array[7:9])
            return
        counting = CountingSource(files[entry.file])
        source: Any = counting if isinstance(self.format, FileFormat) else _OneFile(entry.file, counting)
        np.testing.assert_array_equal(self.format.read_slice(source, entry, 7, 9), array[7:9])
        assert counting.read_bytes == array[7:9].nbytes

    # --- what it is -----------------------------------------------------------------------------------

    def test_it_recognizes_its_own_files(self) -> None:
        assert self.sniff(self.golden_files)
        assert self.sniff(self.write(self.sample()))

    def test_other_files_are_not_recognized(self) -> None:
        for other in (b"", b"\0" * 2000, b"hello world " * 90, b"\xff" * 100):
            assert not self.sniff(dict.fromkeys(self.golden_files, other))

    def test_recognizing_never_raises(self) -> None:
        rng = random.Random(0)  # noqa: S311  (bytes to try)
        for _ in range(300):
            self.sniff({name: rng.randbytes(rng.choice((0, 1, 3, 30, 2000))) for name in self.golden_files})
        for files in self.damaged(self.golden_files):
            assert self.sniff(files) in (True, False)
        if isinstance(self.format, FolderFormat):
            assert not self.format.sniff(MemoryFolder({}))

    def test_a_description_names_every_entry(self) -> None:
        description = self.format.describe(self.source(self.golden_files))
        text = str(description)
        assert text.startswith(f"{self.format.title}: {len(self.golden_values)} entries")
        assert all(f"\n  {name}: " in text for name in self.expected(self.golden_values))

    def test_the_registry_knows_it_by_its_name(self) -> None:
        assert registry.find(self.format.name) == self.format
        assert registry.sniff(self.source(self.golden_files)) == self.format

    def test_a_seekable_file_is_read_like_its_bytes(self) -> None:
        if isinstance(self.format, FileFormat):
            file = io.BytesIO(self.golden_files[""])
            assert_same(self.format.read_all(file), self.expected(self.golden_values))
        else:
            assert self.golden_files.keys() != {""}

    # --- what it cannot hold --------------------------------------------------------------------------

    def test_what_it_cannot_hold_is_refused_before_anything_is_written(self) -> None:
        good = np.ones(2, numpy_dtype(sorted(self.format.holds.dtypes)[0]))
        bad: dict[str, Any] = {"text": np.array(["text"]), "objects": np.array([None]), "none": LoDTensor()}
        if not self.format.holds.lod:
            bad["lod"] = LoDTensor(np.ones((2, 1), good.dtype), [[0, 2]])
        if not self.format.holds.selected_rows:
            bad["rows"] = SelectedRows([1], 2, np.ones((1, 2), good.dtype))
        for name, value in bad.items():
            with pytest.raises(FormatError, match=f"{name!r}: "):
                self.format.write({"good": good, name: value})
        with pytest.raises(FormatError, match=r"'none': .*'text': |'text': .*'none': "):
            self.format.write(bad)

    # --- damage ---------------------------------------------------------------------------------------

    def test_a_name_comes_back_or_is_refused(self) -> None:
        if not self.format.holds.names:
            return
        for name in ("", ".", "../x", "a\0b", "a b", "#", "\ud800", "n" * 70_000, "__metadata__"):
            try:
                files = self.write({name: self.sample()["shape.five"]})
            except FormatError:
                continue
            assert list(self.read(files)) == [name]

    def test_a_damaged_file_is_a_format_error_or_other_values_of_no_more_bytes(self) -> None:
        refused = 0
        for files in self.damaged(self.golden_files):
            try:
                values = self.read(files)
            except FormatError:
                refused += 1
                continue
            total = sum(to_array(value).nbytes for value in values.values())
            assert total <= sum(map(len, files.values()))
        assert refused > len(self.golden_files)

    def test_a_cut_file_is_never_the_whole(self) -> None:
        whole = self.expected(self.golden_values)
        for name, data in self.golden_files.items():
            for cut in cuts(data):
                try:
                    values = self.read({**self.golden_files, name: cut})
                except FormatError:
                    continue
                assert len(values) < len(whole)
                assert_same(values, {key: whole[key] for key in values})

    def test_memory_is_bounded_by_the_file(self) -> None:
        for files in self.oversized(self.golden_files):
            size = sum(map(len, files.values()))

            def read(files: Files = files) -> None:
                with suppress(FormatError):
                    self.read(files)

            read()  # what is imported at the first use does not count
            assert peak_memory(read) < (1 << 20) + self.memory_per_byte * size


class _OneFile:
    """A folder that opens one file."""

    def __init__(self, name: str, source: Source) -> None:
        self._name, self._source = name, source

    def list_names(self) -> list[str]:
        return [self._name]

    def has(self, name: str) -> bool:
        return name == self._name

    def open_file(self, name: str) -> AbstractContextManager[Source]:
        assert name == self._name
        return nullcontext(self._source)


def to_array(value: Any) -> np.ndarray:
    """Return the elements of a value."""
    return np.asarray(value.array if isinstance(value, LoDTensor | SelectedRows) else value)


def assert_same(values: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Assert that names, element types, shapes, bits, LoD and row ids are the same."""
    assert values.keys() == expected.keys()
    for name, want in expected.items():
        got, array = values[name], to_array(want)
        assert (got.array.dtype, got.array.shape) == (array.dtype, array.shape), name
        assert got.array.tobytes() == array.tobytes(), name
        if isinstance(want, SelectedRows):
            assert (got.rows(), got.height()) == (want.rows(), want.height()), name
        else:
            assert got.lod() == (want.lod() if isinstance(want, LoDTensor) else []), name


def _with_extremes(data: bytes) -> Iterator[bytes]:
    """Yield copies of the file in which a huge number replaces 4 or 8 bytes, at each position."""
    for width in (4, 8):
        for at in range(0, len(data) - width + 1, 2):
            for value in EXTREMES[:2] if width == 4 else EXTREMES[2:]:
                yield data[:at] + value.to_bytes(width, "little") + data[at + width :]
