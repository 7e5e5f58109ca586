"""Embeddings on servers: rows fetched when they are looked up, gradients of rows, tables sharded by id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import EnforceNotMet
from tests.distributed.jobs import Feed, Job, Network, momentum, sgd, train_locally
from tests.distributed.training.test_sync import recorded


def embedding_bag(*, is_distributed: bool, rows: int = 3001, padding: int | None = None) -> Callable[[], Any]:
    """The sum of the embeddings of a sequence, beside four dense inputs, into one number."""

    def build() -> Any:
        ids = fluid.data(name="ids", shape=[None, 1], dtype="int64", lod_level=1)
        x = fluid.data(name="x", shape=[None, 4], dtype="float32")
        y = fluid.data(name="y", shape=[None, 1], dtype="float32")
        constant = fluid.initializer.Constant
        found = fluid.layers.embedding(
            ids,
            size=[rows, 8],
            is_sparse=True,
            is_distributed=is_distributed,
            padding_idx=padding,
            param_attr=fluid.ParamAttr(name="emb", initializer=constant(0.05)),
        )
        both = fluid.layers.concat([fluid.layers.sequence_pool(found, "sum"), x], axis=1)
        out = fluid.layers.fc(both, size=1, param_attr=fluid.ParamAttr(initializer=constant(0.1)))
        return fluid.layers.mean(fluid.layers.square_error_cost(input=out, label=y))

    return build


def bag_feeds(step: int, trainer: int, *, ids_below: int = 3001) -> Feed:
    """Six sequences of one to four ids, some of them repeated."""
    rng = np.random.RandomState(10 * step + trainer)
    lengths = [int(n) for n in rng.randint(1, 5, 6)]
    ids = rng.choice(np.arange(0, ids_below, max(ids_below // 40, 1)), (sum(lengths), 1)).astype("int64")
    return {
        "ids": fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace()),
        "x": rng.standard_normal((6, 4)).astype("float32"),
        "y": rng.standard_normal((6, 1)).astype("float32"),
    }


@pytest.mark.parametrize(
    ("optimizer", "is_distributed"),
    [(sgd, False), (momentum, False), (sgd, True)],
    ids=["sgd-blocks", "momentum-blocks", "sgd-by-id"],
)
@pytest.mark.parametrize("servers", [1, 2, 3])
def test_one_trainer_has_the_same_bits_as_training_without_servers(
    optimizer: Any, is_distributed: bool, servers: int
) -> None:
    local = Network(embedding_bag(is_distributed=False), optimizer)
    expected, _ = train_locally(local, lambda step: bag_feeds(step, 0), 6)
    network = Network(embedding_bag(is_distributed=is_distributed), optimizer)
    with Job(network, servers=servers, trainers=1).start() as job:
        (losses,) = job.train(bag_feeds, 6)
    assert losses == expected


def test_the_row_of_padding_is_zero() -> None:
    local = Network(embedding_bag(is_distributed=False, padding=0), sgd)
    expected, _ = train_locally(local, lambda step: bag_feeds(step, 0), 4)
    with Job(local, trainers=1).start() as job:
        (losses,) = job.train(bag_feeds, 4)
    assert losses == expected


def table() -> Any:
    """The network of the recorded run."""
    ids = fluid.data(name="ids", shape=[None, 1], dtype="int64", lod_level=1)
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    initializer = fluid.initializer.Constant(0.05)
    found = fluid.layers.embedding(
        ids,
        size=[300, 8],
        is_sparse=True,
        is_distributed=True,
        param_attr=fluid.ParamAttr(name="table", initializer=initializer),
    )
    out = fluid.layers.fc(input=fluid.layers.sequence_pool(found, "sum"), size=1)
    return fluid.layers.mean(fluid.layers.square_error_cost(input=out, label=y))


def table_feeds(step: int, trainer: int) -> Feed:
    rng = np.random.RandomState(1000 * step + trainer)
    ids = rng.randint(0, 300, (8, 1)).astype("int64")
    lod = fluid.create_lod_tensor(ids, [[2, 2, 3, 1]], fluid.CPUPlace())
    return {"ids": lod, "y": rng.uniform(-1, 1, (4, 1)).astype("float32")}


def test_a_table_sharded_by_id_has_the_losses_and_rows_of_real_fluid() -> None:
    real = recorded("table_sgd_sync_2x2")
    with Job(Network(table, lambda: fluid.optimizer.SGD(0.1))).start() as job:
        losses = job.train(table_feeds, 10)
        shards = [job.scopes[endpoint].find_var("table").value for endpoint in job.endpoints]
    # Sums in float32 go in another order than in Eigen.
    np.testing.assert_allclose(losses, real["losses_uninterrupted"], rtol=5e-6)
    for server, (shard, saved) in enumerate(zip(shards, real["pserver_values_after_load"], strict=True)):
        assert shard.height() == saved["table"]["height"]
        assert list(shard.array.shape) == saved["table"]["shape"]
        assert set(saved["table"]["rows"]) <= set(shard.rows())  # it was saved after half of the steps
        assert all(row % 2 == server for row in shard.rows())


def test_a_trainer_refuses_ids_outside_of_a_table() -> None:
    def feeds(step: int, trainer: int) -> Feed:
        return bag_feeds(step, trainer, ids_below=4000)

    job = Job(Network(embedding_bag(is_distributed=False), sgd), trainers=1)
    with job.start(), pytest.raises(EnforceNotMet, match=r"Ids hold 3\d\d\d; 'emb' has 3001 rows"):
        job.train(feeds, 6)


def test_a_shard_that_is_full_takes_no_more_ids() -> None:
    def feeds(step: int, trainer: int) -> Feed:
        return bag_feeds(step, trainer, ids_below=4000)

    network = Network(embedding_bag(is_distributed=True, rows=4), sgd)
    job = Job(network, servers=1, trainers=1)
    with job.start(), pytest.raises(EnforceNotMet, match="W has room for 4 rows and holds 0"):
        job.train(feeds, 2)
