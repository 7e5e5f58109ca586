"""Deltas of what servers keep: the rows that changed, in chains that any number of servers loads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed import growing_tables as tables
from paddlelike.io.deltas.chain import Chain, list_chains
from paddlelike.storage.location import locate
from tests.distributed.jobs import Feed, Job, Network
from tests.distributed.training.test_growing_tables import Trainer, rows_of
from tests.helpers.fresh import fresh_programs

_ROWS, _WIDTH = 3000, 16


def _build(*, growing: bool) -> Callable[[], Any]:
    def build() -> Any:
        ids = fluid.data("ids", [None, 1], "int64")
        if growing:
            found = tables.sparse_embedding(ids, [1, _WIDTH], param_attr="emb")
        else:
            attr = fluid.ParamAttr(name="emb", initializer=fluid.initializer.Uniform(-0.1, 0.1, seed=1))
            found = fluid.embedding(ids, [_ROWS, _WIDTH], is_sparse=True, param_attr=attr)
        return fluid.layers.mean(fluid.layers.fc(found, 1, param_attr=fluid.initializer.Constant(0.3)))

    return build


def _feed(step: int) -> Feed:
    """All rows, most of them again, then a few, and on a table that grows some new ones."""
    rng = np.random.default_rng(step)
    ids = np.arange(_ROWS - 500 * step) if step < 2 else rng.integers(0, 100, 40)
    return {"ids": ids.reshape(-1, 1).astype("int64")}


def _more(step: int) -> Feed:
    ids = _feed(step)["ids"]
    return {"ids": np.concatenate([ids, ids[:5] + 100_000 * (step + 1)])}


def _train(one: Trainer, feed: Callable[[int], Feed], step: int) -> None:
    one.exe.run(one.programs.main, feed=feed(step), scope=one.scope)


def _load(job: Job, where: Path) -> dict[str, Any]:
    """What servers of another job load."""
    scopes = []
    for endpoint in job.endpoints:
        programs, scope = job.server(endpoint), fluid.Scope()
        exe = fluid.Executor()
        exe.run(programs.startup, scope=scope)
        with fluid.scope_guard(scope):
            fluid.io.load_persistables(exe, str(where), programs.main)
        scopes.append(scope)
    return rows_of(scopes)


@pytest.mark.parametrize("servers", [1, 3])
def test_a_growing_table_on_servers_is_saved_as_a_delta(servers: int, tmp_path: Path) -> None:
    chain, whole = tmp_path / "chain", tmp_path / "whole"
    network = Network(_build(growing=True), lambda: fluid.optimizer.Adagrad(0.1))
    with Job(network, servers=servers, trainers=1).start() as job:
        one = Trainer(job)
        for step in range(6):
            _train(one, _more, step)
            report = one.call(
                fluid.io.save_persistables, one.exe, str(chain), one.programs.main, delta=step != 3 or "base"
            )
            links = {name: len(c.records) for name, c in list_chains(locate(str(chain))).items()
                     if isinstance(c, Chain)}  # fmt: skip
            assert links["emb"] == links["emb_moment_0"] == (max(step, 1) if step < 3 else step - 1)
            # Two tables of 45 rows of 64 bytes with their ids, and 510 forgotten ones; the counts are whole.
            assert step in (0, 1, 3) or report.written_bytes < 2 * (45 * 72 + 510 * 8) * 1.2 + 70_000
            if step == 1:
                forgotten = one.call(tables.shrink, 0.15, one.programs.main)
                assert forgotten == {"emb": 510}
        one.save(str(whole))
        expected = rows_of([job.scopes[endpoint] for endpoint in job.endpoints])
        one.exe.close()
    assert 2500 < len(expected["emb"]) <= 2500 + 4 * 5
    other = Job(network, servers=2, trainers=1)
    assert _load(other, chain) == _load(other, whole) == expected


@pytest.mark.parametrize("servers", [1, 3])
def test_values_that_only_servers_have_are_saved_as_a_delta(servers: int, tmp_path: Path) -> None:
    chain, whole = tmp_path / "chain", tmp_path / "whole"
    network = Network(_build(growing=False), lambda: fluid.optimizer.Adagrad(0.1))
    with Job(network, servers=servers, trainers=1).start() as job:
        one = Trainer(job)
        for step in (0, 2, 3):
            _train(one, _feed, step)
            report = one.call(fluid.io.save_persistables, one.exe, str(chain), one.programs.main, delta=True)
        changed = len(np.unique(_feed(3)["ids"]))
        assert report.written_bytes < 2 * changed * (64 + 8) * 1.2 + 4096  # both tables; the rest is small
        one.save(str(whole))
        one.exe.close()
    loaded = [_load_here(network, where) for where in (chain, whole)]
    assert loaded[0] == loaded[1]
    assert {"emb", "emb_moment_0"} < loaded[0].keys()


def _load_here(network: Network, where: Path) -> dict[str, bytes]:
    """What a process without servers loads."""
    with fresh_programs() as (main, startup):
        network.optimizer().minimize(network.build())
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.load_persistables(exe, str(where), main)
        names = [one.name for one in main.list_vars() if one.persistable]
        values = {name: fluid.global_scope().find_var(name).get_tensor() for name in names}
        return {name: np.array(value).tobytes() for name, value in values.items()}
