"""State files between this package and the Pythons and numpys of the last ten years.

PADDLELIKE_PICKLE_PYTHONS names interpreters that have numpy, separated as in PATH: Python 3.6 or newer.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlelike.formats import state
from tests.interop.drivers.driver_pickles import ARRAYS
from tests.interop.real import DRIVERS

PYTHONS = [python for python in os.environ.get("PADDLELIKE_PICKLE_PYTHONS", "").split(os.pathsep) if python]

pytestmark = pytest.mark.skipif(
    not PYTHONS, reason="PADDLELIKE_PICKLE_PYTHONS names no Pythons that have numpy"
)


@pytest.fixture(params=PYTHONS or ["none"])
def python(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def run(python: str, what: str, path: Path) -> dict[str, Any]:
    """What the other Python sees: of each array its type, shape and bytes."""
    command = [python, str(DRIVERS / "driver_pickles.py"), what, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    facts: dict[str, Any] = json.loads(done.stdout)[2]
    return facts


def seen(array: Any) -> list[Any]:
    plain = array.astype(array.dtype.newbyteorder("<"))
    return [plain.dtype.str, list(array.shape), plain.tobytes().hex()]


def test_real_systems_read_our_pickles(python: str, tmp_path: Path) -> None:
    path = tmp_path / "model.pdparams"
    path.write_bytes(b"".join(state.encode(dict(ARRAYS))))
    assert run(python, "read", path) == {name: seen(array) for name, array in ARRAYS}


def test_pickles_of_real_systems_are_read_and_rewritten_identically(python: str, tmp_path: Path) -> None:
    theirs = run(python, "write", tmp_path / "model")
    files = sorted(tmp_path.iterdir())
    assert len(files) >= 3
    for path in files:
        values = state.decode(path.read_bytes()).read()
        assert {name: seen(array) for name, array in values.items()} == theirs
        assert all(isinstance(array, np.ndarray) and array.dtype.isnative for array in values.values())
