"""Random convolutions and pools, from sizes of 1 to 40; ``python -m tests.fuzz.windows`` draws more of them."""

from __future__ import annotations

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
def test_compiled_random_convolutions_and_pools_equal_sums_over_the_kernel() -> None:
    pytest.importorskip("jax")
    assert find_faults(find_compiled_differences, range(1000, 1020)) == []
