"""Geo-SGD beside a simulation of Fluid's GeoSgdCommunicator, dense and sparse, with any number of servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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


def train(
    job: Job,
    steps: int,
    feeds: Callable[[int, int], Feed] = feeds,
    push_nums: int = _EVERY,
    names: Sequence[str] = ("emb", "fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"),
) -> tuple[list[list[float]], list[dict[str, Any]], dict[str, Any]]:
    """The same by real servers, whose trainers this thread lets come in turn."""
    programs = [job.trainer(number) for number in range(job.trainers)]
    scopes, exe = [fluid.Scope() for _ in programs], fluid.Executor()
    losses: list[list[float]] = [[] for _ in programs]
    communicators = []
    for one, scope in zip(programs, scopes, strict=True):
        with fluid.scope_guard(scope):
            how = {"push_nums": push_nums, "trainers": job.trainers}
            communicators.append(fluid.communicator.Communicator(one.main, 3, how))
            communicators[-1].start()
            exe.run(one.startup)
    for step in range(steps):
        for k, (one, scope) in enumerate(zip(programs, scopes, strict=True)):
            losses[k] += [
                exe.run(one.main, feed=feeds(step, k), fetch_list=[one.loss.name], scope=scope)[0].item()
            ]
    values = [{name: np.array(scope.find_var(name).get_tensor()) for name in names} for scope in scopes]
    servers = {}
    for name in names:
        slices = programs[0].main._parameters_on_pservers.of(name)
        servers[name] = np.concatenate([job.values(one.endpoint)[one.name] for one in slices])
    exe.close()
    return losses, values, servers


@pytest.mark.parametrize(("servers", "trainers"), [(1, 1), (2, 2), (3, 2)])
def test_trainers_and_servers_have_the_same_bits_as_a_simulation(servers: int, trainers: int) -> None:
    """Proves G1, G2, G3."""
    begun, expected = simulate(trainers, 8)
    with Job(NETWORK, servers=servers, trainers=trainers) as job:
        job.start_with(begun)
        losses, values, kept = train(job, 8)
    assert losses == expected[0]
    for mine, theirs in zip([*values, kept], [*expected[1], expected[2]], strict=True):
        for name in theirs:
            np.testing.assert_array_equal(mine[name], theirs[name], name)


class Recorded(NamedTuple):
    """A job as Fluid 1.8.5 ran it, and the losses of its trainers, ";" between two."""

    optimizer: Callable[[], Any]
    rows: int
    servers: int
    push_nums: int
    losses: str


#: Each trainer took as many steps as lie between two exchanges, then the others theirs, with a pause of 2 s
#: in which Fluid's threads exchanged. Fluid reads int64 ids as int32: it sends the rows of the first half of
#: a batch, and row 0. So the second half is the first one again here, and an id is 0.
_RECORDED = {
    "sgd": Recorded(lambda: fluid.optimizer.SGD(0.1), 50, 1, 3, """
        0.893469 1.22205 1.12067 1.17857 0.805169 0.572987 1.24032 1.01888 0.544403;
        1.59946 1.13061 0.761526 1.47691 1.01361 0.937115 0.40335 0.461097 0.595998"""),
    "momentum, two servers": Recorded(lambda: fluid.optimizer.Momentum(0.05, 0.9), 3000, 2, 3, """
        0.814133 1.15269 0.847176 1.21298 0.827492 0.491607 0.928259 0.730646 0.254437;
        1.60836 1.13522 0.822925 1.65713 0.783601 0.812312 0.221816 0.196921 0.140633"""),
    "adam, three trainers": Recorded(lambda: fluid.optimizer.Adam(0.02, lazy_mode=True), 3000, 2, 2, """
        0.814133 1.12911 0.750477 1.13321 0.69776 0.435088; 1.60836 1.11891 0.751868 1.5352 0.736316 0.836119;
        1.70042 0.609454 0.295551 1.11637 0.892406 0.631708"""),
}  # fmt: skip


def small(rows: int) -> Any:
    """The network of the recorded jobs."""
    constant = fluid.initializer.Constant
    attr = lambda name, value: fluid.ParamAttr(name=name, initializer=constant(value))
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    ids = [fluid.data(name, [None, 1], "int64") for name in ("a", "b")]
    found = [fluid.embedding(one, [rows, 4], is_sparse=True, param_attr=attr("emb", 0.1)) for one in ids]
    both = fluid.layers.concat([x] + [fluid.layers.reshape(one, [-1, 4]) for one in found], 1)
    hidden = fluid.layers.fc(both, 6, act="tanh", param_attr=attr("w1", 0.05), bias_attr=attr("b1", 0.1))
    out = fluid.layers.fc(hidden, 1, param_attr=attr("w2", 0.2), bias_attr=attr("b2", 0.0))
    return fluid.layers.mean(fluid.layers.square_error_cost(out, y))


@pytest.mark.parametrize("name", _RECORDED)
def test_losses_match_jobs_of_fluid(name: str) -> None:
    optimizer, rows, servers, push_nums, text = _RECORDED[name]
    expected = np.array([line.split() for line in text.split(";")], float)

    def feed(step: int, trainer: int) -> Feed:
        rng = np.random.RandomState(100 * step + trainer)
        x = rng.uniform(-1, 1, (8, 4)).astype("float32")
        a, b = (np.tile(np.append(0, rng.randint(0, 50, 3) * (rows // 50)), 2)[:, None] for _ in "ab")
        return {"x": x, "y": x.sum(1, keepdims=True) + (0.1 * (a % 3)).astype("float32"), "a": a, "b": b}

    config = {**_CONFIG, "geo_sgd_need_push_nums": push_nums}
    network = Network(lambda: small(rows), optimizer, config, sync=False)
    with Job(network, servers=servers, trainers=len(expected)).start() as job:
        losses, _, _ = train(job, expected.shape[1], feed, push_nums, ["emb"])
    np.testing.assert_allclose(losses, expected, rtol=5e-6)  # six digits were recorded


def test_a_geo_sgd_save_includes_steps_since_the_last_exchange(tmp_path: Path) -> None:
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


def test_programs_match_fluid() -> None:
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
