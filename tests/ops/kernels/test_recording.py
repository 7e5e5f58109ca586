"""What numpy and compiled loops do, of functions that are recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.ops.kernels.recording import record

RNG = np.random.default_rng(5)
ARRAYS = [RNG.uniform(0.5, 2, 40).astype(np.float32) for _ in range(4)]


def _swap(p: Any, g: Any, a: Any, b: Any, /, x: Any) -> Any:
    """Each result is computed from what another one is written over."""
    return p + x, b * g - a, a / b


def _keep(p: Any, g: Any, a: Any, b: Any, /, x: Any) -> Any:
    both = a * g
    return both + b, both, b


def _bend(p: Any, g: Any, a: Any, b: Any, /, x: Any, *, is_bent: bool) -> Any:
    s = np.sqrt(a) + 1
    low = np.where(s > x, np.copysign(s, g), 0) if is_bent else -s
    return np.maximum(low, p), s * s, np.abs(b - low)


def _deep(p: Any, g: Any, a: Any, b: Any, /, x: Any) -> Any:
    return (p * g + a * b) * (p * b + a * g) - (p + a) * (g + b), a - x, a * b


FUNCTIONS = {"swap": (_swap, {}), "keep": (_keep, {}), "deep": (_deep, {})}
FUNCTIONS |= {f"bend-{one}": (_bend, {"is_bent": one}) for one in (False, True)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_recorded_formulas_have_the_same_bits_as_direct_evaluation(name: str) -> None:
    function, flags = FUNCTIONS[name]
    want = function(*ARRAYS, np.float32(1.5), **flags)
    found = record(function, flags)
    for compute in (found.evaluate, found.dense.function):
        arrays = [array.copy() for array in ARRAYS]
        compute(*arrays, np.float32(1.5), *(np.float32(one) for one in found.constants))
        for target, value in zip((arrays[0], *arrays[2:]), want, strict=True):
            assert target.tobytes() == value.astype(np.float32).tobytes()
        assert arrays[1].tobytes() == ARRAYS[1].tobytes()


def test_a_subset_of_rows_gives_the_same_bits_as_the_whole() -> None:
    found = record(_deep, {})
    whole = [array.reshape(10, 4).copy() for array in ARRAYS]
    rows, wanted = np.array([7, 0, 3]), [array[[7, 0, 3]] for array in whole]
    found.evaluate(*wanted, np.float32(1.5))
    found.by_row.function(rows, whole[1][rows], whole[0], *whole[2:], np.float32(1.5))
    for array, want, before in zip(whole, wanted, ARRAYS, strict=True):
        assert array[rows].tobytes() == want.tobytes()
        assert np.delete(array, rows, 0).tobytes() == np.delete(before.reshape(10, 4), rows, 0).tobytes()


def test_recording_a_formula_without_gradients_adds_no_steps() -> None:
    def move(p: Any, g: Any, v: Any, /, lr: Any) -> Any:
        v = v * lr + g * g / lr
        return p - (g + v), v

    zero, spared = record(move, {}), record(move, {}, gradient=False)
    p, v = ARRAYS[0].copy(), ARRAYS[2].copy()
    zero.evaluate(p, np.zeros_like(p), v, np.float32(0.5))
    other, w = ARRAYS[0].copy(), ARRAYS[2].copy()
    spared.evaluate(other, w, np.float32(0.5))
    assert (p.tobytes(), v.tobytes()) == (other.tobytes(), w.tobytes())
    w = np.float32([-0.0])
    spared.evaluate(np.float32([1.0]), w, np.float32(0.5))
    assert np.signbit(w)


def test_recorded_powers_are_computed_by_numpy() -> None:
    def raise_to(p: Any, g: Any, /, x: Any) -> Any:
        return p**x

    found = record(raise_to, {})
    assert found.dense is None
    assert found.by_row is None
