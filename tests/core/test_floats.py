"""Quiet arithmetic: no warning inside, and what numpy says afterwards is what it said before."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from paddlelike.core import floats
from paddlelike.core.floats import run_quietly
from paddlelike.ops.kernels.threads import map_parts


def divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return x / y


@pytest.mark.parametrize("run", [run_quietly, floats._run_with_errstate], ids=["usual", "any numpy"])
def test_a_quotient_by_zero_warns_outside_alone(run: object) -> None:
    one, zero = np.ones(1), np.zeros(1)
    with np.errstate(divide="raise"):
        before = np.geterr()
        assert run(divide, one, zero) == np.inf  # type: ignore[operator]
        assert np.geterr() == before
        with pytest.raises(FloatingPointError):
            divide(one, zero)


def test_an_error_inside_leaves_it_as_it_was() -> None:
    before = np.geterr()
    with pytest.raises(ValueError, match="could not be broadcast"):
        run_quietly(divide, np.ones(2), np.ones(3))
    assert np.geterr() == before


def test_the_floating_point_settings_may_be_nested() -> None:
    assert run_quietly(run_quietly, divide, np.ones(1), np.zeros(1)) == np.inf
    with pytest.raises(RuntimeWarning):
        divide(np.ones(1), np.zeros(1))


@pytest.mark.skipif(int(np.__version__.split(".")[0]) < 2, reason="numpy 1 does not copy into buffers")
def test_buffers_are_small_in_the_function_and_in_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    before = np.getbufsize()
    small = run_quietly(np.getbufsize)
    assert small < before
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert list(map_parts(lambda part: np.getbufsize(), range(3))) == [small] * 3
    assert np.getbufsize() == before
