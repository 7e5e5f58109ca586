"""Compare generated cases with real Fluid 1.8.5: `python -m tests.alike.operators.dump --count 30 --seed 1`.

``PADDLELIKE_FLUID185_PYTHON`` names an interpreter that has paddlepaddle 1.8.5, which runs in a process of
its own. ``--record`` writes small cases that are alike to ``golden.json.xz``.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import paddlelike as fluid
from tests.alike.operators.asking import ask, decode
from tests.alike.operators.comparing import differ, find_reason
from tests.alike.operators.generating import generate_cases, list_types

GOLDEN = Path(__file__).parent / "golden.json.xz"
PATIENCE = 60.0  # seconds without an answer
_LARGEST = 64  # elements of the inputs of a recorded case

Plain = dict[str, Any]


def ask_real(cases: list[Plain], folder: Path) -> dict[int, Plain]:
    """Return the outcome of each case in the real system; ``{"died": status}`` where it ended."""
    given, answers = folder / "cases.json", folder / "answers.json"
    given.write_text(json.dumps(cases))
    found: dict[int, Plain] = {}
    first = 0
    while first < len(cases):
        answers.unlink(missing_ok=True)
        command = [os.environ["PADDLELIKE_FLUID185_PYTHON"], "-m", "tests.alike.operators.driver"]
        with (folder / "log").open("ab") as log:
            child = subprocess.Popen([*command, given, answers, str(first)], stdout=log, stderr=log)
            size, since = -1, time.monotonic()
            while child.poll() is None and time.monotonic() - since < PATIENCE:
                time.sleep(0.1)
                now = answers.stat().st_size if answers.exists() else 0
                size, since = (size, since) if now == size else (now, time.monotonic())
            child.kill()
            child.wait()
        lines = answers.read_text().split("\n")[:-1] if answers.exists() else []
        found.update((index, outcome) for index, outcome in map(json.loads, filter(None, lines)))
        first = max(found, default=-1) + 1
        if first < len(cases):
            found[first] = {"died": child.returncode}
            first += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="cases of each operator")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--types", default="", help="a regular expression of operators")
    parser.add_argument("--record", action="store_true", help="write those that are alike")
    given = parser.parse_args()
    types = [type for type in list_types() if re.search(given.types, type)]
    cases = [
        case
        for type in types
        for case in generate_cases(type, given.count, given.seed, small=given.record)
        if not given.record or sum(decode(one).size for s in case["inputs"].values() for one in s) <= _LARGEST
    ]
    with tempfile.TemporaryDirectory() as folder:
        real = ask_real(cases, Path(folder))
    alike = []
    for index, case in enumerate(cases):
        want = real[index]
        text = differ(ask(fluid, case), want)
        if not text and "died" not in want:
            want.pop("why", None)
            alike.append([case, want])
        elif text:
            print(case["name"], "|", text, "|", find_reason(case["type"], text))
    died = sum("died" in want for want in real.values())
    print(f"{len(cases)} cases, {len(alike)} alike; the real system ended at {died}")
    if given.record:
        GOLDEN.write_bytes(lzma.compress(json.dumps(alike, separators=(",", ":")).encode()))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
