"""Diagonals, triangles, products and distances against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.small_networks import RNG, run

layers = fluid.layers

CASES: dict[str, tuple[list[int], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "tril": ([3, 4], lambda x: layers.tril(x, 1), lambda a: np.tril(a, 1)),
    "triu": ([3, 4], lambda x: layers.triu(x, -1), lambda a: np.triu(a, -1)),
    "diag_embed": ([2, 3], layers.diag_embed, lambda a: np.stack([np.diag(row) for row in a])),
    "trace": ([3, 4], lambda x: layers.trace(x, 1), lambda a: np.trace(a, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_matrix_is_what_numpy_makes_of_it(name: str) -> None:
    shape, build, formula = CASES[name]
    a = RNG.normal(size=shape).astype("float32")
    found = run(build(fluid.data("x", shape)), x=a)
    np.testing.assert_allclose(found.reshape(np.shape(formula(a))), formula(a), rtol=1e-6)  # float32


@pytest.mark.parametrize(
    ("layer", "formula"), [("kron", np.kron), ("cross", np.cross)], ids=["kron", "cross"]
)
def test_a_product_of_two_matrices(layer: str, formula: Callable[[Any, Any], Any]) -> None:
    a, b = (RNG.normal(size=(2, 3)).astype("float32") for _ in range(2))
    out = getattr(layers, layer)(fluid.data("x", [2, 3]), fluid.data("y", [2, 3]))
    np.testing.assert_allclose(run(out, x=a, y=b), formula(a, b), rtol=1e-5)  # float32


@pytest.mark.parametrize("p", [0, 1, 2, 3.5, float("inf")])
def test_a_distance_is_a_norm_of_the_difference(p: float) -> None:
    a, b = (RNG.normal(size=(2, 3)).astype("float32") for _ in range(2))
    found = run(layers.dist(fluid.data("x", [2, 3]), fluid.data("y", [2, 3]), p), x=a, y=b)
    np.testing.assert_allclose(found, [np.linalg.norm((a - b).ravel(), p)], rtol=1e-5)  # float32
