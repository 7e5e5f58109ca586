"""SGD and Dpsgd against their formulas."""

from __future__ import annotations

import numpy as np

import paddlelike as fluid
from paddlelike import optimizer
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
    exe = fluid.Executor(fluid.CPUPlace())
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
