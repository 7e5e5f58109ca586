"""Jobs of these tests are impatient: what is broken ends in seconds."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def impatient() -> object:
    patch = pytest.MonkeyPatch()
    patch.setenv("FLAGS_rpc_deadline", "20000")
    patch.setenv("FLAGS_worker_update_interval_secs", "30")
    yield patch
    patch.undo()
