"""Saves and loads beside np.save, safetensors, torch.save and Fluid 1.8.5, in one run.

    PADDLELIKE_TORCH_PYTHON=... PADDLELIKE_FLUID185_PYTHON=... \
        python -m tests.benchmarks.bench_peers [--rounds 5] [--only bert] [--small] [--where DIR]

Each measurement is a process of its own (``peer.py``), in the interpreter that has the library; libraries
without one are left out. Within a round the contenders follow one another, each round begins with another
one, and every save goes into a new directory. "limit" is one call of the system for each file. Loads read into
new memory what the same contender has just saved, from the page cache. Shown are medians over the rounds of
the ratios to the limit of the same round, with the smallest and the largest, of processor time (all threads) and
of wall time. Nothing is deleted while it runs, because some file systems make that the next one's burden.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.bench_load import WORKLOADS

PEER = Path(__file__).with_name("peer.py")
Times = dict[str, float]


def list_contenders() -> dict[str, str]:
    """Return the interpreter of every contender that can run here; the limit first."""
    found = {"limit": sys.executable, "np.save": sys.executable}
    if importlib.util.find_spec("safetensors"):
        found["safetensors"] = sys.executable
    torch = os.environ.get("PADDLELIKE_TORCH_PYTHON") or (
        importlib.util.find_spec("torch") and sys.executable
    )
    if torch:
        found["torch.save"] = torch
    if os.environ.get("PADDLELIKE_FLUID185_PYTHON"):
        found["fluid185"] = os.environ["PADDLELIKE_FLUID185_PYTHON"]
    return found | {"paddlelike": sys.executable}


def measure(python: str, library: str, what: str, directory: Path, shapes: Path) -> Times:
    """Return the seconds of one save or load in a new process."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if python == sys.executable:
        env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command = [python, "-W", "ignore", str(PEER), library, what, str(directory), str(shapes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    result: Times = json.loads(done.stdout.splitlines()[-1])
    return result


def run(shapes: dict[str, tuple[int, ...]], rounds: int, home: Path) -> dict[str, dict[str, list[Times]]]:
    """Return the seconds of every save and load, by contender, in the order of the rounds."""
    contenders = list_contenders()
    listed = home / "shapes.json"
    listed.write_text(json.dumps(shapes))
    names = list(contenders)
    loads = [*names, "paddlelike, verify=False"]
    found: dict[str, dict[str, list[Times]]] = {
        "save": {n: [] for n in names},
        "load": {n: [] for n in loads},
    }
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            directory = home / f"{number}-{names.index(name)}"
            found["save"][name].append(measure(contenders[name], name, "save", directory, listed))
        for name in loads[turn:] + loads[:turn]:
            base = name.partition(",")[0]
            directory = home / f"{number}-{names.index(base)}"
            found["load"][name].append(measure(contenders[base], name, "load", directory, listed))
        for path in home.glob(f"{number}-*/*"):
            os.truncate(path, 0)
    return found


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def show(title: str, found: dict[str, dict[str, list[Times]]]) -> None:
    print(f"\n{title}")
    for what, results in found.items():
        print(f"{what:28}{'cpu s':>8}{'x limit':>9}{'':15}{'wall s':>8}{'x limit':>9}")
        for name, times in results.items():
            columns = ""
            for key in ("cpu", "wall"):
                pairs = zip(times, results["limit"], strict=True)
                ratios = [one[key] / limit[key] for one, limit in pairs]
                spread = f"({min(ratios):.2f} to {max(ratios):.2f})"
                seconds = statistics.median(one[key] for one in times)
                columns += f"{seconds:8.3f}{statistics.median(ratios):9.2f} {spread:15}"
            print(f"  {name:26}{columns}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="bert", help="workloads of bench_load, separated by commas")
    parser.add_argument("--small", action="store_true", help="the small sizes of the workloads")
    parser.add_argument("--where", type=Path, help="a directory of the disk to measure")
    given = parser.parse_args()
    for title in given.only.split(","):
        shapes = WORKLOADS[title][not given.small]()
        nbytes = sum(4 * _count(shape) for shape in shapes.values())
        with tempfile.TemporaryDirectory(prefix="bench-peers-", dir=given.where) as home:
            found = run(shapes, given.rounds, Path(home))
        show(f"{title}: {len(shapes)} variables, {nbytes / 1e6:.0f} MB, {given.rounds} rounds", found)


if __name__ == "__main__":
    main()
