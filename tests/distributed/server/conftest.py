"""Jobs in one test wait for seconds at most, as in tests of training; servers write below its directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.training.conftest import short_patience

__all__ = ["short_patience"]


@pytest.fixture(autouse=True)
def save_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let servers write below the directory of the test."""
    monkeypatch.setenv("PADDLELIKE_CHECKPOINT_DIR", str(tmp_path))
