"""The plug-in passes the suites of paddlelike, installed and found by its entry points."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

from paddlelike.formats import registry
from paddlelike.storage.remote.registry import open_store
from paddlelike.testing import DirectoryContract, FormatContract, StoreContract


class TestFormat(FormatContract):
    format = registry.find("toy")
    golden_values = {"w": np.float32([[1], [2]])}
    golden_files = {"": b"TOY1w 2 1\n" + np.float32([[1], [2]]).tobytes()}


class TestStore(StoreContract):
    @pytest.fixture
    def store(self):
        return open_store("toy://x")[0]

    @pytest.fixture
    def folder(self):
        return uuid.uuid4().hex


class TestDirectory(DirectoryContract):
    @pytest.fixture
    def url(self):
        return f"toy://{uuid.uuid4().hex}/model"
