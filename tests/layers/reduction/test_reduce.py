"""Reductions, sorting and searching against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError
from tests.helpers.small_networks import RNG, run

layers = fluid.layers


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("dims", [None, 1, [0, 2]], ids=str)
@pytest.mark.parametrize("keep", [False, True], ids=["drop", "keep"])
def test_a_reduction_follows_its_formula_along_the_given_dims(
    name: str, dims: int | list[int] | None, keep: bool
) -> None:
    a = RNG.uniform(0.5, 1.5, (2, 3, 4)).astype("float32")
    out = getattr(layers, f"reduce_{name}")(fluid.data("x", [2, 3, 4]), dim=dims, keep_dim=keep)
    axis = tuple(dims) if isinstance(dims, list) else dims
    wanted = getattr(np, name)(a, axis=axis, keepdims=keep)
    np.testing.assert_allclose(run(out, x=a), np.atleast_1d(wanted), rtol=1e-5)  # float32


def test_sorting_and_searching_give_values_and_indices() -> None:
    a = RNG.normal(size=(3, 5)).astype("float32")
    x = fluid.data("x", [3, 5])
    fetches = [*layers.argsort(x, axis=1), *layers.topk(x, 2), layers.argmax(x, 1), layers.argmin(x, 0)]
    values, order, best, where, greatest, least = run(fetches, x=a)
    np.testing.assert_array_equal(values, np.sort(a, 1))
    np.testing.assert_array_equal(order, np.argsort(a, 1))
    np.testing.assert_array_equal(best, -np.sort(-a, 1)[:, :2])
    np.testing.assert_array_equal(where, np.argsort(-a, 1)[:, :2])
    np.testing.assert_array_equal(greatest, a.argmax(1))
    np.testing.assert_array_equal(least, a.argmin(0))


def test_unique_elements_keep_the_order_of_appearance() -> None:
    a = np.array([3, 1, 3, 2, 1, 3], "float32")
    found, index, counts = run(layers.unique_with_counts(fluid.data("x", [6])), x=a)
    assert found.tolist() == [3, 1, 2]
    assert index.tolist() == [0, 1, 0, 2, 1, 0]
    assert counts.tolist() == [3, 2, 1]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [({}, [1, 3, 6]), ({"exclusive": True}, [0, 1, 3]), ({"reverse": True}, [6, 5, 3])],
    ids=["plain", "exclusive", "reverse"],
)
def test_cumsum_gives_running_sums(options: dict[str, bool], wanted: list[int]) -> None:
    out = layers.cumsum(fluid.data("x", [3]), axis=0, **options)
    assert run(out, x=np.array([1, 2, 3], "float32")).tolist() == wanted


def test_cos_sim_gives_the_cosines_of_rows() -> None:
    a, b = (RNG.normal(size=(3, 4)).astype("float32") for _ in range(2))
    out = layers.cos_sim(fluid.data("x", [None, 4]), fluid.data("y", [None, 4]))
    wanted = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(run(out, x=a, y=b)[:, 0], wanted, rtol=1e-5)  # float32


def test_a_dim_that_is_not_there_is_refused() -> None:
    with pytest.raises((GraphError, fluid.core.EnforceNotMet)):
        layers.reduce_sum(fluid.data("x", [2, 3]), dim=2)
