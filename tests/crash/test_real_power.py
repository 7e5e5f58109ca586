"""Real file systems whose power is cut in the middle of saves lose nothing that was to survive."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.real_power import KINDS, explain_refusal

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", KINDS)
def test_real_power_cuts_lose_no_save(kind: str) -> None:
    if reason := explain_refusal(kind):
        pytest.skip(reason)
    command = [sys.executable, "-m", "tests.crash.real_power", "--kind", kind, "--rounds", "2"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "2 crashes, 0 lost" in done.stdout
