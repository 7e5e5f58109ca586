"""What the tests of crashes share."""

from __future__ import annotations

import os
import posix

import pytest

from paddlelike.storage.local.filesystem import system
from tests.conftest import find_in_libc


@pytest.fixture(autouse=True)
def real_syncs(fresh_start: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo that tests do not wait for the disk: the calls are recorded."""
    monkeypatch.setattr(os, "fsync", posix.fsync)
    monkeypatch.setattr(system, "_function", find_in_libc)
