"""The real systems, if this machine has them: interpreters named by environment variables."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

DRIVERS = Path(__file__).parent / "drivers"


class RealSystem:
    """An interpreter that has a real Paddle, named by an environment variable."""

    def __init__(self, variable: str, version: str) -> None:
        self.python = os.environ.get(variable)
        self.needed = [
            pytest.mark.slow,
            pytest.mark.skipif(
                not self.python,
                reason=f"{variable} names no Python that has paddlepaddle {version}",
            ),
        ]

    def run(self, script: str, job: dict[str, Any], workplace: Path, environment: Any = None) -> None:
        """Run a script of this folder with a job; its complaint is the failure's message."""
        path = workplace / "job.json"
        path.write_text(json.dumps(job))
        assert self.python is not None
        quiet = {"GLOG_minloglevel": "3", "OMP_NUM_THREADS": "1", "CPU_NUM": "1"}
        done = subprocess.run(
            [self.python, str(DRIVERS / script), str(path)],
            env={**os.environ, **quiet, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-2000:]


FLUID185 = RealSystem("PADDLELIKE_FLUID185_PYTHON", "1.8.5")
PADDLE331 = RealSystem("PADDLELIKE_PADDLE331_PYTHON", "3.3.1")
PADDLE262 = RealSystem("PADDLELIKE_PADDLE262_PYTHON", "2.6.2")
