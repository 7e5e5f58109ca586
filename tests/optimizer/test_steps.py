"""The steps of each optimizer against their formulas in numpy."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import optimizer
from paddlelike.errors import UnsupportedError
from tests.optimizer.harness.training import follow

START = [0.5, -1.0, 2.0]
GRADIENTS = [[0.3, -0.2, 0.0], [-0.1, 0.4, 1.0], [0.2, 0.2, -0.5]]


def test_sgd_subtracts_the_scaled_gradient() -> None:
    p = np.array(START)
    for gradient, found in zip(GRADIENTS, follow(optimizer.SGD(0.1), START, GRADIENTS), strict=True):
        p = p - 0.1 * np.array(gradient)
        np.testing.assert_allclose(found, p, rtol=1e-6)  # float32


def test_dpsgd_limits_the_norm_and_adds_noise() -> None:
    fluid.default_main_program().random_seed = 3
    tool = optimizer.Dpsgd(0.1, clip=0.5, batch_size=2.0, sigma=0.0)
    gradient = np.array([3.0, -4.0, 0.0])
    (found,) = follow(tool, START, [gradient])
    np.testing.assert_allclose(found, START - 0.1 * gradient * (0.5 / 5.0), rtol=1e-5)  # float32


def test_repeated_rows_are_rounded_each_time_as_in_fluid() -> None:
    """Bits of real Fluid 1.8.5; their sums first would give others."""
    table = fluid.ParamAttr(name="e", initializer=fluid.initializer.Constant(1.0))
    out = fluid.embedding(fluid.data("ids", [None], "int64"), [4, 2], is_sparse=True, param_attr=table)
    fluid.optimizer.SGD(0.37).minimize(fluid.layers.reduce_sum(out * fluid.data("w", [None, 2])))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    weights = np.random.RandomState(0).randn(7, 2).astype("float32")
    exe.run(feed={"ids": np.array([1, 1, 2, 1, 2, 1, 1]), "w": weights})
    found = np.array(fluid.global_scope().find_var("e").get_tensor())[1:3].ravel()
    assert [float(one).hex() for one in found] == [
        "-0x1.6709a00000000p-1",
        "-0x1.0231f60000000p-1",
        "0x1.6386f40000000p-2",
        "0x1.35ad040000000p+0",
    ]


@pytest.mark.parametrize("nesterov", [False, True], ids=["plain", "nesterov"])
def test_momentum_keeps_a_velocity(nesterov: bool) -> None:
    p, v = np.array(START), np.zeros(3)
    tool = optimizer.Momentum(0.1, 0.9, use_nesterov=nesterov)
    for gradient, found in zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True):
        g = np.array(gradient)
        v = 0.9 * v + g
        p = p - 0.1 * (g + 0.9 * v if nesterov else v)
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32


def test_lars_scales_the_rate_by_the_norms() -> None:
    p, v = np.array(START), np.zeros(3)
    tool = optimizer.LarsMomentum(0.1, 0.9, lars_coeff=0.01, lars_weight_decay=0.02)
    for gradient, found in zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True):
        g = np.array(gradient)
        norms = np.linalg.norm(p), np.linalg.norm(g)
        rate = 0.1 * 0.01 * norms[0] / (norms[1] + 0.02 * norms[0])
        v = 0.9 * v + rate * (g + 0.02 * p)
        p = p - v
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32


def test_adagrad_divides_by_the_root_of_the_sum_of_squares() -> None:
    p, m = np.array(START), np.full(3, 0.1)
    tool = optimizer.Adagrad(0.1, epsilon=1e-6, initial_accumulator_value=0.1)
    for gradient, found in zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True):
        g = np.array(gradient)
        m = m + g * g
        p = p - 0.1 * g / (np.sqrt(m) + 1e-6)
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32


def test_decayed_adagrad_decays_old_squares() -> None:
    p, m = np.array(START), np.zeros(3)
    tool = optimizer.DecayedAdagrad(0.1, decay=0.9, epsilon=1e-6)
    for gradient, found in zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True):
        g = np.array(gradient)
        m = 0.9 * m + 0.1 * g * g
        p = p - 0.1 * g / (np.sqrt(m) + 1e-6)
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32


def test_adadelta_scales_by_past_steps_whatever_the_rate() -> None:
    p, squares, steps = np.array(START), np.zeros(3), np.zeros(3)
    tool = optimizer.Adadelta(123.0, epsilon=1e-3, rho=0.9)
    for gradient, found in zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True):
        g = np.array(gradient)
        squares = 0.9 * squares + 0.1 * g * g
        ratio = (steps + 1e-3) / (squares + 1e-3)
        steps = 0.9 * steps + 0.1 * ratio * g * g
        p = p - np.sqrt((steps + 1e-3) / (squares + 1e-3)) * g  # by the new average, as in Paddle
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32


def test_adam_corrects_its_averages_for_their_start() -> None:
    p, m, v = np.array(START), np.zeros(3), np.zeros(3)
    tool = optimizer.Adam(0.1, beta1=0.8, beta2=0.9, epsilon=1e-8)
    for t, (gradient, found) in enumerate(zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True), 1):
        g = np.array(gradient)
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        rate = 0.1 * np.sqrt(1 - 0.9**t) / (1 - 0.8**t)
        p = p - rate * m / (np.sqrt(v) + 1e-8)
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32


def test_adamax_divides_by_the_largest_gradient() -> None:
    p, m, u = np.array(START), np.zeros(3), np.zeros(3)
    tool = optimizer.Adamax(0.1, beta1=0.8, beta2=0.9, epsilon=1e-8)
    for t, (gradient, found) in enumerate(zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True), 1):
        g = np.array(gradient)
        m, u = 0.8 * m + 0.2 * g, np.maximum(np.abs(g), 0.9 * u + 1e-8)
        p = p - 0.1 / (1 - 0.8**t) * m / u
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32


def test_lamb_excludes_parameters_from_decay() -> None:
    free = follow(optimizer.Lamb(0.1, lamb_weight_decay=0.0), START, GRADIENTS[:1])[0]
    fluid.default_main_program().global_block()
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.core.Scope()):
        tool = optimizer.Lamb(0.1, lamb_weight_decay=0.5, exclude_from_weight_decay_fn=lambda p: True)
        np.testing.assert_array_equal(follow(tool, START, GRADIENTS[:1])[0], free)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.core.Scope()):
        decayed = follow(optimizer.Lamb(0.1, lamb_weight_decay=0.5), START, GRADIENTS[:1])[0]
    assert not np.array_equal(decayed, free)


def test_a_large_l1_makes_weights_zero() -> None:
    assert follow(optimizer.Ftrl(0.1, l1=100.0, l2=100.0), START, GRADIENTS)[-1].tolist() == [0, 0, 0]


def test_ftrl_with_a_learning_rate_of_zero_sets_weights_to_zero() -> None:
    """It divides zero by zero. Paddle 1.8.5 leaves the state at NaN and the weights at 0."""
    assert follow(optimizer.Ftrl(0.0), START, GRADIENTS)[-1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("centered", [False, True], ids=["plain", "centered"])
def test_rmsprop_divides_by_a_moving_mean(centered: bool) -> None:
    p, square, mean, v = np.array(START), np.zeros(3), np.zeros(3), np.zeros(3)
    tool = optimizer.RMSProp(0.1, rho=0.9, epsilon=1e-3, momentum=0.5, centered=centered)
    for gradient, found in zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True):
        g = np.array(gradient)
        square, mean = 0.9 * square + 0.1 * g * g, 0.9 * mean + 0.1 * g
        spread = square - mean * mean if centered else square
        v = 0.5 * v + 0.1 * g / np.sqrt(spread + 1e-3)
        p = p - v
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32


@pytest.mark.parametrize("name", ["DGCMomentumOptimizer", "PipelineOptimizer"])
def test_optimizers_that_need_other_hardware_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=name):
        getattr(optimizer, name)(0.1, 0.9, rampup_begin_step=0)
