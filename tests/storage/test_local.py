"""Files opened for reading, one or many."""

from __future__ import annotations

import os

import numpy as np
import pytest

from paddlelike.errors import FormatError, OutOfMemoryError, StorageError
from paddlelike.formats.paddle import lod_tensor
from paddlelike.storage.local.files import LARGE, File, list_names, open_file, read_all
from paddlelike.storage.local.transaction import write_all


def remove_posix_calls(monkeypatch):
    monkeypatch.delattr(os, "pread")
    monkeypatch.delattr(os, "preadv")


def shorten_reads(monkeypatch):
    pread, preadv = os.pread, os.preadv
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(size, 2), at))
    monkeypatch.setattr(os, "preadv", lambda fd, views, at: preadv(fd, [views[0][:3]], at))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda monkeypatch: None, id="with the calls of POSIX"),
        pytest.param(remove_posix_calls, id="without the calls of POSIX"),
        pytest.param(shorten_reads, id="short reads are continued"),
    ],
)
def test_bytes_are_read_at_given_positions(tmp_path, monkeypatch, change):
    change(monkeypatch)
    path = tmp_path / "w"
    path.write_bytes(bytes(range(10)))
    with File(path) as file:
        assert file.size == 10
        assert file.read_at(2, 3) == b"\2\3\4"
        assert file.read_at(8, 100) == b"\x08\x09"
        assert file.read_at(20, 5) == b""
        assert file.read() == bytes(range(10))
        target = bytearray(4)
        assert file.readinto_at(7, memoryview(target)) == 3
        assert target == b"\7\x08\x09\0"


def test_a_format_error_contains_the_path(tmp_path):
    path = tmp_path / "w"
    path.write_bytes(b"\x80\x02}q")
    with pytest.raises(FormatError) as caught, File(path) as file:
        lod_tensor.read(file)
    assert caught.value.message.startswith(f"{path}: offset 0: version 1904018048")
    assert "pickle" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", r"missing cannot be read: there is no such file in .*"),
        ("no/where", r"where cannot be read: there is no directory .*no"),
        ("folder", "folder is a directory; a file is expected"),
        ("file/inside", "inside cannot be read: Not a directory"),
        ("../file", "a part '..'"),
    ],
)
def test_a_file_that_cannot_be_opened_is_an_error(tmp_path, name, message):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match=message):
        open_file(tmp_path, name)


def test_an_open_that_the_system_refuses_is_an_error(tmp_path, monkeypatch):
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StorageError, match="Permission denied") as caught:
        File(tmp_path / "w")
    assert "may not read it" in caught.value.hint
    assert isinstance(caught.value, OSError)


def test_many_files_are_read_in_the_requested_order(tmp_path):
    sizes = {"small": 3, "large": LARGE // 4 + 1, "deep/er": 5, "large2": LARGE}
    values = {name: np.arange(size, dtype="float32") for name, size in sizes.items()}
    write_all(tmp_path / "m", {name: lod_tensor.encode(value) for name, value in values.items()})

    def read(name: str, file: File) -> np.ndarray:
        return lod_tensor.read(file).array

    read_back = read_all(tmp_path / "m", values, read)
    assert list(read_back) == list(values)
    for name, value in values.items():
        np.testing.assert_array_equal(read_back[name], value)


@pytest.mark.parametrize("bad", ["small", "large"])
def test_a_damaged_file_stops_the_reading_of_further_files(tmp_path, bad):
    sizes = {"small": 3, "large": LARGE}
    files = {name: lod_tensor.encode(np.zeros(size)) for name, size in sizes.items()}
    files[bad] = [bytes(8 * sizes[bad])[:-8], b"\1" * 8]
    write_all(tmp_path, files)
    with pytest.raises(FormatError, match=f"{bad}: offset"):
        read_all(tmp_path, sizes, lambda name, file: lod_tensor.read(file))


@pytest.mark.parametrize("times", [1, 100])
def test_files_read_together_come_from_one_save(tmp_path, times):
    """Somebody saves while the second file is read. Proves S10."""
    sets = [{name: [bytes([number])] for name in "abc"} for number in range(2)]
    write_all(tmp_path / "m", sets[0])
    saves = []

    def read(name: str, file: File) -> bytes:
        if name == "b" and len(saves) < times:
            saves.append(1)
            write_all(tmp_path / "m", sets[len(saves) % 2])
        return file.read()

    if times == 1:
        assert read_all(tmp_path / "m", "abc", read) == dict.fromkeys("abc", b"\1")
    else:
        with pytest.raises(StorageError, match="saved again and again"):
            read_all(tmp_path / "m", "abc", read)


def test_a_directory_lists_the_names_of_its_files(tmp_path):
    write_all(tmp_path / "m", {"b": [b""], "a/x": [b""], "a.y": [b""], "@C@": [b""]})
    assert list_names(tmp_path / "m") == ["@C@", "a.y", "a/x", "b"]
    with pytest.raises(StorageError, match=r"there is no directory .*none"):
        list_names(tmp_path / "none")


def test_a_file_larger_than_the_memory_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "w").write_bytes(b"123")
    with File(tmp_path / "w") as file:
        with pytest.raises(FormatError, match="3 bytes, expected at most 2"):
            file.read(2)
        monkeypatch.setattr(os, "pread", lambda *_: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(OutOfMemoryError, match="w: 3 bytes are to be read at once"):
            file.read(3)
