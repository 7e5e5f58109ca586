"""Transpiled programs train as the network does in one process: the same bits with one trainer.

Here stand also the jobs that Fluid 1.8.5 cannot transpile, or transpiles to what cannot run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.framework import Program
from tests.distributed.transpiler.loopback import Servers, Trainer

STEPS = 4
ENDPOINTS = ["127.0.0.1:6174", "127.0.0.1:6175", "127.0.0.1:6176"]


def mlp(param_attr: Any = None) -> Any:
    x, y = fluid.data("x", [None, 130]), fluid.data("y", [None, 1])
    hidden = fluid.layers.fc(x, 190, act="tanh", param_attr=param_attr)
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))


def batches(rng: np.random.Generator, rows: int = 8) -> dict[str, Any]:
    x = rng.uniform(-1, 1, (rows, 130)).astype("float32")
    return {"x": x, "y": x[:, :5].sum(1, keepdims=True)}


def word2vec(*, padding: int | None = None, new: bool = False, dependent: bool = False) -> Any:
    """Two words and their sum are looked up in one sparse table."""
    label = fluid.data("label", [None, 1], "int64")
    shape = [None] if new else [None, 1]
    words = [fluid.data(name, shape, "int64") for name in ("u", "v")]
    size = [1500, 12]
    embedding = fluid.embedding if new else fluid.layers.embedding
    found = [embedding(w, size, is_sparse=True, padding_idx=padding, param_attr="table") for w in words]
    if dependent:  # what is looked up depends on another lookup
        best = fluid.layers.reshape(fluid.layers.argmax(found[0], axis=1), [-1, 1])
        best.stop_gradient = True
        found.append(embedding(best, size, is_sparse=True, param_attr="table"))
    hidden = fluid.layers.fc(fluid.layers.concat(found, 1), 16, act="tanh")
    scores = fluid.layers.fc(hidden, 30, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(scores, label))


def words(rng: np.random.Generator, rows: int = 16, *, new: bool = False) -> dict[str, Any]:
    shape = (rows,) if new else (rows, 1)
    feed = {name: rng.integers(0, 1500, shape) for name in ("u", "v")}
    return {**feed, "label": rng.integers(0, 30, (rows, 1))}


def nce() -> Any:
    label = fluid.data("label", [None, 1], "int64")
    word = fluid.data("u", [None, 1], "int64")
    fluid.data("v", [None, 1], "int64")
    hidden = fluid.layers.fc(fluid.layers.embedding(word, [1500, 12], is_sparse=True), 16)
    cost = fluid.layers.nce(hidden, label, 800, num_neg_samples=5, seed=4, is_sparse=True)
    return fluid.layers.mean(cost)


def with_numpy_values() -> Any:
    values = np.linspace(-0.1, 0.1, 130 * 190, dtype="float32").reshape(130, 190)
    return mlp(fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(values)))


def with_weight_norm() -> Any:
    return mlp(fluid.WeightNormParamAttr(dim=None))


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9, use_nesterov=True),
    "adam": lambda: fluid.optimizer.Adam(0.01),
    "adamax": lambda: fluid.optimizer.Adamax(0.01),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1),
    "decayed_adagrad": lambda: fluid.optimizer.DecayedAdagrad(0.1),
    "adadelta": lambda: fluid.optimizer.Adadelta(0.1),
    "rmsprop": lambda: fluid.optimizer.RMSProp(0.01, momentum=0.9),
    "rmsprop_centered": lambda: fluid.optimizer.RMSProp(0.01, centered=True),
    "ftrl": lambda: fluid.optimizer.Ftrl(0.1),
    "lamb": lambda: fluid.optimizer.Lamb(0.01),
    "decayed_rate": lambda: fluid.optimizer.SGD(fluid.layers.exponential_decay(0.1, 2, 0.5)),
    "piecewise_rate": lambda: fluid.optimizer.SGD(
        fluid.layers.piecewise_decay(boundaries=[1, 3], values=[0.1, 0.05, 0.01])
    ),
    "warm_rate": lambda: fluid.optimizer.Adam(
        fluid.layers.linear_lr_warmup(fluid.layers.noam_decay(64, 10), 2, 0.0, 0.1)
    ),
    "l2": lambda: fluid.optimizer.Momentum(0.1, 0.9, regularization=fluid.regularizer.L2Decay(0.1)),
    "l1": lambda: fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L1Decay(0.01)),
    "global_norm": lambda: fluid.optimizer.Adam(0.01, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.1)),
    "clip_norm": lambda: fluid.optimizer.SGD(0.1, grad_clip=fluid.clip.GradientClipByNorm(0.1)),
    "clip_value": lambda: fluid.optimizer.SGD(
        0.1,
        grad_clip=fluid.clip.GradientClipByValue(0.01),
        regularization=fluid.regularizer.L2Decay(0.1),
    ),
}


def transpile(
    network: Callable[[], Any],
    optimizer: Callable[[], Any],
    trainers: int,
    config: Any = None,
    *,
    sync: bool = True,
) -> tuple[Servers, list[Trainer], str]:
    """A job, as its processes would build it: each from the network afresh."""

    def fresh(trainer_id: int = 0) -> tuple[Any, Any, Any, Any]:
        main, startup = Program(), Program()
        main.random_seed = startup.random_seed = 3
        with fluid.unique_name.guard(), fluid.program_guard(main, startup):
            loss = network()
            optimizer().minimize(loss)
            transpiler = fluid.DistributeTranspiler(config)
            transpiler.transpile(trainer_id, pservers=",".join(ENDPOINTS), trainers=trainers, sync_mode=sync)
        return transpiler, main, startup, loss

    servers = Servers({e: fresh()[0].get_pserver_programs(e) for e in ENDPOINTS})
    workers = []
    for number in range(trainers):
        transpiler, _, startup, loss = fresh(number)
        workers.append(Trainer(transpiler.get_trainer_program(wait_port=False), startup))
        workers[-1].start(servers)
    return servers, workers, loss.name


def local(network: Callable[[], Any], optimizer: Callable[[], Any], like: Trainer) -> Callable[..., float]:
    """A step of the network in one process, beginning with a trainer's parameters."""
    main, startup = Program(), Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        loss = network()
        optimizer().minimize(loss)
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    for parameter in main.all_parameters():
        found = like.scope.find_var(parameter.name)
        scope.var(parameter.name).get_tensor().set(np.array(found.get_tensor()))

    def step(feed: dict[str, Any]) -> float:
        return float(exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0][0])

    return step


