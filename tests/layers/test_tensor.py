"""Tensors, reductions, linear algebra, losses and metrics against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError
from tests.helpers.small_networks import RNG, random_input, run, softmax

layers = fluid.layers


def test_eye_is_repeated_over_a_batch() -> None:
    found = run(layers.eye(2, 3, batch_shape=[4, 5]))
    np.testing.assert_array_equal(found, np.broadcast_to(np.eye(2, 3), (4, 5, 2, 3)))


@pytest.mark.parametrize(("shifts", "dims"), [(2, None), ([1, -1], [0, 1]), (1, 1)])
def test_roll_shifts_elements_cyclically(shifts: Any, dims: Any) -> None:
    a = RNG.normal(size=(3, 4)).astype("float32")
    out = layers.roll(fluid.data("x", [3, 4]), shifts, dims)
    wanted = np.roll(a, shifts, None if dims is None else tuple(np.atleast_1d(dims)))
    np.testing.assert_array_equal(run(out, x=a), wanted)


def test_nonzero_as_a_tuple_is_a_column_per_dim() -> None:
    a = np.array([[0, 1, 0], [2, 0, 3]], "float32")
    found = run(layers.nonzero(fluid.data("x", [2, 3]), as_tuple=True), x=a)
    np.testing.assert_array_equal(np.concatenate(found, 1), np.argwhere(a))


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


def test_a_missing_dimension_is_refused() -> None:
    with pytest.raises((GraphError, fluid.core.EnforceNotMet)):
        layers.reduce_sum(fluid.data("x", [2, 3]), dim=2)


def test_log_softmax_subtracts_the_logsumexp() -> None:
    x, a = random_input("x", 3, 5)
    soft, total = run([layers.log_softmax(x), layers.logsumexp(x, 1, keepdim=True)], x=a)
    np.testing.assert_allclose(soft, np.log(softmax(a)), atol=1e-6)
    np.testing.assert_allclose(a - soft, np.broadcast_to(total, a.shape), atol=1e-5)


@pytest.mark.parametrize("k", [1, 2])
def test_accuracy_counts_labels_among_the_top_k(k: int) -> None:
    a = RNG.normal(size=(8, 4)).astype("float32")
    ids = RNG.integers(0, 4, (8, 1))
    out = layers.accuracy(fluid.data("x", [None, 4]), fluid.data("y", [None, 1], "int64"), k=k)
    hits = (np.argsort(-a, 1)[:, :k] == ids).any(1)
    np.testing.assert_allclose(run(out, x=a, y=ids), [hits.mean()], rtol=1e-6)  # float32


def test_auc_is_the_probability_that_a_positive_ranks_higher() -> None:
    scores = RNG.permutation(np.linspace(0.01, 0.99, 40)).astype("float32")
    labels = (RNG.uniform(size=40) < scores).astype("int64")
    pairs = scores[labels == 1][:, None] > scores[labels == 0]
    area, *_ = layers.auc(
        fluid.data("x", [None, 2]), fluid.data("y", [None, 1], "int64"), num_thresholds=2**12 - 1
    )
    found = run(area, x=np.stack([1 - scores, scores], 1), y=labels[:, None])
    np.testing.assert_allclose(found, [pairs.mean()], atol=1e-3)  # scores fall into 4,096 bins


def test_mean_iou_is_the_mean_over_classes() -> None:
    guess, truth = np.array([0, 1, 1, 2, 2, 2]), np.array([0, 0, 1, 2, 2, 1])
    ious = [((guess == c) & (truth == c)).sum() / ((guess == c) | (truth == c)).sum() for c in range(3)]
    mean, wrong, correct = layers.mean_iou(
        fluid.data("x", [6], "int32"), fluid.data("y", [6], "int32"), num_classes=3
    )
    found = run([mean, wrong, correct], x=guess.astype("int32"), y=truth.astype("int32"))
    np.testing.assert_allclose(found[0].ravel(), [np.mean(ious)], rtol=1e-6)  # float32
    assert found[2].tolist() == [1, 1, 2]


def test_fc_sums_the_products_of_several_inputs() -> None:
    (x, a), (y, b) = random_input("x", 3, 4), random_input("y", 3, 2, 5)
    out = layers.fc([x, y], 6, act="tanh", bias_attr=fluid.initializer.Constant(0.5))
    weights = [p.name for p in out.block.all_parameters()][:2]
    found, w, v = run([out, *weights], x=a, y=b)
    np.testing.assert_allclose(found, np.tanh(a @ w + b.reshape(3, 10) @ v + 0.5), atol=1e-6)


CASES: dict[str, tuple[list[int], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "tril": ([3, 4], lambda x: layers.tril(x, 1), lambda a: np.tril(a, 1)),
    "triu": ([3, 4], lambda x: layers.triu(x, -1), lambda a: np.triu(a, -1)),
    "diag_embed": ([2, 3], layers.diag_embed, lambda a: np.stack([np.diag(row) for row in a])),
    "trace": ([3, 4], lambda x: layers.trace(x, 1), lambda a: np.trace(a, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_matrix_layers_match_numpy(name: str) -> None:
    shape, build, formula = CASES[name]
    a = RNG.normal(size=shape).astype("float32")
    found = run(build(fluid.data("x", shape)), x=a)
    np.testing.assert_allclose(found.reshape(np.shape(formula(a))), formula(a), rtol=1e-6)  # float32


@pytest.mark.parametrize(
    ("layer", "formula"), [("kron", np.kron), ("cross", np.cross)], ids=["kron", "cross"]
)
def test_products_of_two_matrices_match_numpy(layer: str, formula: Callable[[Any, Any], Any]) -> None:
    a, b = (RNG.normal(size=(2, 3)).astype("float32") for _ in range(2))
    out = getattr(layers, layer)(fluid.data("x", [2, 3]), fluid.data("y", [2, 3]))
    np.testing.assert_allclose(run(out, x=a, y=b), formula(a, b), rtol=1e-5)  # float32


@pytest.mark.parametrize("p", [0, 1, 2, 3.5, float("inf")])
def test_a_distance_is_a_norm_of_the_difference(p: float) -> None:
    a, b = (RNG.normal(size=(2, 3)).astype("float32") for _ in range(2))
    found = run(layers.dist(fluid.data("x", [2, 3]), fluid.data("y", [2, 3]), p), x=a, y=b)
    np.testing.assert_allclose(found, [np.linalg.norm((a - b).ravel(), p)], rtol=1e-5)  # float32


def test_mse_loss_is_the_mean_of_squares() -> None:
    (x, a), (y, b) = random_input("x", 3, 5), random_input("y", 3, 5)
    np.testing.assert_allclose(run(layers.mse_loss(x, y), x=a, y=b), [np.mean((a - b) ** 2)], rtol=1e-6)


def test_npair_loss_follows_its_formula() -> None:
    a, p = (RNG.normal(size=(4, 3)).astype("float32") for _ in range(2))
    ids = np.array([1, 2, 1, 3], "float32")
    anchor, positive = (fluid.data(name, [4, 3]) for name in "ap")
    loss = layers.npair_loss(anchor, positive, fluid.data("l", [4]), l2_reg=0.01)
    same = (ids[:, None] == ids).astype("float64")
    same /= same.sum(1, keepdims=True)
    cost = -(same * np.log(softmax(a @ p.T))).sum(1, keepdims=True)
    penalty = 0.25 * 0.01 * ((a * a).sum(1).mean() + (p * p).sum(1).mean())
    # The sum over rows, not columns, is Fluid's.
    wanted = penalty + (same * cost).sum(0).mean()
    # As in Fluid the labels are reshaped in place, and must be fed as columns.
    np.testing.assert_allclose(run(loss, a=a, p=p, l=ids[:, None]), [wanted], rtol=1e-5)


def test_dice_loss_measures_the_overlap() -> None:
    x, a = random_input("x", 4, 3, low=0.0)
    label = fluid.data("label", [None, 1], "int64")
    ids = np.array([[0], [2], [1], [2]])
    truth = np.eye(3)[ids[:, 0]]
    wanted = np.mean(1 - 2 * (a * truth).sum(1) / (a.sum(1) + 1 + 1e-5))
    np.testing.assert_allclose(run(layers.dice_loss(x, label), x=a, label=ids), [wanted], rtol=1e-6)
