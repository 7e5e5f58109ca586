"""How fast saves are, against plain writes of the same bytes and against peers.

    python -m tests.benchmarks.bench_save [--full] [--rounds 5] [--only resnet,table] [--where DIR]
        [--contenders "ours;np.save"]

All contenders save the same arrays, in turns; each round begins with another one. Shown are the medians of
wall time and of processor time (all threads), and the medians over the rounds of their ratios to those of the
plain writes ("limit": one ``writev`` a file into a new directory) in the same round; "best" is the ratio of the
smallest processor times, which other work on the machine touches least. Peers that are not installed are left out. Nothing is removed while it runs, because some file systems make that the next
contender's burden: files are cut to nothing.

The last columns are the memory that a save takes besides the arrays, at its peak: in MB, and in % of the
model.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pickle
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paddlelike.io import asynchronous
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.local.syncing import wait_for_disk
from tests.benchmarks.bench_load import WORKLOADS, Shapes, program_of

Arrays = dict[str, np.ndarray]
Save = Callable[[Path], Any]


class Contender(NamedTuple):
    """A way to save: into a new directory each time, or into the same one, after some arrays changed."""

    save: Save
    again: bool = False
    changed: float = 1.0


class Measured(NamedTuple):
    wall: float
    processor: float
    memory: int  # bytes


class Model:
    """The arrays of a workload, as variables of a scope."""

    def __init__(self, shapes: Shapes) -> None:
        import paddlelike as fluid

        self.fluid = fluid
        self.exe, self.program = fluid.Executor(fluid.CPUPlace()), program_of(shapes)
        rng = np.random.default_rng(0)
        for name, shape in shapes.items():
            fluid.global_scope().var(name).get_tensor().set(rng.random(shape, np.float32))
        tensors = {name: fluid.global_scope().find_var(name).get_tensor() for name in shapes}
        self.arrays: Arrays = {name: tensor.array for name, tensor in tensors.items()}
        self._tensors = tensors
        self.nbytes = sum(array.nbytes for array in self.arrays.values())

    def change(self, part: float) -> None:
        """Count about that part of the bytes as written into."""
        left = part * self.nbytes
        for tensor in reversed(self._tensors.values()):
            if left <= 0:
                break
            left -= tensor.array.nbytes
            tensor.touch()

    def ours(self, filename: str | None = None, **options: Any) -> Save:
        return lambda path: self.fluid.io.save_persistables(
            self.exe, path / "model", self.program, filename, **options
        )

    def plain(self, path: Path, flags: int = os.O_EXCL) -> None:
        """The limit: header and elements of every file by one call."""
        from paddlelike.formats.paddle import lod_tensor

        path = path / "model"
        path.mkdir(exist_ok=flags != os.O_EXCL)
        for name, array in self.arrays.items():
            fd = os.open(path / name, os.O_WRONLY | os.O_CREAT | flags)
            rest = [memoryview(b) for b in lod_tensor.encode(array)]
            while rest:
                count = os.writev(fd, rest)
                while rest and count >= len(rest[0]):
                    count -= len(rest.pop(0))
                if rest:
                    rest[0] = rest[0][count:]
            os.close(fd)


def contenders(model: Model) -> dict[str, Contender]:
    """All that can run here, the limit first."""
    found = {
        "limit, new files": Contender(model.plain),
        "limit, again": Contender(lambda path: model.plain(path, os.O_TRUNC), again=True),
        "ours": Contender(model.ours()),
        "ours, crc32": Contender(model.ours(checksum="crc32")),
        "ours, sha256": Contender(model.ours(checksum="sha256")),
        "ours, no checksums": Contender(model.ours(checksum=None)),
        "ours, one file": Contender(model.ours("all", checksum=None)),
        "ours again": Contender(model.ours(checksum=None), again=True),
        "ours again, generation kept": Contender(model.ours(checksum=None, keep_generation=True), again=True),
        "ours over a save": Contender(model.ours(), again=True),
        "ours over a save, process": Contender(model.ours(durability="process"), again=True),
        "ours, 5% changed": Contender(model.ours(), again=True, changed=0.05),
        "ours, nothing changed": Contender(model.ours(), again=True, changed=0.0),
        "ours, until it returns": Contender(model.ours(checksum=None, blocking=False), again=True),
        "np.save": Contender(lambda path: _np_save(model.arrays, path)),
        "pickle, one file": Contender(lambda path: _pickle(model.arrays, path)),
    }
    if importlib.util.find_spec("safetensors"):
        found["safetensors, one file"] = Contender(lambda path: _safetensors(model.arrays, path))
    if importlib.util.find_spec("torch"):
        found["torch.save, one file"] = Contender(_torch(model.arrays))
    if importlib.util.find_spec("h5py"):
        found["h5py, one file"] = Contender(lambda path: _h5py(model.arrays, path))
    return found


def _np_save(arrays: Arrays, path: Path) -> None:
    for name, array in arrays.items():
        np.save(path / name, array)


def _pickle(arrays: Arrays, path: Path) -> None:
    with (path / "all").open("wb") as file:
        pickle.dump(arrays, file, protocol=5)


def _safetensors(arrays: Arrays, path: Path) -> None:
    from safetensors.numpy import save_file

    save_file(arrays, path / "all")


def _torch(arrays: Arrays) -> Save:
    import torch

    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return lambda path: torch.save(tensors, path / "all")


def _h5py(arrays: Arrays, path: Path) -> None:
    import h5py

    with h5py.File(path / "all", "w") as file:
        for name, array in arrays.items():
            file[name] = array


# Measuring


def measure(model: Model, contender: Contender, home: Path) -> Measured:
    """One save."""
    if contender.again and contender.changed < 1:
        contender.save(home)  # others have written since
        wait_for_disk(Layout.of(home / "model"))
    model.change(contender.changed)
    _warm(model.nbytes, home)
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here on
    wall, processor = time.perf_counter(), time.process_time()
    contender.save(home)
    done = Measured(
        time.perf_counter() - wall, time.process_time() - processor, max(_memory("VmHWM") - before, 0)
    )
    asynchronous.check_pending()
    wait_for_disk(Layout.of(home / "model"))  # no other contender pays for it
    return done


def _memory(what: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(what)


def _warm(nbytes: int, home: Path) -> None:
    """Leave the system with free pages that were in use a moment ago: those of a guest cost more at first."""
    path = home.parent / "warm"
    piece = bytes(16 << 20)
    with path.open("wb") as file:
        for _ in range(nbytes // len(piece) + 1):
            file.write(piece)
    os.truncate(path, 0)


def _park(home: Path) -> None:
    for path in home.rglob("*"):
        if path.is_file():
            os.truncate(path, 0)


def run(
    shapes: Shapes, rounds: int, home: Path, chosen: str | None = None
) -> tuple[Model, dict[str, list[Measured]]]:
    """All contenders, or the chosen ones and the limit, in turns. What saves again has saved once before."""
    model = Model(shapes)
    them = contenders(model)
    if chosen is not None:
        names = {"limit, new files", *chosen.split(";")}
        them = {name: contender for name, contender in them.items() if name in names}
    same = {name: home / f"again-{number}" for number, name in enumerate(them)}
    for name, contender in them.items():
        if contender.again:
            same[name].mkdir()
            measure(model, contender._replace(changed=1.0), same[name])
    results: dict[str, list[Measured]] = {name: [] for name in them}
    names = list(them)
    for number in range(rounds):
        turn = number * 3 % len(names)
        for name in names[turn:] + names[:turn]:
            where = same[name]
            if not them[name].again:
                where = home / f"{number}-{names.index(name)}"
                where.mkdir()
            results[name].append(measure(model, them[name], where))
            if not them[name].again:
                _park(where)
    return model, results


def show(title: str, model: Model, results: dict[str, list[Measured]]) -> None:
    limit = results["limit, new files"]
    print(f"\n{title}: {len(model.arrays)} variables, {model.nbytes / 1e6:.0f} MB")
    print(f"{'':32}{'wall s':>9}{'x limit':>9}{'cpu s':>9}{'x limit':>9}{'best':>9}{'MB':>8}{'%':>7}")
    for name, measured in results.items():
        wall = statistics.median(m.wall for m in measured)
        processor = statistics.median(m.processor for m in measured)
        pairs = list(zip(measured, limit, strict=True))
        by_wall = statistics.median(m.wall / best.wall for m, best in pairs)
        by_processor = statistics.median(m.processor / max(best.processor, 1e-6) for m, best in pairs)
        memory = statistics.median(m.memory for m in measured)
        best = min(m.processor for m in measured) / max(min(m.processor for m in limit), 1e-6)
        columns = f"{wall:9.4f}{by_wall:9.2f}{processor:9.4f}{by_processor:9.2f}{best:9.2f}"
        print(f"{name:32}{columns}{memory / 1e6:8.1f}{100 * memory / model.nbytes:7.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="the large workloads: some GB of memory and disk")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(WORKLOADS), help="workloads, with commas between")
    parser.add_argument("--contenders", help="their names, separated by semicolons; default: all")
    parser.add_argument("--where", type=Path, help="a directory of the disk to measure")
    given = parser.parse_args()
    for title in given.only.split(","):
        if title not in WORKLOADS:
            sys.exit(f"there is no workload {title!r}: {', '.join(WORKLOADS)}")
        with tempfile.TemporaryDirectory(prefix="bench-save-", dir=given.where) as home:
            show(title, *run(WORKLOADS[title][given.full](), given.rounds, Path(home), given.contenders))


if __name__ == "__main__":
    main()