def check_one_trainer(
    network: Callable[[], Any],
    optimizer: Callable[[], Any],
    config: Any = None,
    *,
    sync: bool = True,
    feeds: Callable[..., dict[str, Any]] = batches,
) -> None:
    servers, (trainer,), loss = transpile(network, optimizer, 1, config, sync=sync)
    step = local(network, optimizer, trainer)
    rng = np.random.default_rng(5)
    losses = []
    for _ in range(STEPS):
        feed = feeds(rng)
        got = trainer.step(servers, feed, [loss])[0][0]
        servers.apply()
        trainer.receive(servers)
        losses.append((got, step(feed)))
    assert all(mine == theirs for mine, theirs in losses), losses
    assert losses[-1][0] != losses[0][0]


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=list(OPTIMIZERS))
def test_one_trainer_trains_to_the_same_bits(optimizer: Callable[[], Any]) -> None:
    check_one_trainer(mlp, optimizer)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "l2", "global_norm"])
def test_one_asynchronous_trainer_trains_to_the_same_bits(optimizer: str) -> None:
    check_one_trainer(mlp, OPTIMIZERS[optimizer], sync=False)


@pytest.mark.parametrize("network", [with_numpy_values, with_weight_norm])
def test_servers_start_from_initial_values_of_any_kind(network: Callable[[], Any]) -> None:
    check_one_trainer(network, OPTIMIZERS["momentum"])


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adagrad", "global_norm", "l2", "rmsprop"])
def test_tables_that_are_looked_up_by_rows_train_to_the_same_bits(optimizer: str) -> None:
    check_one_trainer(word2vec, OPTIMIZERS[optimizer], feeds=words)


