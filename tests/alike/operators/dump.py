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
from collections import Counter
from pathlib import Path
from typing import Any

import paddlelike as fluid
from tests.alike.operators.asking import ask, decode
from tests.alike.operators.comparing import MEMORY, ODD, differ, find_reason
from tests.alike.operators.generating import generate_cases, list_types, tame

GOLDEN = Path(__file__).parent / "golden.json.xz"
PATIENCE = 60.0  # seconds without an answer
_LARGEST = 64  # elements of the inputs of a recorded case

Plain = dict[str, Any]


def ask_real(
    cases: list[Plain],
    folder: Path,
    flags: dict[str, str] | None = None,
    python: str = "PADDLELIKE_FLUID185_PYTHON",
) -> dict[int, Plain]:
    """Return the outcome of each case in the real system; ``{"died": status}`` where it ended."""
    environment = {**os.environ, **(flags or {})}
    given, answers = folder / "cases.json", folder / "answers.json"
    given.write_text(json.dumps(cases))
    found: dict[int, Plain] = {}
    first = 0
    while first < len(cases):
        answers.unlink(missing_ok=True)
        command = [os.environ[python], "-m", "tests.alike.operators.driver"]
        with (folder / "log").open("ab") as log:
            child = subprocess.Popen(
                [*command, given, answers, str(first)], stdout=log, stderr=log, env=environment
            )
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


def explain(unlike: list[tuple[Plain, Plain, str]]) -> list[str]:
    """Return why each case differs: by asking again, with memory that was filled, and without odd numbers."""
    cases = [case for case, _, _ in unlike]
    tamed = [tame(case) for case in cases]
    with tempfile.TemporaryDirectory() as folder:
        again = ask_real([*cases, *tamed], Path(folder), {"FLAGS_init_allocated_mem": "1"})
    found = []
    for index, (case, want, text) in enumerate(unlike):
        reason = find_reason(case, text)
        without = tamed[index]
        if not text.startswith("accepted") and differ(again[index], want, case["type"]):
            reason = MEMORY
        elif reason == "NOT KNOWN" and without != case:
            reason = reason if differ(ask(fluid, without), again[len(cases) + index], case["type"]) else ODD
        found.append(reason)
    return found


def read_options(description: str | None, count: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--count", type=int, default=count, help="generated cases of each operator")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--types", default="", help="a regular expression of operators")
    parser.add_argument("--record", action="store_true", help="write small ones that are alike")
    return parser.parse_args()


def main() -> None:
    given = read_options(__doc__, count=20)
    types = [type for type in list_types() if re.search(given.types, type)]
    cases = [
        case
        for type in types
        for case in generate_cases(type, given.count, given.seed, small=given.record)
        if not given.record or sum(decode(one).size for s in case["inputs"].values() for one in s) <= _LARGEST
    ]
    with tempfile.TemporaryDirectory() as folder:
        real = ask_real(cases, Path(folder))
    alike, unlike = [], []
    for case, want in ((case, real[index]) for index, case in enumerate(cases)):
        text = differ(ask(fluid, case), want, case["type"])
        if text:
            unlike.append((case, want, text))
        elif "died" not in want:
            want.pop("why", None)
            alike.append([case, want])
    reasons = explain(unlike)
    for (case, _, text), reason in zip(unlike, reasons, strict=True):
        print(case["name"], "|", text, "|", reason)
    died = sum("died" in want for want in real.values())
    print(f"{len(cases)} cases, {len(alike)} alike; the real system ended at {died}")
    for reason, count in Counter(reasons).most_common():
        print(f"{count:6} {reason}")
    if given.record:
        GOLDEN.write_bytes(lzma.compress(json.dumps(alike, separators=(",", ":")).encode()))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
