"""Every kind of directory and every store passes its contract; a plug-in is used like the others."""

from __future__ import annotations

import sys
import uuid

import pytest

from paddlelike.errors import StorageError
from paddlelike.storage.location import locate
from paddlelike.storage.remote import registry
from paddlelike.testing import DirectoryContract, StoreContract
from tests.io.conftest import hadoop  # noqa: F401  (a fixture)
from tests.plugins.toy.toy_store import ToyStore, open_toy


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(registry, "_registry", registry._Registry())
    registry.register("toy", open_toy)


class TestLocalDirectory(DirectoryContract):
    @pytest.fixture
    def url(self, tmp_path):
        return str(tmp_path / "deep" / "model")


class TestFileUrl(DirectoryContract):
    @pytest.fixture
    def url(self, tmp_path):
        return (tmp_path / "with space").as_uri()


class TestMemory(DirectoryContract):
    @pytest.fixture
    def url(self):
        return f"memory://{uuid.uuid4().hex}/model"


class TestToy(DirectoryContract):
    @pytest.fixture
    def url(self, toy):
        return f"toy://{uuid.uuid4().hex}/model"


@pytest.mark.slow
class TestHdfs(DirectoryContract):
    @pytest.fixture
    def url(self, hadoop):  # noqa: F811
        return f"hdfs://cluster:9000/user/me/{uuid.uuid4().hex}"


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self):
        return registry.open_store("memory://x/y")[0]

    @pytest.fixture
    def folder(self):
        return f"/{uuid.uuid4().hex}/m"


class TestFsspecLocalStore(StoreContract):
    @pytest.fixture
    def store(self):
        return registry.open_store("local:///x/y")[0]

    @pytest.fixture
    def folder(self, tmp_path):
        return str(tmp_path / "m")


class TestToyStore(StoreContract):
    @pytest.fixture
    def store(self):
        return ToyStore()

    @pytest.fixture
    def folder(self):
        return uuid.uuid4().hex


class TestHdfsStore(StoreContract):
    @pytest.fixture
    def store(self, hadoop):  # noqa: F811
        return registry.open_store("hdfs:/user/me/model")[0]

    @pytest.fixture
    def folder(self):
        return f"hdfs:/user/me/{uuid.uuid4().hex}"


def test_every_built_in_scheme_is_tested(toy):
    assert registry.all_schemes() == ["hdfs", "toy"]


def test_registering_a_scheme_twice_is_refused(toy):
    with pytest.raises(StorageError, match="registered already"):
        registry.register("toy", open_toy)


def test_packages_can_register_stores_by_entry_point(tmp_path, monkeypatch):
    (tmp_path / "toy_stores.py").write_text("from tests.plugins.toy.toy_store import open_toy\n")
    info = tmp_path / "toy_stores-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-stores\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[paddlelike.stores]\ntoy = toy_stores:open_toy\nbroken = no_such_module:open_it\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_registry", registry._Registry())
    where = locate("toy://packaged/model")
    writing = where.begin()
    writing.add("w", [b"1"])
    writing.commit()
    assert locate("toy://packaged/model").list_names() == ["w"]
    assert registry.all_schemes() == ["broken", "hdfs", "toy"]
    with pytest.raises(StorageError, match=r"broken:// \(no_such_module:open_it\) cannot be used"):
        locate("broken://a/b")
    sys.modules.pop("toy_stores", None)


def test_saves_leave_nothing_beside_local_directories(tmp_path):
    TestLocalDirectory().save(str(tmp_path / "model"), {"a": b"1"})
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["__manifest__", "a"]
