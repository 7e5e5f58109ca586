"""Manifests that continue earlier ones: what is written, what is refused, what a reader gets meanwhile."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from paddlelike.errors import FormatError, StorageError
from paddlelike.storage import manifest
from paddlelike.storage.local import transaction
from paddlelike.storage.local.manifest_file import read_manifest, verify
from paddlelike.storage.local.transaction import Transaction
from paddlelike.storage.manifest import Author, Record, decode, encode
from paddlelike.storage.names import is_manifest
from paddlelike.storage.remote import marker
from paddlelike.storage.remote.fsspec_store import FsspecStore

PARTS = "__deltas__/__manifest__."


def save(path: Path, count: int, **options: Any) -> Any:
    """Save link ``count`` of a chain; those before it, and a large file that never changes, are kept."""
    before = read_manifest(path) if path.exists() else None
    made = Transaction(path, program="p", part="persistables", **options)
    files = {} if before is None else before.files
    for name, record in files.items():
        made.keep(name, record)
    if not files:
        made.add("big", [bytes(3 << 20)])
    made.add(f"__deltas__/w.0123abcd.{count}", [b"%d" % count], {"variable": "w", "link": {"at": count}})
    return made.commit()


def list_parts(path: Path) -> list[str]:
    folder = path / "__deltas__"
    found = [f"__deltas__/{one.name}" for one in folder.glob("*")]
    return sorted((one for one in found if is_manifest(one)), key=lambda one: int(one.rpartition(".")[2]))


def test_a_save_writes_its_own_records_and_links_the_earlier_manifests(tmp_path: Path) -> None:
    sizes, kept = [], {}
    for count in range(20):
        inode = (tmp_path / "__manifest__").stat().st_ino if count else 0
        done = save(tmp_path, count)
        sizes.append((tmp_path / "__manifest__").stat().st_size)
        assert done.manifest_bytes == sizes[-1]
        if count:
            assert list_parts(tmp_path) == [f"{PARTS}{at}" for at in range(count)]
            assert (tmp_path / f"{PARTS}{count - 1}").stat().st_ino == inode  # nothing was copied
        for name, data in kept.items():
            assert (tmp_path / name).read_bytes() == data
        kept = {name: (tmp_path / name).read_bytes() for name in list_parts(tmp_path)}
    assert max(sizes[1:]) < min(sizes[0], 1200)
    read = read_manifest(tmp_path)
    assert read is not None
    assert set(read.files) == {"big", *(f"__deltas__/w.0123abcd.{count}" for count in range(20))}
    assert list(read.files) == sorted(read.files)
    found = verify(tmp_path)
    assert found
    assert found.extra == ()


def test_an_uploaded_directory_without_an_earlier_manifest_is_refused_by_its_name(tmp_path: Path) -> None:
    for count in range(3):
        save(tmp_path / "m", count)
    (tmp_path / "m" / f"{PARTS}1").unlink()
    store = FsspecStore(fsspec.filesystem("memory"))
    store._fs.put(str(tmp_path / "m"), "/lacks/a", recursive=True)
    with pytest.raises(StorageError, match=rf"lacks \S*{PARTS}1") as info:
        marker.read(store, "/lacks/a", is_prefix=False)
    assert "copy the whole directory again" in info.value.hint


def test_with_many_manifests_a_save_continues_from_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "_MOST_PARTS", 5)
    for count in range(14):
        save(tmp_path, count)
        assert len(list_parts(tmp_path)) <= 5
    read = read_manifest(tmp_path)
    assert read is not None
    assert len(read.files) == 15
    assert verify(tmp_path)


def test_a_save_without_links_writes_a_whole_manifest_and_removes_the_earlier(tmp_path: Path) -> None:
    for count in range(4):
        save(tmp_path, count)
    with Transaction(tmp_path, program="p", part="persistables") as made:
        made.add("w", [b"whole"], {"variable": "w"})
        made.keep("big", read_manifest(tmp_path).files["big"])  # type: ignore[union-attr]
    assert list_parts(tmp_path) == []
    assert set(decode((tmp_path / "__manifest__").read_bytes()).files) == {"big", "w"}


def lose(path: Path) -> None:
    path.unlink()


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def take_another(path: Path) -> None:
    shutil.copyfile(path.with_name("__manifest__.0"), path)


@pytest.mark.parametrize("damage", [lose, flip, take_another])
@pytest.mark.parametrize("at", [0, 2])
def test_a_manifest_with_a_damaged_predecessor_is_refused(damage: Any, at: int, tmp_path: Path) -> None:
    """Proves S9."""
    for count in range(5):
        save(tmp_path / "m", count)
    if damage is take_another and at == 0:
        save(tmp_path / "other", 0)
        shutil.copyfile(tmp_path / "other/__manifest__", tmp_path / "m/__deltas__/__manifest__.0")
    else:
        damage(tmp_path / f"m/{PARTS}{at}")
    with pytest.raises(FormatError, match="manifest"):
        read_manifest(tmp_path / "m")
    assert not verify(tmp_path / "m")


def test_records_removed_and_added_again_are_the_newest() -> None:
    def record(size: int, program: str = "p") -> Record:
        return Record(size, f"xxh3_128:{size:032x}", (size, size), {}, author=Author(program, "all"))

    states = [
        {"a": record(1), "b": record(2), "c": record(3)},
        {"b": record(2), "c": record(4)},
        {"a": record(1), "b": record(2, "q")},
        {"a": record(1), "b": record(2, "q")},
    ]
    data: dict[str, bytes] = {}
    before, newest = None, b""
    for number, files in enumerate(states):
        if before is not None:
            data[f"{PARTS}{number - 1}"] = newest
        newest = encode(files, author=Author("p", "all"), token=str(number), before=before)
        before = decode(newest, data.__getitem__)
        assert before.files == files
        assert len(before.parts) == number


@pytest.fixture
def saving(tmp_path: Path) -> Iterator[Path]:
    """A directory that a thread saves into all the time."""
    done, path = threading.Event(), tmp_path / "m"
    save(path, 0)

    def work() -> None:
        count = 1
        while not done.is_set():
            save(path, count)
            count += 1

    thread = threading.Thread(target=work)
    thread.start()
    yield path
    done.set()
    thread.join()


def test_a_reader_during_saves_sees_one_complete_save(saving: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves S10."""
    monkeypatch.setattr(transaction, "_MOST_PARTS", 3)  # so that names are used again
    seen = set()
    while len(seen) < 12:
        read = read_manifest(saving)
        assert read is not None
        links = [name for name in read.files if name != "big"]
        assert set(links) == {f"__deltas__/w.0123abcd.{at}" for at in range(len(links))}
        seen.add(len(links))


def test_a_manifest_of_another_format_number_is_refused_and_named() -> None:
    data = manifest.encode_json({}).replace(b'"format":2', b'"format":9')
    body = data[: -len(manifest._tail(b""))]
    with pytest.raises(FormatError, match="format 9; this library reads 1 to 3"):
        decode(body + manifest._tail(body))
