"""Work of kernels in parts: the same results, bit by bit, on any number of threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import threadpoolctl

from paddlelike.framework import flags
from paddlelike.ops.kernels.linalg import LARGE, multiply
from paddlelike.ops.kernels.nn.conv.convolve import convolve, convolve_dw, convolve_dx
from paddlelike.ops.kernels.nn.image.windows import Windows
from paddlelike.ops.kernels.threads import map_parts

Rng = np.random.Generator


def use_threads(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(flags, "_flags", {"FLAGS_paddle_num_threads": count})


def test_parts_run_in_parallel_and_results_keep_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_threads(monkeypatch, 3)
    together = threading.Barrier(3)

    def work(part: int) -> int:
        together.wait(30)  # passes only when three are in it
        return part * part

    assert list(map_parts(work, range(6))) == [0, 1, 4, 9, 16, 25]


def test_an_error_in_a_part_is_raised_after_all_parts_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    use_threads(monkeypatch, 2)
    started, ended = [], []

    def work(part: int) -> None:
        started.append(part)
        if part == 1:
            raise ValueError("part 1")
        ended.append(part)

    with pytest.raises(ValueError, match="part 1"):
        list(map_parts(work, range(100)))
    assert sorted([*ended, 1]) == sorted(started)
    assert len(started) < 10


SHAPES = {  # rows, inner, columns
    "rows": (8 * 1024 + 1, 130, 65),
    "columns": (64, 900, 2049),
    "both": (513, 500, 515),
    "long_sums": (100, 20_000, 70),
    "stacks": (5, 300, 900, 200),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_products_have_the_same_bits_on_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(3)
    *stack, rows, inner, columns = shape
    assert np.prod(shape) >= 2 * LARGE  # it is cut into parts
    pairs = [
        (
            rng.standard_normal((*stack, rows, inner), "f4"),
            rng.standard_normal((*stack, inner, columns), "f4"),
        ),
        (
            rng.standard_normal((*stack, inner, rows), "f4").swapaxes(-1, -2),
            rng.standard_normal((*stack, columns, inner), "f4").swapaxes(-1, -2),
        ),
    ]
    with threadpoolctl.threadpool_limits(1):
        for a, b in pairs:
            use_threads(monkeypatch, 1)
            want = multiply(a, b)
            for count in (2, 3):
                use_threads(monkeypatch, count)
                np.testing.assert_array_equal(multiply(a, b), want)
    exact = pairs[0][0].astype("f8") @ pairs[0][1].astype("f8")
    got = multiply(*pairs[0])
    np.testing.assert_allclose(got, exact, atol=1e-5 * inner**0.5)  # rounding grows with the sum's length


CONVOLUTIONS = {  # x, w, stride, groups
    "rows": ((3, 12, 30, 30), (16, 12, 3, 3), 1, 1),
    "short_runs": ((9, 1, 40, 40), (8, 1, 5, 5), 1, 1),
    "winograd": ((4, 64, 34, 34), (64, 64, 3, 3), 1, 1),
    "stride": ((4, 16, 60, 60), (16, 16, 3, 3), 2, 1),
    "groups": ((9, 16, 40, 40), (32, 4, 3, 3), 1, 4),
    "depthwise": ((4, 32, 40, 40), (32, 1, 3, 3), 1, 32),
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=pytest.mark.slow if name == "winograd" else ())
        for name, case in CONVOLUTIONS.items()
    ],
)
def test_convolutions_have_the_same_bits_on_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch, case: tuple[Any, ...]
) -> None:
    shape, filters, stride, groups = case
    rng = np.random.default_rng(4)
    x, w = rng.standard_normal(shape, "f4"), rng.standard_normal(filters, "f4")
    windows = Windows(filters[2:], (stride, stride), ((1, 1), (1, 1)), (1, 1))
    with threadpoolctl.threadpool_limits(1):
        out = convolve(x, w, windows, groups)
        kernels: list[Callable[[], Any]] = [
            lambda: convolve(x, w, windows, groups),
            lambda: convolve_dw(x, out, windows, groups),
            lambda: convolve_dx(out, w, windows, groups, shape[2:]),
        ]
        use_threads(monkeypatch, 1)
        want = [kernel() for kernel in kernels]
        for count in (2, 3):
            use_threads(monkeypatch, count)
            for kernel, one in zip(kernels, want, strict=True):
                np.testing.assert_array_equal(kernel(), one)
