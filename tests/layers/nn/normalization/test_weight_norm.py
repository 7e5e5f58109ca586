"""Weight normalization: the first weight, and what its parts do."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.small_networks import run

layers = fluid.layers


@pytest.mark.parametrize("dim", [None, 0, 1, 2])
def test_weight_norm_begins_as_the_plain_weight_and_scales_with_g(dim: int | None) -> None:
    shape = [2, 3, 4]
    attr = fluid.WeightNormParamAttr(dim=dim, name="w")
    weight = layers.create_parameter(shape, "float32", attr=attr)
    w, v, g = run([weight, "w_v", "w_g"])
    np.testing.assert_allclose(w, v, rtol=1e-5)
    fluid.global_scope().find_var("w_g").get_tensor().set(3 * g, fluid.CPUPlace())
    scaled = fluid.Executor().run(fetch_list=[weight])[0]
    np.testing.assert_allclose(scaled, 3 * v, rtol=1e-5)
    axes = tuple(i for i in range(3) if i != dim)
    np.testing.assert_allclose(g, np.sqrt((v * v).sum(axes, keepdims=True)), rtol=1e-5)
