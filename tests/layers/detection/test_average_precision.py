"""DetectionMAP over several batches: the mean of all of them, until it is reset."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid

#: Rows (label, score, box) that are found, and true boxes with labels: two batches of two images.
FOUND = [
    [[1, 0.9, 0.1, 0.1, 0.4, 0.4], [1, 0.8, 0.5, 0.5, 0.9, 0.9], [2, 0.7, 0.1, 0.2, 0.5, 0.6]],
    [[2, 0.6, 0.3, 0.3, 0.8, 0.8], [1, 0.95, 0.0, 0.0, 0.3, 0.3], [2, 0.5, 0.1, 0.1, 0.5, 0.5]],
]
TRUE = [[[0.1, 0.1, 0.4, 0.45], [0.1, 0.2, 0.5, 0.5]], [[0.3, 0.3, 0.8, 0.7], [0.1, 0.1, 0.5, 0.6]]]
LABELS = [[1, 2], [2, 2]]
#: What Fluid 1.8.5 gives: of each batch, and of all batches so far; then after a reset, for batch 2.
REAL = [(1.0, 1.0), (1.0, 0.75), (1.0, 1.0)]


def feed(batch: int) -> dict[str, Any]:
    place = fluid.CPUPlace()
    return {
        "found": fluid.create_lod_tensor(np.array(FOUND[batch], "float32"), [[2, 1]], place),
        "box": fluid.create_lod_tensor(np.array(TRUE[batch], "float32"), [[1, 1]], place),
        "label": fluid.create_lod_tensor(np.array(LABELS[batch], "int32").reshape(-1, 1), [[1, 1]], place),
    }


@pytest.mark.parametrize("kind", ["metrics", "evaluator"])
def test_average_precision_accumulates_batches_until_reset(kind: str) -> None:
    found = fluid.data("found", [None, 6], lod_level=1)
    box = fluid.data("box", [None, 4], lod_level=1)
    label = fluid.data("label", [None, 1], "int32", lod_level=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        metric = getattr(fluid, kind).DetectionMAP(found, label, box, class_num=3)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())

    def run(batch: int) -> tuple[float, float]:
        current, all_batches = exe.run(feed=feed(batch), fetch_list=list(metric.get_map_var()))
        return float(current[0]), float(all_batches[0])

    values = [run(0), run(1)]
    metric.reset(exe)
    values.append(run(1))
    np.testing.assert_allclose(values, REAL, rtol=1e-6)
