"""Geo-SGD beside a simulation of Fluid's GeoSgdCommunicator, dense and sparse, with any number of servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import UnsupportedError
from paddlelike.formats.paddle import lod_tensor
from tests.distributed.jobs import SEED, Feed, Job, Network
from tests.distributed.training.test_growing_tables import clicks
from tests.helpers.fresh import fresh_programs
from tests.helpers.saved_files import read_variables

_EVERY = 3
_CONFIG = {"sync_mode": False, "geo_sgd_mode": True, "geo_sgd_need_push_nums": _EVERY}


def build() -> Any:
    """Two dense layers, of which the first is cut, and a table that two look-ups share."""
    ids = [fluid.data(name, [None, 1], "int64") for name in ("a", "b")]
    x, y = fluid.data("x", [None, 130]), fluid.data("y", [None, 1])
    rows = [fluid.embedding(one, [3000, 8], is_sparse=True, param_attr="emb") for one in ids]
    flat = [fluid.layers.reshape(one, [-1, 8]) for one in rows]
    hidden = fluid.layers.concat([fluid.layers.fc(x, 128, act="tanh"), *flat], 1)
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))


def feeds(step: int, trainer: int) -> Feed:
    rng = np.random.RandomState(100 * step + trainer)
    x = rng.uniform(-1, 1, (4, 130)).astype("float32")
    ids = {name: rng.randint(0, 3000, (4, 1)) // 100 * 100 for name in ("a", "b")}
    return {"x": x, "y": x[:, :5].sum(1, keepdims=True), **ids}


NETWORK = Network(build, lambda: fluid.optimizer.Momentum(0.05, 0.9), _CONFIG, sync=False)


def simulate(trainers: int, steps: int) -> tuple[dict[str, Any], Any]:
    """The parameters at first; the losses, the parameters of every trainer and those of servers at last.

    Trainers come in turn.

    A row of the table comes to a trainer if anybody sent it since the trainer's last exchange.
    """
    scopes = [fluid.Scope() for _ in range(trainers)]
    with fresh_programs(SEED) as (main, startup):
        loss = NETWORK.build()
        NETWORK.optimizer().minimize(loss)
        exe = fluid.Executor()
        for scope in scopes:
            exe.run(startup, scope=scope)
        names = [one.name for one in main.all_parameters()]
        get = lambda scope, name: scope.find_var(name).get_tensor().held_array
        servers = {name: get(scopes[0], name).copy() for name in names}
        begun = {name: value.copy() for name, value in servers.items()}
        for scope in scopes:
            for name in names:
                get(scope, name)[...] = servers[name]
        old = [{name: value.copy() for name, value in servers.items()} for _ in scopes]
        touched: list[set[int]] = [set() for _ in scopes]
        sent: list[set[int]] = [set() for _ in scopes]
        losses: list[list[float]] = [[] for _ in scopes]
        for step in range(steps):
            for k, scope in enumerate(scopes):
                feed = feeds(step, k)
                losses[k] += [exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0].item()]
                touched[k] |= {int(i) for name in ("a", "b") for i in feed[name].ravel()}
                if step % _EVERY != _EVERY - 1:
                    continue
                for name in names:
                    at = sorted(touched[k]) if name == "emb" else slice(None)
                    delta = (get(scope, name)[at] - old[k][name][at]) * np.float32(1 / trainers)
                    old[k][name][at] += delta
                    servers[name][at] += delta
                for other in sent:
                    other |= touched[k]
                touched[k].clear()
                for name in names:
                    at = sorted(sent[k]) if name == "emb" else slice(None)
                    get(scope, name)[at] += servers[name][at] - old[k][name][at]
                    old[k][name][at] = servers[name][at]
                sent[k].clear()
        values = [{name: np.array(get(scope, name)) for name in names} for scope in scopes]
        return begun, (losses, values, servers)


def train(job: Job, steps: int) -> tuple[list[list[float]], list[dict[str, Any]], dict[str, Any]]:
    """The same by real servers, whose trainers this thread lets come in turn."""
    programs = [job.trainer(number) for number in range(job.trainers)]
    scopes, exe = [fluid.Scope() for _ in programs], fluid.Executor()
    losses: list[list[float]] = [[] for _ in programs]
    communicators = []
    for one, scope in zip(programs, scopes, strict=True):
        with fluid.scope_guard(scope):
            communicators.append(
                fluid.communicator.Communicator(one.main, 3, {"push_nums": _EVERY, "trainers": job.trainers})
            )
            communicators[-1].start()
            exe.run(one.startup)
    for step in range(steps):
        for k, (one, scope) in enumerate(zip(programs, scopes, strict=True)):
            losses[k] += [
                exe.run(one.main, feed=feeds(step, k), fetch_list=[one.loss.name], scope=scope)[0].item()
            ]
    names = ["emb", "fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"]
    values = [{name: np.array(scope.find_var(name).get_tensor()) for name in names} for scope in scopes]
    servers = {}
    for name in names:
        slices = programs[0].main._parameters_on_pservers.of(name)
        servers[name] = np.concatenate([job.values(one.endpoint)[one.name] for one in slices])
    exe.close()
    return losses, values, servers


@pytest.mark.parametrize(("servers", "trainers"), [(1, 1), (2, 2), (3, 2)])
def test_trainers_and_servers_have_the_bits_of_a_simulation(servers: int, trainers: int) -> None:
    """Proves G1, G2, G3."""
    begun, expected = simulate(trainers, 8)
    with Job(NETWORK, servers=servers, trainers=trainers) as job:
        job.start_with(begun)
        losses, values, kept = train(job, 8)
    assert losses == expected[0]
    for mine, theirs in zip([*values, kept], [*expected[1], expected[2]], strict=True):
        for name in theirs:
            np.testing.assert_array_equal(mine[name], theirs[name], name)


#: The losses of 30 steps with one server and one trainer, which exchange every 5: recorded from Fluid 1.8.5.
_RECORDED = """
    0.550855 0.835034 0.73756 0.345083 1.254879 0.228567 0.643076 0.424555 0.889045 0.467919 0.40043 0.329297
    0.131584 0.133483 0.318265 0.571301 1.300849 0.214098 0.16262 0.309513 0.203186 0.076737 0.491731 0.136602
    0.21507 0.157887 0.062216 0.12497 0.081908 0.092072
