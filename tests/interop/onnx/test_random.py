"""Random operators, exported, draw from Paddle's distributions, and other numbers in every run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is in the extra 'test-all'")

import paddlelike as fluid
from paddlelike import layers
from tests.interop.onnx.runs import run_onnx

pytestmark = pytest.mark.slow

COUNT = 20_000
#: By operator: how it is built, its mean, its variance, its bounds.
DRAWN: dict[str, tuple[Any, float, float, float, float]] = {
    "uniform_random": (lambda x: layers.uniform_random([COUNT], min=2.0, max=5.0), 3.5, 0.75, 2, 5),
    "gaussian_random": (lambda x: layers.gaussian_random([COUNT], mean=1.0, std=2.0), 1, 4, -np.inf, np.inf),
    "uniform_like": (
        lambda x: layers.uniform_random_batch_size_like(x, [-1, 2], min=0.0, max=1.0), 0.5, 1 / 12, 0, 1
    ),
    "gaussian_like": (
        lambda x: layers.gaussian_random_batch_size_like(x, [-1, 2], std=3.0), 0, 9, -np.inf, np.inf
    ),
    "randint": (lambda x: layers.randint(3, 7, [COUNT]), 4.5, 1.25, 3, 6),
    "randperm": (lambda x: layers.randperm(COUNT), (COUNT - 1) / 2, (COUNT**2 - 1) / 12, 0, COUNT - 1),
    "sampling_id": (lambda x: layers.sampling_id(x), 1.4, 0.64, 0, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_random_operators_have_the_distribution_of_onnxruntime(name: str, tmp_path: Path) -> None:
    build, mean, variance, low, high = DRAWN[name]
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 3])
        out = build(x)
        used = layers.reduce_sum(x)
    fluid.export_onnx(main, tmp_path / "it.onnx", ["x"], [out, used])
    feed = {"x": np.tile(np.array([[0.2, 0.2, 0.6]], np.float32), (COUNT, 1))}
    (ours, _), (theirs, _) = (
        fluid.Executor().run(main, feed=feed, fetch_list=[out, used]),
        run_onnx(tmp_path / "it.onnx", feed),
    )
    assert (theirs.shape, theirs.dtype) == (ours.shape, ours.dtype)
    assert low <= theirs.min() <= theirs.max() <= high
    if name == "randperm":
        assert sorted(theirs.tolist()) == list(range(COUNT))
    for drawn in (ours, theirs):  # six standard errors, of the mean and, for kurtosis at most 3, the variance
        error = np.sqrt(variance / drawn.size)
        assert abs(drawn.mean() - mean) < 6 * error
        assert abs(drawn.astype("float64").var() - variance) < 6 * variance * np.sqrt(2 / drawn.size)
