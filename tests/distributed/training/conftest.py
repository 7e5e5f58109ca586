"""Jobs in one test are not patient: what does not answer in 20 s never will."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAGS_rpc_deadline", "20000")
    monkeypatch.setenv("FLAGS_worker_update_interval_secs", "40")
