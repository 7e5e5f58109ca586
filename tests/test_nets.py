"""Groups of layers against their formulas in numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.small_networks import random_input, run, softmax

layers = fluid.layers


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_weighs_values_by_the_softmax_of_products(heads: int) -> None:
    (q, a), (k, b), (v, c) = (
        random_input("q", 2, 3, 4),
        random_input("k", 2, 5, 4),
        random_input("v", 2, 5, 6),
    )
    out = fluid.nets.scaled_dot_product_attention(q, k, v, num_heads=heads)
    names = [p.name for p in out.block.all_parameters()]
    found, *parameters = run([out, *names], q=a, k=b, v=c)
    if heads > 1:
        a, b, c = (
            x @ w + bias for x, w, bias in zip((a, b, c), parameters[::2], parameters[1::2], strict=True)
        )
    parts = [
        softmax(x @ y.transpose(0, 2, 1) / math.sqrt(4 / heads)) @ z
        for x, y, z in zip(*(np.split(t, heads, axis=2) for t in (a, b, c)), strict=True)
    ]
    np.testing.assert_allclose(found, np.concatenate(parts, 2), atol=1e-6)


def test_glu_gates_one_half_with_the_other() -> None:
    x, a = random_input("x", 3, 6)
    np.testing.assert_allclose(run(fluid.nets.glu(x), x=a), a[:, :3] / (1 + np.exp(-a[:, 3:])), atol=1e-6)
