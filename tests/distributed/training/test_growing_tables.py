"""Growing tables on servers: the bits of one process, whoever comes first and however many serve."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed import growing_tables as tables
from tests.distributed.jobs import SEED, Feed, Job, Network, Programs
from tests.helpers.fresh import fresh_programs

_FAR = (1 << 61) // 40

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1, initial_accumulator_value=0.2),
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "adam": lambda: fluid.optimizer.Adam(0.1, lazy_mode=True),
    "ftrl": lambda: fluid.optimizer.Ftrl(0.1),
    "rmsprop": lambda: fluid.optimizer.RMSProp(0.1),
}


def clicks(entry: Any = None, padding: int | None = None, kind: str = "Memory") -> Callable[[], Any]:
    """Three ids into one number, with shows and clicks; ``kind``: Memory or SSD."""

    def build() -> Any:
        ids = fluid.data("ids", [None, 3], "int64")
        y, *_ = [fluid.data(name, [None, 1]) for name in ("y", "shown", "clicked")]
        attr = fluid.ParamAttr(name="emb", initializer=fluid.initializer.Normal(0.0, 0.1, seed=3))
        options = {"entry": entry, "padding_idx": padding, "table_class": f"{kind}SparseTable"}
        found = tables.sparse_embedding(ids, [1, 4], param_attr=attr, **options)
        flat = fluid.layers.reshape(found, [-1, 12])
        out = fluid.layers.fc(flat, 1, param_attr=fluid.initializer.Constant(0.3))
        return fluid.layers.mean(fluid.layers.square_error_cost(out, y))

    return build


def feeds(step: int, trainer: int) -> Feed:
    """Eight samples with ids from the whole range of int64."""
    rng = np.random.default_rng(100 * step + trainer)
    ones = np.ones((8, 1), "float32")
    ids = (rng.integers(0, 50, (8, 3)) - 25) * _FAR
    return {"ids": ids, "y": rng.normal(size=(8, 1)).astype("float32"), "shown": ones, "clicked": ones / 2}


def train_here(network: Network, steps: int, first: int = 0, *, load: str = "", save: str = "") -> Any:
    """The losses and the tables of one process without servers."""
    with fresh_programs(SEED) as (main, startup):
        loss = network.build()
        network.optimizer().minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        if load:
            fluid.io.load_persistables(exe, load, main)
        run = range(first, first + steps)
        losses = [exe.run(main, feed=feeds(step, 0), fetch_list=[loss])[0].item() for step in run]
        if save:
            fluid.io.save_persistables(exe, save, main)
        return losses, rows_of([fluid.global_scope()])


def rows_of(scopes: list[Any]) -> dict[str, dict[int, bytes]]:
    """The bytes of every row by table and id, in all scopes together."""
    found: dict[str, dict[int, bytes]] = {}
    for scope in scopes:
        for name in scope.local_var_names():
            value = scope.find_var(name).value
            if name.startswith("emb") and hasattr(value, "make_rows"):
                array = np.asarray(value.array)
                rows = {i: row.tobytes() for i, row in zip(value.rows(), array, strict=True)}
                assert not rows.keys() & found.setdefault(name, {}).keys()
                found[name] |= rows
    return found


class Trainer:
    """One trainer of a job, in this thread."""

    def __init__(self, job: Job) -> None:
        self.programs: Programs = job.trainer(0)
        self.scope, self.exe = fluid.Scope(), fluid.Executor()
        self.exe.run(self.programs.startup, scope=self.scope)

    def train(self, steps: int, first: int = 0) -> list[float]:
        """The losses of some steps."""
        return [
            self.exe.run(
                self.programs.main, feed=feeds(s, 0), fetch_list=[self.programs.loss.name], scope=self.scope
            )[0].item()
            for s in range(first, first + steps)
        ]

    def call(self, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        """The result of a function in this trainer's scope."""
        with fluid.scope_guard(self.scope):
            return function(*args, **keywords)

    def save(self, where: str) -> None:
        """Save everything, also what only servers have."""
        self.call(fluid.io.save_persistables, self.exe, where, self.programs.main)


def _servers(job: Job) -> list[Any]:
    return [job.scopes[endpoint] for endpoint in job.endpoints]


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_one_trainer_has_the_same_bits_as_one_process(optimizer: Callable[[], Any], sync: bool) -> None:
    network = Network(clicks(tables.CountFilterEntry(2)), optimizer, sync=sync)
    losses, rows = train_here(network, 6)
    with Job(network, servers=3, trainers=1).start() as job:
        assert job.train(feeds, 6) == [losses]
        assert rows_of(_servers(job)) == rows
    assert len(rows["emb"]) > 30 < len(rows["emb_counts"])


