"""Markers of directories behind URLs that a killed process left cut, where writing is not one step."""

from __future__ import annotations

import pytest

from paddlelike.errors import FormatError, SaveError
from paddlelike.storage.location import locate
from paddlelike.storage.remote import marker
from paddlelike.storage.remote.fsspec_store import FsspecStore

fsspec = pytest.importorskip("fsspec", reason="fsspec is in the extra 'remote'")


@pytest.fixture
def url(tmp_path) -> str:
    return f"local://{tmp_path}/model"


def save(url: str, **files: bytes) -> None:
    writing = locate(url).begin()
    for name, data in files.items():
        writing.add(name, [data])
    writing.commit()


def read(url: str) -> dict[str, bytes]:
    where = locate(url)
    found = where.manifest()
    assert found is not None
    return {name: where.open_file(name).read() for name in sorted(found.files)}


@pytest.mark.parametrize(
    "size", [0, 1, 200, -1], ids=["empty", "one byte", "a part", "all but the last byte"]
)
def test_a_marker_truncated_at_creation_commits_nothing(url, tmp_path, size):
    """Proves S12."""
    save(url, a=b"1", b=b"1")
    whole = (tmp_path / "model.manifest.json.1").read_bytes()
    (tmp_path / "model.manifest.json.2").write_bytes(whole[:size])
    assert read(url) == {"a": b"1", "b": b"1"}
    assert locate(url).verify()
    save(url, a=b"3", b=b"3")
    assert read(url) == {"a": b"3", "b": b"3"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "model.manifest.json.3"]


def test_a_marker_truncated_at_completion_is_read_from_its_copy(url, tmp_path):
    save(url, a=b"1", b=b"1")
    earlier = (tmp_path / "model.manifest.json.1").read_bytes()
    save(url, a=b"2", b=b"2")
    (tmp_path / "model.manifest.json.1").write_bytes(earlier)  # was not removed yet
    (tmp_path / "model.manifest.json.2").write_bytes(b"")
    assert read(url) == {"a": b"2", "b": b"2"}
    assert locate(url).verify()


def test_a_truncated_first_marker_does_not_change_an_uploaded_directory(url, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "a").write_bytes(b"uploaded")
    (tmp_path / "model.manifest.json.1").write_bytes(b"{")
    where = locate(url)
    assert where.manifest() is None
    assert where.list_names() == ["a"]
    save(url, b=b"2")
    assert read(url) == {"a": b"uploaded", "b": b"2"}


def test_a_damaged_marker_that_is_not_truncated_raises_an_error(url, tmp_path):
    save(url, a=b"1")
    path = tmp_path / "model.manifest.json.1"
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    with pytest.raises(FormatError, match="digest does not match"):
        marker.read(locate(url).store, locate(url).base, is_prefix=False)


def test_a_file_that_cannot_be_moved_now_is_moved_by_the_next_save(url, monkeypatch):
    """Some file systems say of any error that there is no such file."""
    save(url, a=b"1", b=b"1")
    store = locate(url).store
    real = type(store._fs).cp_file

    def fail(self, source, target, **options):
        if source.endswith("/a"):
            raise FileNotFoundError(source)
        real(self, source, target, **options)

    monkeypatch.setattr(type(store._fs), "cp_file", fail)
    save(url, a=b"2", b=b"2")
    assert read(url) == {"a": b"2", "b": b"2"}
    monkeypatch.undo()
    save(url, b=b"3")
    assert read(url) == {"a": b"2", "b": b"3"}
    assert locate(url).verify()


def test_a_failure_after_writing_the_marker_reports_that_the_save_succeeded(url, monkeypatch):
    save(url, a=b"1")

    def fail(store, base):
        raise OSError("connection reset")

    monkeypatch.setattr(marker, "find_newest", fail)
    with pytest.raises(SaveError, match=r"was saved, unless another process .*: connection reset"):
        save(url, a=b"2")
    monkeypatch.undo()
    assert read(url) == {"a": b"2"}


@pytest.mark.parametrize("reads", [True, False], ids=["reads", "does not read"])
def test_a_marker_with_a_lost_response_is_read_again_or_reported_as_unknown(url, monkeypatch, reads):
    save(url, a=b"1", b=b"1")
    create, read_one = FsspecStore.create, FsspecStore.read
    lost = []

    def lose(store: FsspecStore, path: str, data: bytes) -> bool:
        create(store, path, data)
        lost.append(path)
        raise ConnectionError("no answer")

    def refuse(store: FsspecStore, path: str, *where: int) -> bytes:
        if lost and not reads:
            raise ConnectionError("no answer either")
        return read_one(store, path, *where)

    with monkeypatch.context() as patch:
        patch.setattr(FsspecStore, "create", lose)
        patch.setattr(FsspecStore, "read", refuse)
        if reads:
            save(url, a=b"2", b=b"2")
        else:
            with pytest.raises(SaveError, match="may hold this save or the one before: the store failed"):
                save(url, a=b"2", b=b"2")
    assert read(url) == {"a": b"2", "b": b"2"}
