"""What it costs that saves and loads are programs which the executor runs, with 20,000 small variables.

    python -m tests.benchmarks.bench_programs [--count 20000] [--rounds 7] [--where DIR]

Each save and load is done twice in every round, in alternating order: as it is, by a program of as many
operators that the executor runs, and directly, with the same writer and reader but without a program. Printed
are the medians of the processor time of both and the median of the ratios of the rounds. Files go below ``/dev/shm`` by default, so that no disk is measured.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import paddlelike as fluid
from paddlelike.io.contents.interface import Contents, Reading, Value
from paddlelike.io.load import read_request as loading
from paddlelike.io.load.request import LoadRequest
from paddlelike.io.load.values import read_values
from paddlelike.io.partition import SaveShare
from paddlelike.io.planning.load_plan import LoadPlan
from paddlelike.io.save import chosen as saving
from paddlelike.io.save.encoded import get_item
from paddlelike.io.save.writer import Writer


def build_program(count: int) -> fluid.Program:
    """A program of so many variables of 8 x 8 numbers, which have values in the current scope."""
    program = fluid.Program()
    for index in range(count):
        name = f"fc_{index}.w_0"
        program.global_block().create_var(name=name, shape=[8, 8], dtype="float32", persistable=True)
        fluid.global_scope().var(name).get_tensor().set(np.full((8, 8), index, np.float32))
    return program


def save_directly(executor: Any, writer: Writer, share: SaveShare, filename: str | None) -> None:
    """Pass the variables of a save to its writer without a program of operators."""
    scope = fluid.global_scope()
    items = {variable.name: get_item(variable.name, scope) for variable in share.local}
    if filename is None:
        for name, item in items.items():
            writer.add(name, item)
    else:
        writer.add_combined(filename, [items[name] for name in sorted(items)])


def load_directly(
    executor: Any, request: LoadRequest, plan: LoadPlan, contents: Contents, targets: Any
) -> tuple[Reading, list[Value]]:
    """Read the values of a load without a program of operators."""
    return read_values(contents, plan, request.options.lazy, targets)


def measure(work: Callable[[], object]) -> float:
    """The processor seconds of all threads."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--where", type=Path, default=Path("/dev/shm"))
    options = parser.parse_args()
    exe, program = fluid.Executor(), build_program(options.count)
    found: dict[str, list[tuple[int, bool, float]]] = {}
    for index in range(options.rounds):
        home = tempfile.mkdtemp(dir=options.where)
        for direct in (False, True) if index % 2 else (True, False):
            where = f"{home}/{'directly' if direct else 'program'}"
            with contextlib.ExitStack() as patches:
                if direct:
                    patches.enter_context(mock.patch.object(saving, "_run_save", save_directly))
                    patches.enter_context(mock.patch.object(loading, "run_load", load_directly))
                for filename in (None, "all"):
                    kind = "a file each" if filename is None else "one file"
                    target = f"{where}/{kind}"
                    save = partial(fluid.io.save_persistables, exe, target, program, filename)
                    load = partial(fluid.io.load_persistables, exe, target, program, filename)
                    for name, work in (("save", save), ("load", load)):
                        found.setdefault(f"{name}, {kind}", []).append((index, direct, measure(work)))
        shutil.rmtree(home)
    print(f"{options.count} variables, processor seconds: by a program, directly, ratio")
    for name, times in found.items():
        rounds = [
            {direct: seconds for at, direct, seconds in times if at == n} for n in range(options.rounds)
        ]
        ours, plain = (statistics.median(each[direct] for each in rounds) for direct in (False, True))
        ratio = statistics.median(each[False] / each[True] for each in rounds)
        print(f"{name:20s} {ours:7.3f} {plain:7.3f} {ratio:6.2f}")


if __name__ == "__main__":
    main()
