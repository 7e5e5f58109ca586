"""Memory of C, and arithmetic as in C."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st

from paddlelike.core import clib, floats
from paddlelike.core.floats import run_quietly
from paddlelike.ops.kernels.threads import map_parts

LOW, HIGH, STD = (float(np.float32(value)) for value in (-0.3, 0.7, 0.3))


@given(st.lists(st.floats(2.0**-126, 2.0**127, width=32), min_size=1))
def test_the_logarithm_is_accurate_to_one_unit_in_the_last_place(numbers: list[float]) -> None:
    x = np.array(numbers, np.float32)
    expected = np.log(x.astype(np.float64))
    error = np.abs(clib.log(x) - expected)
    assert (error <= 0.82 * np.spacing(np.abs(expected).astype(np.float32)) + 1e-45).all()


def test_rand_gives_the_numbers_of_the_c_library() -> None:
    # what a C program prints after srand(1)
    assert list(itertools.islice(clib.rand(1), 3)) == [1804289383, 846930886, 1681692777]


def divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return x / y


@pytest.mark.parametrize("run", [run_quietly, floats._run_with_errstate], ids=["usual", "any numpy"])
def test_division_by_zero_warns_only_outside_of_quiet_functions(run: object) -> None:
    one, zero = np.ones(1), np.zeros(1)
    with np.errstate(divide="raise"):
        before = np.geterr()
        assert run(divide, one, zero) == np.inf  # type: ignore[operator]
        assert np.geterr() == before
        with pytest.raises(FloatingPointError):
            divide(one, zero)


def test_an_error_restores_the_floating_point_settings() -> None:
    before = np.geterr()
    with pytest.raises(ValueError, match="could not be broadcast"):
        run_quietly(divide, np.ones(2), np.ones(3))
    assert np.geterr() == before


def test_the_floating_point_settings_may_be_nested() -> None:
    assert run_quietly(run_quietly, divide, np.ones(1), np.zeros(1)) == np.inf
    with pytest.raises(RuntimeWarning):
        divide(np.ones(1), np.zeros(1))


@pytest.mark.skipif(int(np.__version__.split(".")[0]) < 2, reason="numpy 1 does not copy into buffers")
def test_numpy_buffers_are_small_inside_the_function_and_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    before = np.getbufsize()
    small = run_quietly(np.getbufsize)
    assert small < before
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert list(map_parts(lambda part: np.getbufsize(), range(3))) == [small] * 3
    assert np.getbufsize() == before
