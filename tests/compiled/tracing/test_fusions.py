"""What a convolution or a product reads is computed once, and has the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)
jnp = jax.numpy


def _train(x: Any, weights: list[Any]) -> Any:
    """Return the gradients of a residual network, ``x`` of shape (N, H, W, C)."""

    def convolve(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def loss(weights: list[Any]) -> Any:
        y = x
        for w in weights:
            y = jnp.maximum(convolve(y, w) * 2 + y, 0)
        return (y * y).sum()

    return jax.grad(loss)(weights)


def test_sums_of_a_residual_network_are_computed_once() -> None:
    from paddlelike.compiled.tracing.orders import delay_transposes

    x, weights = jnp.ones((2, 16, 16, 32)), [jnp.ones((3, 3, 32, 32))] * 4
    counts = []
    for function in (_train, delay_transposes(_train)):
        text = jax.jit(function).lower(x, weights).compile().as_text()
        counts.append(sum(" maximum(" in line for line in text.splitlines()))
    assert counts[1] == len(weights) < counts[0]


def test_sharing_common_subexpressions_changes_no_bit() -> None:
    from paddlelike.compiled.tracing.fusions import compute_once

    values = np.array([0.0, -0.0, 1e-45, -3.5, np.inf, -np.inf, np.nan], np.float32)
    found = np.asarray(jax.jit(compute_once)(values))
    assert found.tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("name", "repeats"),
    [("of one array", True), ("of two arrays", False), ("read once", False), ("small", False)],
)
def test_only_large_elementwise_inputs_of_products_are_computed_again(name: str, repeats: bool) -> None:
    from paddlelike.compiled.tracing.fusions import find_repeated

    def compute(x: Any, y: Any) -> Any:
        z = jnp.maximum(x + y if name == "of two arrays" else x, y if name == "of two arrays" else 1)
        product = z.T @ x
        return product if name == "read once" else (product, z)

    x = jnp.zeros((4, 4) if name == "small" else (64, 64))
    assert bool(find_repeated(jax.make_jaxpr(compute)(x, x).jaxpr)) is repeats
