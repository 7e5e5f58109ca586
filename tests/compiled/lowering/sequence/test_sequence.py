"""Sequences in compiled programs: fed ones of one row each, and the LoD that numpy's kernels find."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from paddlelike.errors import OperatorError
from tests.compiled.harness.nets import Net, build, train

pytestmark = pytest.mark.slow

L = fluid.layers


def rows(values: Any, lengths: list[int]) -> Any:
    return fluid.create_lod_tensor(np.asarray(values, "int64").reshape(-1, 1), [lengths], fluid.CPUPlace())


def clicks() -> list[Any]:
    """Return the loss of clicks, whose ids and labels come as sequences of one row, and their AUC so far."""
    ids, label = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("ids", "label"))
    dense = L.concat([L.reshape(fluid.embedding(ids, [20, 4]), [-1, 4]), fluid.data("dense", [None, 3])], 1)
    click = L.fc(dense, 1, act="sigmoid")
    area, _, _ = L.auc(L.concat([1 - click, click], 1), label, num_thresholds=15, slide_steps=0)
    return [L.mean(L.log_loss(click, L.cast(label, "float32"))), area]


def feed_clicks(count: int, scale: float = 1.0) -> dict[str, Any]:
    rng = np.random.default_rng(count)
    ids, label = rng.integers(0, 20, count), rng.integers(0, 2, count)
    return {
        "ids": rows(ids, [1] * count),
        "label": rows(label, [1] * count),
        "dense": scale * rng.standard_normal((count, 3)).astype("float32"),
    }


def engine_of(net: Net) -> Any:
    return next(v for key, v in net.main.plans.items() if key[0] == "engine")


def test_sequences_of_one_row_combine_with_plain_arrays() -> None:
    feeds = [feed_clicks(5)] * 2
    net, other = (build(clicks, lambda: fluid.optimizer.SGD(0.1)) for _ in range(2))
    assert np.allclose(train(net, feeds), train(other, feeds, "numpy"), atol=1e-6)
    assert (len(engine_of(net).pieces), engine_of(net).refused) == (1, {})


def test_the_gradient_of_a_loss_of_sequences_may_be_in_another_piece() -> None:
    def make() -> Any:
        label = fluid.data("label", [None, 1], "int64", lod_level=1)
        share = L.fc(fluid.data("dense", [None, 3]), 2, act="softmax")
        return L.mean(L.Print(L.cross_entropy(share, label), message="cost"))

    feeds = [{name: feed_clicks(5)[name] for name in ("label", "dense")}] * 2
    net, other = (build(make, lambda: fluid.optimizer.SGD(0.1)) for _ in range(2))
    assert np.allclose(train(net, feeds), train(other, feeds, "numpy"), atol=1e-6)
    assert [len(piece) for piece in engine_of(net).pieces] != [len(net.main.global_block().ops)]


def test_sequence_gradients_computed_by_numpy_are_summed_without_the_padding() -> None:
    flow = fluid.layers.control_flow

    def make() -> Any:
        label = fluid.data("label", [None, 1], "int64", lod_level=1)
        order = flow.lod_rank_table(label)  # numpy reads it in the next piece
        hidden = L.fc(L.Print(L.cast(label, "float32"), message="rows"), 2, act="tanh")
        once, twice = (L.sequence_pool(flow.reorder_lod_tensor_by_rank(hidden, order), "sum") for _ in "12")
        return L.mean(once * twice)

    feeds = [{"label": rows([1, 2, 3, 4, 5], [2, 1, 2])}] * 2
    net, other = (build(make, lambda: fluid.optimizer.SGD(0.1)) for _ in range(2))
    assert np.allclose(train(net, feeds), train(other, feeds, "numpy"), atol=1e-6)


def test_a_failing_check_keeps_the_values_of_a_table_that_changes_its_shape() -> None:
    net = build(clicks)

    def get_tables() -> dict[str, Any]:
        names = [v.name for v in net.main.list_vars() if v.name.startswith("_generated_var")]
        arrays = {name: net.scope.find_var(name).get_tensor().array for name in names}
        return {name: (array.shape, int(array.sum())) for name, array in arrays.items()}

    before = get_tables()
    with pytest.raises(OperatorError, match="outside of 0 to 1"):
        train(net, [feed_clicks(5, scale=np.nan)])
    assert len(before) == 4
    assert get_tables() == before


def test_the_sum_of_each_row_keeps_the_lod_for_numpy_operators() -> None:
    def make() -> list[Any]:
        ids, more = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("ids", "more"))
        joined = L.sequence_concat([L.one_hot(ids, 5), L.one_hot(more, 5)])
        return list(L.sequence_pad(L.reduce_sum(joined * 3.0, dim=1, keep_dim=True), L.zeros([1], "float32")))

    feed = {"ids": rows([1, 2, 3], [2, 1]), "more": rows([4, 0, 1], [1, 2])}
    padded, lengths = train(build(make), [feed])[0]
    assert (padded == 3.0).all()
    assert (padded.shape, lengths.tolist()) == ((2, 3, 1), [3, 3])