@pytest.mark.parametrize("servers", [1, 2])
def test_two_trainers_have_the_same_bits_in_any_order_of_arrival(servers: int) -> None:
    network = Network(clicks(tables.ShowClickEntry("shown", "clicked")), OPTIMIZERS["adagrad"])
    found = []
    for count in (servers, 3):
        with Job(network, servers=count).start() as job:
            found.append((job.train(feeds, 5), rows_of(_servers(job))))
    assert found[0] == found[1]


def test_a_save_equals_the_save_of_one_process_and_loads_on_any_number_of_servers(tmp_path: Path) -> None:
    network = Network(clicks(tables.CountFilterEntry(2)), OPTIMIZERS["adam"])
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    train_here(network, 4, save=here)
    with Job(network, servers=3, trainers=1).start() as job:
        one = Trainer(job)
        one.train(4)
        one.save(there)
        one.exe.close()
    names, others = ({path.name for path in Path(one).iterdir()} for one in (here, there))
    assert names == others
    expected = train_here(network, 4, first=4, load=here)
    assert train_here(network, 4, first=4, load=there) == expected
    with Job(network, servers=2, trainers=1) as job:
        for endpoint in job.endpoints:
            programs, scope = job.server(endpoint), fluid.Scope()
            exe = fluid.Executor()
            exe.run(programs.startup, scope=scope)
            with fluid.scope_guard(scope):
                fluid.io.load_persistables(exe, there, programs.main)
            programs.startup = None
            job.start_server(endpoint, programs, scope)
        one = Trainer(job)
        assert (one.train(4, first=4), rows_of(_servers(job))) == expected
        one.exe.close()


def test_servers_count_forget_and_clear_as_one_process(capsys: pytest.CaptureFixture[str]) -> None:
    network = Network(clicks(tables.ShowClickEntry("shown", "clicked")), OPTIMIZERS["ftrl"])
    with Job(network, servers=3, trainers=1).start() as job:
        one, main = Trainer(job), fluid.Program()
        one.train(4)
        main = one.programs.main
        stat = one.call(tables.print_table_stat, main)
        assert (stat["emb"]["shows"], stat["emb"]["clicks"]) == (96, 48)
        assert "emb: rows" in capsys.readouterr().out
        forgotten = one.call(tables.shrink, 0.8, main)
        after = one.call(tables.print_table_stat, main)["emb"]
        assert 0 < forgotten["emb"] == stat["emb"]["rows"] - after["rows"]
        assert after["ids"] == after["rows"]
        counts = rows_of(_servers(job))["emb_counts"]
        shows = {i: np.frombuffer(row, "float32") for i, row in counts.items()}
        assert all(0.1 * (s - c) + c >= 0.8 and unseen == 1 for s, c, unseen in shows.values())
        one.train(2, first=4)
        one.call(tables.clear, main)
        assert one.call(tables.print_table_stat, main)["emb"] == {
            "rows": 0, "ids": 0, "shows": 0, "clicks": 0, "bytes": 0,
        }  # fmt: skip
        one.train(1)
        one.exe.close()


def test_a_single_table_is_saved_and_loaded_during_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PADDLELIKE_CHECKPOINT_DIR", str(tmp_path))
    network = Network(clicks(), OPTIMIZERS["adagrad"])
    with Job(network, trainers=1).start() as job:
        one = Trainer(job)
        one.train(3)
        one.call(tables.save_one_table, one.exe, "emb", str(tmp_path / "one"), one.programs.main)
        before = rows_of(_servers(job))
        one.train(2, first=3)
        one.call(tables.load_one_table, one.exe, "emb", str(tmp_path / "one"), one.programs.main)
        assert rows_of(_servers(job)) == before
        assert len(before) == 3
        one.train(1)
        one.exe.close()


def test_a_look_up_alone_changes_nothing_and_padding_ids_give_zeros() -> None:
    padded = (-3) * _FAR
    network = Network(clicks(padding=padded), OPTIMIZERS["sgd"])
    losses, rows = train_here(network, 4)
    with Job(network, servers=2, trainers=1).start() as job:
        one = Trainer(job)
        main = one.programs.main
        ops = main.global_block().ops
        out = next(op for op in ops if op.type == "distributed_sparse_embedding").output("Out")
        test = main.clone(for_test=True)._prune(out)
        ids = np.array([[1, 2, padded]])
        feed = {"ids": ids}
        (found,) = one.exe.run(test, feed=feed, fetch_list=out, scope=one.scope)
        assert not found.any()
        assert one.train(4) == losses
        assert rows_of(_servers(job)) == rows
        assert padded not in rows["emb"]
        (found,) = one.exe.run(test, feed={"ids": feeds(0, 0)["ids"]}, fetch_list=out, scope=one.scope)
        for i, row in zip(feeds(0, 0)["ids"].ravel().tolist(), found.reshape(-1, 4), strict=True):
            assert row.tobytes() == rows["emb"].get(i, bytes(16))
        one.exe.close()
