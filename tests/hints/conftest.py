"""Every case begins in an empty folder, with programs, names and a scope of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hints.advice import new_network


@pytest.fixture(autouse=True)
def new_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with new_network():
        yield
