"""Asking real Fluid 1.8.5 to transpile cases."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.distributed.transpiler.masking import mask_program

HERE = Path(__file__).parent
QUIET = {"GLOG_minloglevel": "3", "OMP_NUM_THREADS": "1", "CPU_NUM": "1"}


def ask(python: str, cases: Mapping[str, Any], workplace: Path) -> dict[str, Any]:
    """{case: {"error": text}, or {"programs": {role: [main, startup]}, "overview": rows}}."""
    given, answers = workplace / "cases.json", workplace / "answers.json"
    given.write_text(json.dumps(cases))
    done = subprocess.run(
        [python, str(HERE / "dump_real.py"), str(given), str(answers)],
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    records = json.loads(answers.read_text())
    for record in records.values():
        for pair in record.get("programs", {}).values():
            pair[:] = [mask_program(zlib.decompress(base64.b64decode(data))) for data in pair]
    return records
