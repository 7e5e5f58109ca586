"""Compare random convolutions and pools with sums: ``python -m tests.fuzz.windows --first 0 --count 10000``.

``--kernels compiled`` runs the loops of numba whatever the size; with ``NUMBA_BOUNDSCHECK=1`` they check each index. ``--jax``
runs the compiled program. ``--guard`` puts inputs and results beside pages that may not be touched: a step beyond one ends
the process.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator

import paddlelike as fluid
from tests.fuzz.windows.cases import Drawn, draw, find_compiled_differences, find_differences
from tests.fuzz.windows.guard_pages import guarded_results, place
from tests.helpers.fast_kernels import force_kernels


def find_guarded(drawn: Drawn, *, first: bool) -> Iterator[str]:
    """Do so with inputs before guard pages, or ``first`` behind them, and results before them."""
    yield from find_differences(drawn)  # numba compiles what it needs, with numpy's own functions
    inputs = {slot: place(array, first=first) for slot, array in drawn.inputs.items()}
    with guarded_results():
        yield from find_differences(drawn._replace(inputs=inputs, d_out=place(drawn.d_out, first=first)))


def main() -> int:
    """Run the cases that the command line asks for; 1 when any is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.windows", description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many seeds")
    parser.add_argument("--kernels", choices=("chosen", "numpy", "compiled"), default="chosen")
    parser.add_argument("--jax", action="store_true", help="run compiled programs")
    parser.add_argument("--guard", action="store_true", help="put arrays beside guard pages")
    given = parser.parse_args()
    forced = contextlib.nullcontext()
    if given.kernels == "compiled":
        forced = force_kernels(compiled=True)
    elif given.kernels == "numpy":
        fluid.set_flags({"FLAGS_use_fast_kernels": False})
    find = find_compiled_differences if given.jax else find_differences
    faulty = 0
    with forced:
        for seed in range(given.first, given.first + given.count):
            drawn = draw(seed)
            try:
                lines = list(find_guarded(drawn, first=seed % 2 == 1) if given.guard else find(drawn))
            except Exception as error:
                lines = [f"{type(error).__name__}: {error}"]
            faulty += bool(lines)
            for line in lines:
                shapes = {slot: array.shape for slot, array in drawn.inputs.items()}
                print(f"seed {seed}: {drawn.type} {shapes} {drawn.attrs}: {line}", flush=True)
    print(f"{given.count} cases, {faulty} with a fault")
    return int(faulty > 0)


if __name__ == "__main__":
    sys.exit(main())
