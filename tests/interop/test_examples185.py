"""The examples in Paddle 1.8.5's own documentation, run there and here.

PADDLELIKE_FLUID185_PYTHON names an interpreter that has paddlepaddle 1.8.5. Of those that run there, nearly
all run here, leave the same programs, and print the same numbers where those do not depend on random ones.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from paddlelike.import_paddle import add_to_path
from tests.interop.real import DRIVERS, FLUID185

pytestmark = FLUID185.needed

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)")
_QUIET = {"GLOG_minloglevel": "3", "OMP_NUM_THREADS": "1", "CPU_NUM": "1"}


def run(python: str, job: dict[str, str], home: Path, path: dict[str, str]) -> dict[str, Any]:
    (home / "job.json").write_text(json.dumps(job))
    command = [python, "-W", "ignore", str(DRIVERS / "driver_examples.py"), str(home / "job.json")]
    subprocess.run(command, env={**os.environ, **_QUIET, **path, "HOME": str(home)}, check=True)
    found: dict[str, Any] = json.loads(Path(job["out"]).read_text())
    return found


def prints_the_same(first: str, second: str) -> bool:
    """Whether texts are equal but for the spaces, and their numbers to 1e-4."""
    if _NUMBER.sub("", "".join(first.split())) != _NUMBER.sub("", "".join(second.split())):
        return False
    a, b = (np.array([float(one) for one in _NUMBER.findall(text)]) for text in (first, second))
    return len(a) == len(b) and np.allclose(a, b, 1e-4, 1e-6, equal_nan=True)


def test_examples_run_as_in_fluid(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    job = {"examples": str(tmp_path / "examples.json"), "out": str(tmp_path / "real.json")}
    assert FLUID185.python is not None
    real = run(FLUID185.python, job, tmp_path, {"PYTHONPATH": ""})
    again = run(FLUID185.python, {**job, "out": str(tmp_path / "again.json")}, tmp_path, {"PYTHONPATH": ""})
    ours = run(
        sys.executable,
        {**job, "out": str(tmp_path / "ours.json")},
        tmp_path,
        add_to_path({"PYTHONPATH": str(Path(__file__).parents[2])}),
    )
    ran = [name for name, one in real.items() if "error" not in one and "error" not in again[name]]
    failed = {name: ours[name]["error"][-200:] for name in ran if "error" in ours[name]}
    both = [name for name in ran if name not in failed]
    definite = [name for name in both if real[name]["programs"] == again[name]["programs"]]
    differ = [name for name in definite if ours[name]["programs"] != real[name]["programs"]]
    printing = [
        name
        for name in both
        if real[name]["printed"].strip() and real[name]["printed"] == again[name]["printed"]
    ]
    other = [name for name in printing if not prints_the_same(real[name]["printed"], ours[name]["printed"])]
    counts = (
        f"run {len(both)} of {len(ran)}, programs {len(definite) - len(differ)} of {len(definite)}, "
        f"numbers {len(printing) - len(other)} of {len(printing)}"
    )
    record_property("examples", counts)
    shown = f"{counts}\n{json.dumps(failed, indent=1)}\nprograms: {differ}\nnumbers: {other}"
    assert len(ran) >= 430, shown  # fewer where examples that download or take long end
    assert len(failed) <= 0.03 * len(ran), shown  # parts that are left out
    assert len(differ) <= 0.03 * len(definite), shown
    assert len(other) <= 0.1 * len(printing), shown
