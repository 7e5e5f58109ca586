"""How fast loads are, against plain reads of the same bytes and against peers.

    python -m tests.benchmarks.bench_load [--full] [--rounds 5] [--only resnet,table]

Every measurement is a new process, because freed memory makes the next load of a process faster; within a
round the contenders follow one another, so that what else the machine does meets them all. Files are in the
page cache. Shown are the median processor time of the load alone, and the median over the rounds of its
ratio to the plain read ("limit") of that round: into new memory, or into arrays that exist. Peers that are
not installed are left out.
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
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Shapes = dict[str, tuple[int, ...]]
Load = Callable[[Path, Shapes], Callable[[], Any]]

# Workloads


def resnet() -> Shapes:
    """About 270 variables of 100 MB, many of them small."""
    shapes: Shapes = {"conv0": (64, 3, 7, 7), "fc": (2048, 1000)}
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(blocks):
            name = f"s{stage}b{block}"
            shapes |= {f"{name}c0": (width, 4 * width, 1, 1), f"{name}c1": (width, width, 3, 3)}
            shapes |= {f"{name}c2": (4 * width, width, 1, 1)}
            for part in range(3):
                size = width if part < 2 else 4 * width
                shapes |= {f"{name}bn{part}{kind}": (size,) for kind in "wbmv"}
    return shapes


def bert(layers: int = 24) -> Shapes:
    """About 400 variables of 1.3 GB."""
    shapes: Shapes = {"words": (30522, 1024), "places": (512, 1024)}
    for layer in range(layers):
        shapes |= {f"l{layer}{part}w": (1024, 1024) for part in "qkvo"}
        shapes |= {f"l{layer}{part}b": (1024,) for part in "qkvo"}
        shapes |= {f"l{layer}f0": (1024, 4096), f"l{layer}f1": (4096, 1024)}
        shapes |= {f"l{layer}g0": (4096,), f"l{layer}g1": (1024,)}
        shapes |= {f"l{layer}n{part}": (1024,) for part in range(4)}
    return shapes


WORKLOADS: dict[str, tuple[Callable[[], Shapes], Callable[[], Shapes]]] = {  # small, full
    "resnet": (resnet, resnet),
    "bert": (lambda: bert(3), bert),
    "small": (
        lambda: {f"v{n}": (64,) for n in range(2000)},
        lambda: {f"v{n}": (64,) for n in range(20_000)},
    ),
    "table": (lambda: {"table": (500_000, 64)}, lambda: {"table": (8_000_000, 64)}),
}

# Contenders: each gets ready, and gives what is measured


def limit_new(home: Path, shapes: Shapes) -> Callable[[], Any]:
    """Plain reads, a file each, into new memory."""
    directory = home / "files"

    def load() -> Any:
        kept = []
        for name in shapes:
            fd = os.open(directory / name, os.O_RDONLY)
            array = np.empty(os.fstat(fd).st_size, np.uint8)
            os.preadv(fd, [array], 0)
            os.close(fd)
            kept.append(array)
        return kept

    return load


def limit_existing(home: Path, shapes: Shapes) -> Callable[[], Any]:
    """Plain reads, a file each, into arrays that exist."""
    directory = home / "files"
    arrays = {name: np.zeros((directory / name).stat().st_size, np.uint8) for name in shapes}
    for array in arrays.values():
        array[:] = 1

    def load() -> Any:
        for name, array in arrays.items():
            fd = os.open(directory / name, os.O_RDONLY)
            os.preadv(fd, [array], 0)
            os.close(fd)

    return load


def ours(existing: bool = False, filename: str | None = None, **choices: Any) -> Load:
    """load_persistables; ``existing``: into a scope that holds values."""

    def ready(home: Path, shapes: Shapes) -> Callable[[], Any]:
        import paddlelike as fluid

        exe, program = fluid.Executor(fluid.CPUPlace()), program_of(shapes)
        warm_up(exe)
        if existing:
            for name, shape in shapes.items():
                fluid.global_scope().var(name).get_tensor().set(np.ones(shape, "float32"))
        directory = home / ("combined" if filename else "files")
        return lambda: fluid.io.load_persistables(exe, directory, program, filename, **choices)

    return ready


def warm_up(exe: Any) -> None:
    """Import what loads need: `import paddlelike` leaves it to the first load, which takes 0.3 s more."""
    import paddlelike as fluid

    program = program_of({"warm": (1,)})
    with fluid.scope_guard(fluid.Scope()), tempfile.TemporaryDirectory() as home:
        fluid.global_scope().var("warm").get_tensor().set(np.ones(1, "float32"))
        fluid.io.save_persistables(exe, home, program)
        fluid.io.load_persistables(exe, home, program)


def load_state(verify: bool = True) -> Load:
    """load_program_state of the directory."""

    def ready(home: Path, shapes: Shapes) -> Callable[[], Any]:
        import paddlelike as fluid

        warm_up(fluid.Executor(fluid.CPUPlace()))
        return lambda: fluid.io.load_program_state(home / "files", verify=verify)

    return ready


def np_load(home: Path, shapes: Shapes) -> Callable[[], Any]:
    return lambda: [np.load(home / "npy" / f"{name}.npy") for name in shapes]


def safetensors_load(home: Path, shapes: Shapes) -> Callable[[], Any]:
    from safetensors.numpy import load_file

    return lambda: load_file(home / "all.safetensors")


def torch_load(home: Path, shapes: Shapes) -> Callable[[], Any]:
    import torch

    return lambda: torch.load(home / "all.pt")


LOADS: dict[str, Load] = {
    "limit, new memory": limit_new,
    "limit, existing arrays": limit_existing,
    "ours, new scope": ours(),
    "ours, existing scope": ours(existing=True),
    "ours, existing in place": ours(existing=True, in_place=True),
    "ours, combined": ours(filename="all"),
    "ours, verify=False": ours(verify=False),
    "ours, existing, verify=False": ours(existing=True, verify=False),
    "ours, program state": load_state(),
    "ours, program state, verify=False": load_state(verify=False),
    "ours, lazy": ours(lazy=True),
    "np.load": np_load,
    "safetensors": safetensors_load,
    "torch.load": torch_load,
}

# Slices: a sixteenth of the table


def rows_of(shapes: Shapes) -> tuple[int, int]:
    height = shapes["table"][0]
    return height // 2, height // 2 + height // 16


def limit_slice(home: Path, shapes: Shapes) -> Callable[[], Any]:
    first, last = rows_of(shapes)
    row = shapes["table"][1] * 4

    def load() -> Any:
        fd = os.open(home / "files" / "table", os.O_RDONLY)
        array = np.empty((last - first) * row, np.uint8)
        os.preadv(fd, [array], first * row)
        os.close(fd)
        return array

    return load


def our_slice(home: Path, shapes: Shapes) -> Callable[[], Any]:
    import paddlelike as fluid

    return lambda: fluid.io.load_slice(home / "files", "table", rows_of(shapes))


def np_slice(home: Path, shapes: Shapes) -> Callable[[], Any]:
    return lambda: np.array(np.load(home / "npy" / "table.npy", mmap_mode="r")[slice(*rows_of(shapes))])


def safetensors_slice(home: Path, shapes: Shapes) -> Callable[[], Any]:
    from safetensors import safe_open

    def load() -> Any:
        with safe_open(home / "all.safetensors", "np") as file:
            return file.get_slice("table")[slice(*rows_of(shapes))]

    return load


SLICES: dict[str, Load] = {
    "limit, slice": limit_slice,
    "ours, slice": our_slice,
    "np.load mmap, slice": np_slice,
    "safetensors, slice": safetensors_slice,
}

# Harness


def program_of(shapes: Shapes) -> Any:
    import paddlelike as fluid

    program = fluid.Program()
    for name, shape in shapes.items():
        program.global_block().create_var(name=name, shape=shape, dtype="float32", persistable=True)
    return program


def prepare(home: Path, shapes: Shapes) -> None:
    """The same arrays in the form of every contender."""
    import paddlelike as fluid

    rng = np.random.default_rng(0)
    arrays = {name: rng.random(shape, "float32") for name, shape in shapes.items()}
    exe, program = fluid.Executor(fluid.CPUPlace()), program_of(shapes)
    with fluid.scope_guard(fluid.Scope()):
        for name, array in arrays.items():
            fluid.global_scope().var(name).get_tensor().set(array)
        fluid.io.save_persistables(exe, home / "files", program)
        fluid.io.save_persistables(exe, home / "combined", program, "all")
    (home / "npy").mkdir()
    for name, array in arrays.items():
        np.save(home / "npy" / f"{name}.npy", array)
    if installed("safetensors"):
        from safetensors.numpy import save_file

        save_file(arrays, home / "all.safetensors")
    if installed("torch"):
        import torch

        torch.save({name: torch.from_numpy(array) for name, array in arrays.items()}, home / "all.pt")


def installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def one(workload: str, full: bool, contender: str, home: Path) -> dict[str, float]:
    """Measure one load in this process."""
    shapes = WORKLOADS[workload][full]()
    load = (LOADS | SLICES)[contender](home, shapes)
    before = memory("VmRSS")
    wall, cpu = time.perf_counter(), time.process_time()
    kept = load()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = memory("VmHWM") - before
    del kept
    return {"cpu": cpu, "wall": wall, "mb": peak}


def memory(what: str) -> float:
    """Megabytes of this process, as the kernel counts them."""
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[what].split()[0]) * 1024 / 1e6


def measured(workload: str, full: bool, contender: str, home: Path) -> dict[str, float]:
    """Measure one load in a new process."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_load", "--one", contender, "--only", workload]
    command += ["--home", str(home)] + ["--full"] * full
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
    result: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return result