"""


def small() -> Any:
    """The network of the recorded run."""
    constant = fluid.initializer.Constant
    attr = lambda name, value: fluid.ParamAttr(name=name, initializer=constant(value))
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    rows = fluid.embedding(
        fluid.data("ids", [None, 1], "int64"), [50, 4], is_sparse=True, param_attr=attr("emb", 0.1)
    )
    both = fluid.layers.concat([x, fluid.layers.reshape(rows, [-1, 4])], 1)
    out = fluid.layers.fc(both, 1, param_attr=attr("w", 0.2), bias_attr=attr("b", 0.0))
    return fluid.layers.mean(fluid.layers.square_error_cost(out, y))


def test_losses_are_those_of_a_run_of_fluid() -> None:
    rng, given = np.random.RandomState(0), []
    for _ in range(30):
        x, ids = rng.uniform(-1, 1, (4, 4)).astype("float32"), rng.randint(0, 50, (4, 1))
        given.append({"x": x, "y": x.sum(1, keepdims=True) + 0.1 * (ids % 3).astype("float32"), "ids": ids})
    config = {**_CONFIG, "geo_sgd_need_push_nums": 5}
    network = Network(small, lambda: fluid.optimizer.SGD(0.05), config, sync=False)
    with Job(network, servers=1, trainers=1).start() as job:
        one, scope, exe = job.trainer(0), fluid.Scope(), fluid.Executor()
        with fluid.scope_guard(scope):
            communicator = fluid.communicator.Communicator(one.main, 3, {"push_nums": 5, "trainers": 1})
            communicator.start()
            exe.run(one.startup)
            losses = [exe.run(one.main, feed=feed, fetch_list=[one.loss.name])[0].item() for feed in given]
            communicator.stop()
        kept = job.values(job.endpoints[0])["emb"]
        np.testing.assert_allclose(kept, np.array(scope.find_var("emb").get_tensor()), rtol=1e-6)
        exe.close()
    np.testing.assert_allclose(losses, [float(text) for text in _RECORDED.split()], atol=2e-6)


def test_a_save_has_the_steps_since_the_last_exchange(tmp_path: Path) -> None:
    """Proves G4."""
    with Job(NETWORK, servers=2, trainers=1).start() as job:
        one, exe = job.trainer(0), fluid.Executor()
        with fluid.scope_guard(fluid.Scope()):
            communicator = fluid.communicator.Communicator(one.main, 3, {"push_nums": 100, "trainers": 1})
            communicator.start()
            exe.run(one.startup)
            get = lambda name: np.array(fluid.global_scope().find_var(name).get_tensor())
            names = ["emb", "fc_0.w_0", "fc_1.b_0"]
            begun = {name: get(name) for name in names}
            for step in range(2):
                exe.run(one.main, feed=feeds(step, 0))
            trained = {name: get(name) for name in names}
            fluid.io.save_persistables(exe, str(tmp_path / "a"), one.main)
            fluid.io.save_persistables(exe, str(tmp_path / "b"), one.main)
            communicator.stop()
        exe.close()
    saved = read_variables(tmp_path / "a")
    assert saved == read_variables(tmp_path / "b")  # no step counts twice
    for name in names:
        found = lod_tensor.read(saved[name]).held_array
        assert not np.array_equal(found, begun[name])
        np.testing.assert_allclose(found, trained[name], atol=1e-7)  # the difference, rounded, was added


def test_programs_are_those_of_fluid() -> None:
    with Job(NETWORK, servers=2).start() as job:
        trainer, server = job.trainer(0), job.server(job.endpoints[0])
    ops = trainer.main.global_block().ops
    assert [op.type for op in ops][-6:] == [*["momentum"] * 5, "send"]
    assert ops[-1].input("X") == ["a", "b"]
    assert ops[-1].attrs["send_varnames"] == ["emb", "emb"]
    (listen,) = server.main.global_block().ops
    assert (listen.attrs["distributed_mode"], listen.attrs["Fanin"]) == (3, 2)
    assert {op.type for block in server.main.blocks[1:] for op in block.ops} == {"sum"}
    assert ".delta:" in " ".join(listen.attrs["grad_to_block_id"])
    assert any(one.startswith("emb") for one in listen.attrs["sparse_grad_to_param"])
    with pytest.raises(UnsupportedError, match="geo-SGD with a growing table"):
        Job(Network(clicks(), NETWORK.optimizer, _CONFIG, sync=False)).trainer(0)
