"""Random convolutions and pools, from sizes of 1 to 40; ``python -m tests.fuzz.windows`` draws more of them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.fuzz.windows.cases import Drawn, draw, find_compiled_differences, find_differences
from tests.helpers.fast_kernels import force_kernels


def find_faults(find: Callable[[Drawn], Iterator[str]], seeds: range) -> list[str]:
    """Return a line for each wrong result, with its seed."""
    return [f"seed {seed}: {line}" for seed in seeds for line in find(draw(seed))]


def test_random_convolutions_and_pools_equal_sums_over_the_kernel() -> None:
    assert find_faults(find_differences, range(600)) == []


def test_loops_that_numba_compiles_stay_inside_their_arrays() -> None:
    # As Python they raise IndexError beyond the end.
    small = [drawn for drawn in map(draw, range(600, 800)) if drawn.d_out.size < 500]
    with force_kernels(compiled=False) as called:
        assert [line for drawn in small for line in find_differences(drawn)] == []
    assert called


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="guard pages need mprotect")
def test_compiled_loops_stay_between_guard_pages() -> None:
    command = [sys.executable, "-m", "tests.fuzz.windows", "--first", "3000", "--count", "60", "--guard"]
    done = subprocess.run([*command, "--kernels", "compiled"], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (0, "60 cases, 0 with a fault\n"), done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="guard pages need mprotect")
@pytest.mark.parametrize("first", [False, True])
def test_reading_beyond_a_guarded_array_ends_the_process(first: bool) -> None:
    beyond = "array.ctypes.data - 1" if first else "array.ctypes.data + array.nbytes"
    script = (
        "import ctypes, numpy as np; from tests.fuzz.windows.guard_pages import place; "
        f"array = place(np.arange(5.0), first={first}); assert array.sum() == 10; "
        f"ctypes.string_at({beyond}, 1)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert done.returncode == -signal.SIGSEGV


@pytest.mark.slow
def test_compiled_random_convolutions_and_pools_equal_sums_over_the_kernel() -> None:
    pytest.importorskip("jax")
    assert find_faults(find_compiled_differences, range(1000, 1020)) == []
