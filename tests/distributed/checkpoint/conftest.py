"""Jobs of these tests are impatient: what is broken ends in seconds."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True, scope="session")
def impatient() -> object:
    patch = pytest.MonkeyPatch()
    patch.setenv("FLAGS_rpc_deadline", "20000")
    patch.setenv("FLAGS_worker_update_interval_secs", "30")
    yield patch
    patch.undo()


@pytest.fixture(autouse=True)
def save_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let servers write below the directory of the test."""
    monkeypatch.setenv("PADDLELIKE_CHECKPOINT_DIR", str(tmp_path))