def compare(workload: str, full: bool, rounds: int, contenders: dict[str, Load], home: Path) -> None:
    chosen = [name for name in contenders if installed(name.split(",")[0].split(".")[0].split()[0])
              or name.startswith(("ours", "limit", "np."))]  # fmt: skip
    results: dict[str, list[dict[str, float]]] = {name: [] for name in chosen}
    for _ in range(rounds):
        for name in chosen:
            results[name].append(measured(workload, full, name, home))
    base = next(iter(chosen))
    print(f"{'':34s}{'cpu s':>8s}{'wall s':>8s}{'x limit, cpu':>14s}{'wall':>7s}{'MB more':>9s}")
    for name in chosen:
        limits = results["limit, existing arrays" if "existing" in name else base]
        line = {key: statistics.median(run[key] for run in results[name]) for key in ("cpu", "wall", "mb")}
        ratios = [
            statistics.median(run[key] / limit[key] for run, limit in zip(results[name], limits, strict=True))
            for key in ("cpu", "wall")
        ]
        print(
            f"{name:34s}{line['cpu']:8.4f}{line['wall']:8.4f}{ratios[0]:14.2f}{ratios[1]:7.2f}{line['mb']:9.1f}"
        )


def choose(given: str | None) -> dict[str, Load]:
    """Return the contenders whose names begin with one of some words, and the limits."""
    begins = ("",) if given is None else ("limit", *given.split(";"))
    return {name: load for name, load in LOADS.items() if name.startswith(begins)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="the large workloads: 1.3 GB, 2 GB, 20,000 files")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(WORKLOADS), help="workloads, separated by commas")
    parser.add_argument(
        "--contenders", help="those whose names begin so, separated by semicolons; default: all"
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument(
        "--home", type=Path, help="where the files go, and stay; default: a temporary directory"
    )
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args.only, args.full, args.one, args.home)))
        return
    for workload in args.only.split(","):
        shapes = WORKLOADS[workload][args.full]()
        megabytes = sum(4 * int(np.prod(shape)) for shape in shapes.values()) / 1e6
        print(f"\n{workload}: {len(shapes)} variables, {megabytes:.0f} MB")
        with tempfile.TemporaryDirectory() as temporary:
            home = Path(temporary) if args.home is None else args.home / workload
            if not (home / "npy").exists():
                home.mkdir(exist_ok=True, parents=True)
                prepare(home, shapes)
            compare(workload, args.full, args.rounds, choose(args.contenders), home)
            if "table" in shapes:
                compare(workload, args.full, args.rounds, SLICES, home)


if __name__ == "__main__":
    main()
