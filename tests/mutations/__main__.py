"""Run the tests on every mutation, in a copy of the project, and print which ones find it.

Each mutation goes through stages until a test fails: the tests that prove the invariant which it breaks
(``proof``), those beside the mutated file (``near``), those of its room, the default selection, the whole
suite. A test counts if it passes without the mutation.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.mutations.mutation import ROOMS, Mutation, list_mutations

PROJECT: Final = Path(__file__).parent.parent.parent
STAGES: Final = ("proof", "near", "room", "default", "whole")
LIMITS: Final = {
    "proof": 300,
    "near": 300,
    "room": 900,
    "default": 1800,
    "whole": 7200,
}  # seconds; then it hangs: found
HANGS: Final = "it hangs"
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)  # names may hold blanks
_NOTHING_COLLECTED: Final = 5


class Trial:
    """A copy of the project in which tests are run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._left_out: list[str] = []  # arguments of pytest
        self._sound: dict[str, bool] = {}  # by test: whether it passes without a mutation
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=PROJECT, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        for name in filter(None, names.split("\0")):
            if (PROJECT / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(PROJECT / name, root / name)

    def run_stage(self, mutation: Mutation, stage: str) -> str | None:
        """Return the test that fails with the mutation and not without it; None: there is none."""
        tests = find_tests(self.root, mutation, stage)
        if stage == "proof" and not tests:
            return None
        while True:
            before = mutation.apply(self.root)
            try:
                found = self._run(tests, stage)
            finally:
                (self.root / "paddlelike" / mutation.file).write_text(before, encoding="utf-8")
            if found in (None, HANGS) or self._is_sound(found):
                return found
            print(f"{found} fails without {mutation.name!r} as well, and is left out")

    def _is_sound(self, test: str) -> bool:
        if test in self._left_out:
            raise RuntimeError(f"{test} fails without a mutation, and cannot be left out: does it import?")
        if test not in self._sound:
            self._sound[test] = self._run([test], "whole", parallel=False) is None
            if not self._sound[test]:
                self._left_out += ["--deselect", test]
        return self._sound[test]

    def _run(self, tests: Sequence[str], stage: str, *, parallel: bool | None = None) -> str | None:
        parallel = stage in ("default", "whole") if parallel is None else parallel
        marks = ["-m", "" if stage == "whole" else "not slow"]
        spread = ["-n", "auto", "--maxprocesses", "8", "--dist", "worksteal"] if parallel else []
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
        one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        environment = os.environ | one | {"PYTHONPATH": str(self.root)}
        try:
            run = subprocess.run(
                [*command, *marks, *spread, *self._left_out, *tests],
                cwd=self.root, env=environment, check=False, capture_output=True, text=True,
                timeout=LIMITS[stage],
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return HANGS
        if run.returncode in (0, _NOTHING_COLLECTED):
            return None
        failed = _FAILED.search(run.stdout)
        if failed is None:
            raise RuntimeError(f"pytest ended with {run.returncode}:\n{(run.stdout + run.stderr)[-2000:]}")
        return failed[1]


def find_tests(root: Path, mutation: Mutation, stage: str) -> list[str]:
    """Return what a stage runs, as arguments of pytest; all tests: none."""
    if stage in ("default", "whole"):
        return []
    if stage == "proof":
        return find_proofs(root, mutation.breaks) if mutation.breaks else []
    if stage == "room":
        return [f"tests/{mutation.room}"]
    folder = Path("tests") / Path(mutation.file).parent
    first = [folder / f"test_{Path(mutation.file).name}"]  # of the same name as the module, or as its folder
    while not list((root / folder).glob("test_*.py")):
        first.append(folder.parent / f"test_{folder.name}.py")
        folder = folder.parent
    return [*(str(module) for module in first if (root / module).exists()), str(folder)]


def find_proofs(root: Path, number: str) -> list[str]:
    """Return the tests whose docstrings say that they prove an invariant."""
    found = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "Proves " in text else ():
            if isinstance(node, ast.FunctionDef):
                proved = re.search(r"Proves ((?:[A-Z]\d+(?:, )?)+)\.", ast.get_docstring(node) or "")
                if proved is not None and number in proved[1].split(", "):
                    found.append(f"{path.relative_to(root)}::{node.name}")
    return found


def print_table(results: dict[str, dict[str, Any]], mutations: Sequence[Mutation]) -> None:
    """Print how many mutations of each room each stage found, and those that it did not."""
    print(
        f"\n{'room':<14}{'mutations':>10}" + "".join(f"{stage:>9}" for stage in STAGES) + f"{'survived':>10}"
    )
    for room in (*ROOMS, "all"):
        rows = [results[m.name] for m in mutations if room in (m.room, "all") and m.name in results]
        found = [sum(row["stage"] == stage for row in rows) for stage in STAGES]
        counts = "".join(f"{count:>9}" for count in found)
        print(f"{room:<14}{len(rows):>10}{counts}{len(rows) - sum(found):>10}")
    by_default, by_whole = sum(found[:-1]), sum(found)
    if by_whole:
        print(f"the default selection finds {by_default} of the {by_whole} that the whole suite finds: "
              f"{100 * by_default / by_whole:.1f} of 100")  # fmt: skip
    for name, row in results.items():
        if row["stage"] is None:
            print(f"not found by {', '.join(row['ran'])}: {name}")


def main() -> None:
    """Parse the arguments and try the mutations."""
    parser = argparse.ArgumentParser(prog="tests.mutations", description=__doc__)
    parser.add_argument("names", nargs="*", help="names or rooms, with * and ?; all where none is given")
    parser.add_argument("--until", choices=STAGES, default="whole", help="the last stage to run")
    parser.add_argument("--results", type=Path, help="a JSON file to continue, and to write")
    given = parser.parse_args()
    mutations = [
        m for m in list_mutations()
        if not given.names or any(fnmatch.fnmatch(text, p) for p in given.names for text in (m.name, m.room))
    ]  # fmt: skip
    results: dict[str, dict[str, Any]] = {}
    if given.results is not None and given.results.exists():
        results = json.loads(given.results.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder))
        for stage in STAGES[: STAGES.index(given.until) + 1]:
            for mutation in mutations:
                row = results.setdefault(
                    mutation.name, {"stage": None, "test": None, "seconds": 0.0, "ran": []}
                )
                if row["stage"] is not None or stage in row["ran"]:
                    continue
                begin = time.monotonic()
                row["test"] = trial.run_stage(mutation, stage)
                row["stage"] = None if row["test"] is None else stage
                row["ran"].append(stage)
                seconds = time.monotonic() - begin
                row["seconds"] += seconds
                print(f"{seconds:6.1f} s  {mutation.name}: {stage}: {row['test'] or 'survived'}", flush=True)
                if given.results is not None:
                    given.results.write_text(json.dumps(results, indent=1), encoding="utf-8")
    print_table(results, mutations)


if __name__ == "__main__":
    main()
