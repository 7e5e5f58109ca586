"""The contracts of directories and stores, as test suites that each of them inherits."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import pytest

from paddlelike.errors import PaddlelikeError, SaveError, StorageError
from paddlelike.storage.interfaces import Committed
from paddlelike.storage.location import locate, locate_prefix
from paddlelike.storage.manifest import Manifest
from paddlelike.storage.options import SaveOptions
from paddlelike.storage.remote.base import Store

ODD = ["a b", "a@GRAD", "deep/er/w", "ä", "w.0-1", "%2e", "a+b", "x" * 200]


class DirectoryContract:
    """Tests of a directory; a subclass provides the fixture ``url`` of a directory that does not exist
    yet.
    """

    def save(self, url: str, files: dict[str, bytes], program: str = "5f", **options: Any) -> Committed:
        writing = locate(url).begin(SaveOptions(**options), program=program, part="persistables")
        for name, data in files.items():
            writing.add(name, [data[:2], data[2:]], {"variable": name})
        return writing.commit()

    def read(self, url: str) -> dict[str, bytes]:
        where = locate(url)
        return where.read_all(where.list_names(), lambda _, file: file.read())

    def manifest(self, url: str) -> Manifest:
        found = locate(url).manifest()
        assert found is not None
        return found

    def test_what_was_saved_is_read(self, url: str) -> None:
        files = {"a": b"12345", "empty": b"", "deep/er": b"6"}
        done = self.save(url, files)
        assert (done.written, done.nbytes, done.kept) == (3, 6, 0)
        assert self.read(url) == files
        assert locate(url).list_names() == sorted(files)
        assert locate(url).has("deep/er")
        assert not locate(url).has("deep")

    def test_what_is_missing(self, url: str) -> None:
        where = locate(url)
        assert not where.exists()
        assert not where.has("a")
        assert where.manifest() is None
        self.save(url, {"a": b"1"})
        assert locate(url).exists()
        with pytest.raises(StorageError, match="no such file"):
            locate(url).open_file("b").read()

    def test_parts_of_a_file(self, url: str) -> None:
        self.save(url, {"a": bytes(range(200)) * 100})
        with locate(url).open_file("a") as file:
            assert file.size == 20_000
            assert file.read_at(199, 3) == b"\xc7\x00\x01"
            assert file.read_at(19_999, 100) == b"\xc7"
            assert file.read_at(30_000, 1) == b""
            target = bytearray(300)
            assert file.readinto_at(0, memoryview(target)) == 300
            assert target == bytes(range(200)) + bytes(range(100))

    def test_odd_names(self, url: str) -> None:
        files = {name: name.encode() for name in ODD}
        self.save(url, files)
        assert self.read(url) == files
        assert set(self.manifest(url).files) == set(files)

    @pytest.mark.parametrize("name", ["../out", "/etc/x", "a/../../b", "", "__manifest__", "a\0b", "\ud800"])
    def test_names_that_are_refused(self, url: str, name: str) -> None:
        with pytest.raises(PaddlelikeError):
            self.save(url, {"a": b"1", name: b"2"})
        assert not locate(url).exists()

    def test_a_second_save_replaces_and_deletes_nothing(self, url: str) -> None:
        self.save(url, {"a": b"1", "b": b"2"})
        stamp = locate(url).stamp()
        done = self.save(url, {"a": b"3", "c": b"4"}, "another program")
        assert (done.stale, done.removed) == ((), ())
        assert self.read(url) == {"a": b"3", "b": b"2", "c": b"4"}
        assert locate(url).stamp() != stamp
        assert locate(url).verify()

    def test_stale_files_are_removed_on_request(self, url: str) -> None:
        self.save(url, {"a": b"1", "b": b"2"})
        assert self.save(url, {"a": b"3"}).stale == ("b",)
        assert self.read(url) == {"a": b"3", "b": b"2"}
        assert self.save(url, {"a": b"4"}, remove_stale=True).removed == ("b",)
        assert self.read(url) == {"a": b"4"}

    def test_the_manifest_names_files_and_authors(self, url: str) -> None:
        self.save(url, {"a": b"1" * 2_100_000})
        self.save(url, {"b": b"2"}, "other", checksum="crc32")
        found = self.manifest(url)
        assert found.program == "other"
        assert {name: record.author.program for name, record in found.files.items()} == {
            "a": "5f",
            "b": "other",
        }
        assert (found.files["a"].checksum or "").startswith("xxh3_128:")
        assert len(found.files["a"].pieces) == 3
        assert found.files["b"].checksum == "crc32:1ad5be0d"
        assert locate(url).verify().good == ("a", "b")

    def test_without_a_manifest_there_are_only_the_files(self, url: str) -> None:
        self.save(url, {"a": b"1"}, manifest=False)
        assert self.read(url) == {"a": b"1"}

    def test_kept_files_are_not_written(self, url: str) -> None:
        done = self.save(url, {"a": b"1", "b": b"2"})
        writing = locate(url).begin(program="5f", part="persistables")
        assert writing.keep("a", self.manifest(url).files["a"])
        assert not writing.keep("missing", done.files["b"])
        writing.add("b", [b"3"])
        done = writing.commit()
        assert (done.written, done.kept) == (1, 1)
        assert self.read(url) == {"a": b"1", "b": b"3"}

    def test_a_failure_while_the_bytes_are_made_changes_nothing(self, url: str) -> None:
        self.save(url, {"a": b"1"})

        def fail() -> Iterable[bytes]:
            yield b"begin"
            raise SaveError("no more bytes")

        writing = locate(url).begin()
        writing.add("a", [b"2"])
        writing.add("b", fail())
        with pytest.raises(SaveError, match="no more bytes"):
            writing.commit()
        assert self.read(url) == {"a": b"1"}
        assert locate(url).verify()

    def test_of_several_savers_one_is_the_last(self, url: str) -> None:
        faults: list[Exception] = []

        def work(number: int) -> None:
            try:
                self.save(url, {name: bytes([number]) * 50 for name in "abc"})
            except SaveError as error:
                if "at the same time" not in error.message:
                    faults.append(error)
            except Exception as error:
                faults.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert faults == []
        assert len(set(self.read(url).values())) == 1
        assert locate(url).verify()

    def test_files_with_a_prefix(self, url: str) -> None:
        where, begin = locate_prefix(url)
        writing = where.begin()
        writing.add(f"{begin}.a", [b"1"])
        writing.commit()
        where, _ = locate_prefix(url)
        assert where.has(f"{begin}.a")
        assert where.verify()
        manifest = where.manifest()
        assert manifest is not None
        assert set(manifest.files) == {f"{begin}.a"}


class StoreContract:
    """Tests of a store; a subclass provides the fixtures ``store`` and ``folder``, a new path in it."""

    def test_written_files_are_found_and_read(self, store: Store, folder: str) -> None:
        assert store.find(folder) == {}
        store.write(folder, {"a": [b"12", b"345"], "deep/er": [b"6"], "empty": []})
        found = store.find(folder)
        assert {name: info.size for name, info in found.items()} == {"a": 5, "deep/er": 1, "empty": 0}
        assert store.read(f"{folder}/a") == b"12345"
        assert store.read(f"{folder}/a", 1, 3) == b"23"
        with pytest.raises(FileNotFoundError):
            store.read(f"{folder}/b")

    def test_a_file_is_created_once(self, store: Store, folder: str) -> None:
        store.write(folder, {"x": [b"1"]})
        assert store.create(f"{folder}/m", b"first")
        assert not store.create(f"{folder}/m", b"second")
        assert store.read(f"{folder}/m") == b"first"
        store.put(f"{folder}/m", b"third")
        assert store.read(f"{folder}/m") == b"third"

    def test_the_tag_changes_with_the_file(self, store: Store, folder: str) -> None:
        store.write(folder, {"x": [b"1"]})
        before = store.find(folder)["x"]
        store.put(f"{folder}/x", b"2")
        assert store.find(folder)["x"] != before

    def test_listing_by_prefix(self, store: Store, folder: str) -> None:
        store.write(folder, {"ab": [b"1"], "ac/d": [b"2"], "b": [b"3"]})
        found = store.list_prefix(f"{folder}/a")
        assert set(found) == {"ab", "ac"}
        assert found["ab"] is not None
        assert found["ab"].size == 1
        assert found["ac"] is None
        assert store.list_prefix(f"{folder}-none/a") == {}

    def test_move_copy_and_remove(self, store: Store, folder: str) -> None:
        source, target = f"{folder}/model.saving-1-ab", f"{folder}/model"
        store.write(source, {"a": [b"1"], "d/b": [b"2"]})
        store.write(target, {"a": [b"old"]})
        store.move(source, target, ["a", "d/b"])
        assert (store.read(f"{target}/a"), store.read(f"{target}/d/b")) == (b"1", b"2")
        store.copy(target, f"{folder}/copy", ["d/b"])
        assert store.read(f"{folder}/copy/d/b") == b"2"
        store.remove(target, ["a", "missing"])
        assert set(store.find(target)) == {"d/b"}
        store.remove(source, [])
        assert store.find(source) == {}

    def test_a_store_is_the_same_as_itself(self, store: Store) -> None:
        assert store.is_same(store)
        other: Any = object()
        assert not store.is_same(other)