def test_tables_with_padding_train_to_the_same_bits_asynchronously() -> None:
    check_one_trainer(lambda: word2vec(padding=3), OPTIMIZERS["sgd"], sync=False, feeds=words)


def test_ids_of_one_dim_train_to_the_same_bits() -> None:
    """Fluid's own lookup refuses what ``fluid.embedding`` is for."""
    network, feeds = lambda: word2vec(new=True), lambda rng: words(rng, new=True)
    check_one_trainer(network, OPTIMIZERS["sgd"], feeds=feeds)


def test_lookups_that_depend_on_other_lookups_train_to_the_same_bits() -> None:
    check_one_trainer(lambda: word2vec(dependent=True), OPTIMIZERS["sgd"], feeds=words)


def tied() -> Any:
    """The table of the words that are looked up is also what the scores are computed with."""
    label, word = fluid.data("label", [None, 1], "int64"), fluid.data("u", [None, 1], "int64")
    fluid.data("v", [None, 1], "int64")
    found = fluid.layers.embedding(word, [1500, 12], is_sparse=True, param_attr="table")
    table = fluid.default_main_program().global_block().var("table")
    with_table = fluid.layers.matmul(found, table, transpose_y=True)
    with_table.stop_gradient = True  # so that the table's gradient is still sparse
    scores = fluid.layers.fc([found, with_table], 30, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(scores, label))


def test_tables_that_other_operators_read_train_to_the_same_bits() -> None:
    check_one_trainer(tied, OPTIMIZERS["sgd"], feeds=words)


def test_a_sparse_nce_trains_to_the_same_bits() -> None:
    """Fluid's own fails while it transpiles."""
    check_one_trainer(nce, OPTIMIZERS["sgd"], feeds=words)


def test_slices_are_initialized_with_their_rows_of_a_given_array() -> None:
    _, (trainer,), _ = transpile(with_numpy_values, OPTIMIZERS["sgd"], 1)
    values = np.array(trainer.scope.find_var("fc_0.w_0").get_tensor())
    assert (values.ravel() == np.linspace(-0.1, 0.1, 130 * 190, dtype="float32")).all()


def test_variables_distributed_by_name_train_to_the_same_bits() -> None:
    config = fluid.DistributeTranspilerConfig()
    config.split_method = fluid.transpiler.HashName
    check_one_trainer(mlp, OPTIMIZERS["adam"], config)


def test_variables_that_are_not_cut_train_to_the_same_bits() -> None:
    config = fluid.DistributeTranspilerConfig()
    config.slice_var_up = False
    check_one_trainer(mlp, OPTIMIZERS["momentum"], config)


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "l2", "decayed_rate"])
def test_two_trainers_train_as_one_with_both_batches(optimizer: str) -> None:
    servers, trainers, loss = transpile(mlp, OPTIMIZERS[optimizer], 2)
    step = local(mlp, OPTIMIZERS[optimizer], trainers[0])
    rng = np.random.default_rng(5)
    for _ in range(STEPS):
        feeds = [batches(rng) for _ in trainers]
        got = [t.step(servers, feed, [loss])[0][0] for t, feed in zip(trainers, feeds, strict=True)]
        servers.apply()
        for trainer in trainers:
            trainer.receive(servers)
        both = {name: np.concatenate([feed[name] for feed in feeds]) for name in feeds[0]}
        np.testing.assert_allclose(np.mean(got), step(both), rtol=1e-4)  # sums in another order
