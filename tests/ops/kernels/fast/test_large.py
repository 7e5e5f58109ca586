"""Compiled kernels beside numpy's on arrays of sizes that go through all their loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.ops.kernels.detection.boxes import find_overlaps
from paddlelike.ops.kernels.detection.suppression import suppress
from paddlelike.ops.kernels.nn.image import pool
from paddlelike.ops.kernels.nn.image.layouts import empty_as, view_channels_first
from paddlelike.ops.kernels.nn.image.windows import Windows
from paddlelike.ops.kernels.nn.normalization import batch_statistics
from paddlelike.ops.kernels.recurrent import gru, lstm
from paddlelike.ops.kernels.recurrent.steps import Steps
from tests.helpers.fast_kernels import force_kernels, needs_numba

RNG = np.random.default_rng(4)
#: Kernels of single steps, which take sequences that are too many or too wide for one kernel.
OF_STEPS = {
    f"recurrent.{name}"
    for name in (
        "add_to_gates", "update_cells", "find_factors", "reset_states", "blend_states", "find_gru_factors",
        "multiply_gate_gradients", "add_state_gradients",
    )
}  # fmt: skip


def make_boxes(count: int, *, unusual: bool) -> np.ndarray:
    """Return boxes on a grid, so that many touch; unusual ones are empty or upside down, too."""
    corner = RNG.integers(0, 20, (count, 2))
    return np.concatenate([corner, corner + RNG.integers(-1 if unusual else 1, 8, (count, 2))], 1).astype("f")


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("unusual", [True, False])
def test_overlaps_have_the_same_bits_as_numpy(normalized: bool, unusual: bool) -> None:
    first, second = make_boxes(30, unusual=unusual), make_boxes(40, unusual=unusual)
    want = find_overlaps(first, second, normalized=normalized)
    with force_kernels(compiled=False) as called:
        got = find_overlaps(first, second, normalized=normalized)
    assert called == {"boxes.find_overlaps"}
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("eta", [1.0, 0.8])
def test_compiled_suppression_keeps_the_same_boxes_as_numpy(normalized: bool, eta: float) -> None:
    boxes = make_boxes(300, unusual=True)
    want = suppress(boxes, threshold=0.6, eta=eta, normalized=normalized)
    with force_kernels(compiled=False):
        got = suppress(boxes, threshold=0.6, eta=eta, normalized=normalized)
    assert 64 < len(want) < 300  # more than are compared at once
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("eta", [1.0, 0.8])
@pytest.mark.parametrize("most", [0, 1, 70, 1000])
def test_stopping_suppression_early_keeps_the_same_first_boxes(eta: float, most: int) -> None:
    boxes = make_boxes(300, unusual=True)
    want = suppress(boxes, threshold=0.6, eta=eta)[:most]
    got = suppress(boxes, threshold=0.6, eta=eta, most=most)
    with force_kernels(compiled=False):
        compiled = suppress(boxes, threshold=0.6, eta=eta, most=most)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(compiled, want)


def test_boxes_with_nan_or_inf_use_numpy() -> None:
    boxes = np.array([[0, 0, 1, np.nan], [0, 0, 1, 1], [0, 0, np.inf, 1]], np.float32)
    with np.errstate(invalid="ignore"):  # as the executor does
        want = suppress(boxes, threshold=0.5)
        with force_kernels(compiled=False):
            got = suppress(boxes, threshold=0.5)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("kernel", "stride", "pad"),
    [(2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 3, 0), ((3, 2), (1, 2), (0, 1))],
    ids=str,
)
def test_maxima_and_their_gradient_have_the_same_bits_as_numpy(kernel: Any, stride: Any, pad: Any) -> None:
    kernel, stride, pad = (np.broadcast_to(each, 2).tolist() for each in (kernel, stride, pad))
    windows = Windows(tuple(kernel), tuple(stride), tuple((each, each) for each in pad), (1, 1))
    x = view_channels_first(RNG.integers(-3, 4, (2, 9, 8, 32)).astype(np.float32))  # with equal ones
    x[0, 0, 2, 2], x[0, 1, 3, 3] = np.nan, -np.inf
    axes = pool.make_regular(windows, x.shape[2:], windows.counts(x.shape[2:]))
    want = pool.maximum(x, axes)
    d_out = empty_as(x, want.shape)
    d_out[...] = RNG.standard_normal(want.shape)
    want_dx = pool.maximum_dx(x, want, d_out, axes)
    with force_kernels(compiled=False) as called:
        np.testing.assert_array_equal(pool.maximum(x, axes), want)
        np.testing.assert_array_equal(pool.maximum_dx(x, want, d_out, axes), want_dx)
    assert called == {"pools.find_maxima", "pools.find_maxima_dx"}


@pytest.mark.parametrize("shape", [(75, 1030), (3072, 16), (4099, 3)])  # several parts; lanes; a prime
def test_statistics_match_float64(shape: tuple[int, int]) -> None:
    # Far from zero and in parts of different means: sums of squares would cancel.
    rows = (RNG.standard_normal(shape) + np.arange(shape[0])[:, None] / 1000 + 30).astype(np.float32)
    scale, bias = RNG.standard_normal((2, shape[1])).astype(np.float32)
    with force_kernels(compiled=False) as called:
        y, mean, variance, inverse = batch_statistics.normalize(rows, scale, bias, 1e-5)
    exact = rows.astype(np.float64)
    np.testing.assert_allclose(mean, exact.mean(0), 1e-6)  # sums of thousands in float32
    np.testing.assert_allclose(variance, exact.var(0), 5e-6)
    x_hat = (exact - exact.mean(0)) / np.sqrt(exact.var(0) + 1e-5)
    np.testing.assert_allclose(y, x_hat * scale + bias, 1e-4, 1e-4)  # of means of 30 in float32
    d_y = RNG.standard_normal(shape).astype(np.float32)
    with force_kernels(compiled=False) as called_back:
        factor = scale * inverse
        dx, d_scale, d_bias = batch_statistics.normalize_dx(rows, d_y, mean, inverse, factor, fixed=False)
    np.testing.assert_allclose(d_scale, (d_y * x_hat).sum(0), 1e-3, 1e-2)  # thousands of terms around 0
    np.testing.assert_allclose(d_bias, d_y.sum(0, dtype=np.float64), 1e-3, 1e-3)
    want = scale * inverse * (d_y - d_y.mean(0) - x_hat * (d_y * x_hat).mean(0))
    np.testing.assert_allclose(dx, want, 1e-3, 1e-4)
    assert called == {"channels.find_moments", "channels.scale_centered"}
    assert called_back == {"channels.sum_products", "channels.combine"}


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=[needs_numba, pytest.mark.slow])])
@pytest.mark.parametrize(
    ("dtype", "relative", "absolute"), [("f8", 1e-10, 1e-13), ("f4", 2e-5, 1e-5)], ids=["f8", "f4"]
)
@pytest.mark.parametrize("ends", [[0, 9], [0, 4, 13], [0, 7, 7, 9, 10, 15]], ids=["one", "two", "five"])
def test_kernels_over_whole_sequences_compute_the_same_states_as_single_steps(
    ends: list[int], dtype: str, relative: float, absolute: float, compiled: bool
) -> None:
    steps, width = Steps.of(np.array(ends), reverse=True), 6  # four rows of a weight at once, and two
    first = RNG.standard_normal((steps.first, width)).astype(dtype)
    x = (9 * RNG.standard_normal((ends[-1], 4 * width))).astype(dtype)
    x[3, ::5], x[5, ::7], x[6, 0] = np.inf, -np.inf, 1e4  # beyond all limits of sigmoids and tangents
    x[ends[-2], 1] = np.nan  # the last row of a sequence
    weight = RNG.standard_normal((width, 4 * width)).astype(dtype)
    bias = RNG.standard_normal((1, 7 * width)).astype(dtype)
    lstm_cell = lstm.make_cell("lstm", weight, bias, lstm.LstmAttrs())
    gru_cells = [
        gru.make_cell("gru", weight[:, 6:].copy(), "sigmoid", "tanh", origin) for origin in (True, False)
    ]

    def compute() -> list[np.ndarray]:
        ran = lstm.run_steps(lstm_cell, steps, x, lstm.Initial(first, first[::-1]))
        found = [gru.run_steps(cell, steps, x[:, 6:].copy(), x[:1, 6:], first) for cell in gru_cells]
        return [*ran, *(array for each in found for array in each)]

    want = compute()
    with force_kernels(compiled=compiled) as called:
        got = compute()
    assert called == {"recurrent.run_lstm", "recurrent.run_gru"}
    assert np.isnan(want[0]).any()
    assert not np.isnan(want[0]).all()
    for have, expected in zip(got, want, strict=True):
        # sigmoids stop at 13 in float32 and float64 alike; sums of 6 terms in another order
        np.testing.assert_allclose(have, expected, relative, absolute)


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=[needs_numba, pytest.mark.slow])])
def test_the_kernel_of_an_lstm_without_peepholes_keeps_an_infinite_cell_out_of_the_gates(
    compiled: bool,
) -> None:
    steps, width = Steps.of(np.array([0, 4])), 6
    attrs = lstm.LstmAttrs(use_peepholes=False)
    cell = lstm.make_cell("lstm", RNG.standard_normal((width, 4 * width)), np.zeros((1, 4 * width)), attrs)
    states = np.zeros((1, width)), np.array([[np.inf, 1, 2, 3, 4, 5]])
    x = RNG.standard_normal((4, 4 * width))
    want = lstm.run_steps(cell, steps, x, lstm.Initial(*states))
    assert not np.isnan(want.hidden).any()
    with force_kernels(compiled=compiled) as called:
        got = lstm.run_steps(cell, steps, x, lstm.Initial(*states))
    assert called == {"recurrent.run_lstm"}
    np.testing.assert_allclose(got.hidden, want.hidden, 1e-10, 1e-13)


def test_the_kernel_of_an_lstm_does_not_run_with_peepholes_that_its_bias_lacks() -> None:
    steps, width = Steps.of(np.array([0, 4])), 6
    cell = lstm.make_cell("lstm", np.zeros((width, 4 * width)), np.zeros((1, 4 * width)), lstm.LstmAttrs())
    first = np.zeros((1, width))
    with force_kernels(compiled=False) as called, pytest.raises(ValueError, match="broadcast"):
        lstm.run_steps(cell, steps, np.zeros((4, 4 * width)), lstm.Initial(first, first))
    assert "recurrent.run_lstm" not in called


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=[needs_numba, pytest.mark.slow])])
@pytest.mark.parametrize("origin", [True, False])
@pytest.mark.parametrize("ends", [[0, 9], [0, 7, 7, 9, 10, 15]], ids=["one", "five"])
def test_kernels_over_whole_sequences_have_the_gradients_of_single_steps(
    ends: list[int], origin: bool, compiled: bool
) -> None:
    steps, width = Steps.of(np.array(ends)), 6
    cell = gru.make_cell("gru", RNG.standard_normal((width, 3 * width)), "sigmoid", "tanh", origin)
    first = RNG.standard_normal((steps.first, width))
    gates, _, hidden = gru.run_steps(cell, steps, RNG.standard_normal((ends[-1], 3 * width)), None, first)
    last, d_hidden = steps.before(hidden, first), RNG.standard_normal((ends[-1], width))
    want = gru.run_steps_back(cell, steps, gates, last, d_hidden.copy())
    with force_kernels(compiled=compiled) as called:
        got = gru.run_steps_back(cell, steps, gates, last, d_hidden.copy())
    assert "recurrent.run_gru_back" in called
    for have, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(have, expected, 1e-12, 1e-12)


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=[needs_numba, pytest.mark.slow])])
@pytest.mark.parametrize("ends", [[0, 9], [0, 7, 7, 9, 10, 15]], ids=["one", "five"])
def test_the_kernel_of_an_lstm_whose_gradients_stop_has_the_gradients_of_single_steps(
    ends: list[int], compiled: bool
) -> None:
    steps, width = Steps.of(np.array(ends)), 8
    x, weight, bias = (draw(n, width) for n in (ends[-1], width, 1))
    cell = lstm.make_cell("lstm", weight, bias, lstm.LstmAttrs(use_peepholes=False))
    assert cell.stops_gradients
    initial = lstm.Initial(*(np.zeros((steps.first, width), "float32") for _ in range(2)))
    ran = lstm.run_steps(cell, steps, x, initial)
    d_hidden = draw(ends[-1], width)[:, :width].copy()
    want = lstm.run_steps_back(cell, steps, ran, d_hidden.copy(), initial)
    with force_kernels(compiled=compiled) as called:
        got = lstm.run_steps_back(cell, steps, ran, d_hidden.copy(), initial)
    assert "recurrent.run_lstm_back" in called
    for have, expected in zip((got.gates, *got.initial), (want.gates, *want.initial), strict=True):
        np.testing.assert_allclose(have, expected, 1e-5, 1e-6)


def draw(rows: int, width: int) -> np.ndarray:
    """Return rows of the gates of an LSTM."""
    return RNG.standard_normal((rows, 4 * width)).astype("float32")


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=[needs_numba, pytest.mark.slow])])
def test_steps_of_many_sequences_have_the_same_bits_as_numpy(compiled: bool) -> None:
    lengths, width = RNG.integers(0, 6, 12), 6
    steps = Steps.of(np.concatenate([[0], np.cumsum(lengths)]))
    x, weight = RNG.standard_normal((lengths.sum(), 4 * width)), RNG.standard_normal((width, 4 * width))
    first = RNG.standard_normal((steps.first, width))
    attrs = lstm.LstmAttrs(use_peepholes=False)
    long = lstm.make_cell("lstm", weight, np.zeros((1, 4 * width)), attrs)
    gated = gru.make_cell("gru", weight[:, 6:].copy(), "sigmoid", "tanh", False)

    def compute() -> list[np.ndarray]:
        ran = lstm.run_steps(long, steps, x, lstm.Initial(first, first))
        back = lstm.run_steps_back(long, steps, ran, ran.hidden.copy(), lstm.Initial(first, first))
        gates, reset, hidden = gru.run_steps(gated, steps, x[:, 6:].copy(), None, first)
        found = gru.run_steps_back(gated, steps, gates, steps.before(hidden, first), hidden.copy())
        return [*ran, back.gates, gates, reset, hidden, *found]

    want = compute()
    with force_kernels(compiled=compiled) as called:
        got = compute()
    assert called == OF_STEPS
    for have, expected in zip(got, want, strict=True):
        np.testing.assert_array_equal(have, expected)
