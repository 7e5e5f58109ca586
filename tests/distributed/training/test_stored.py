"""Tables whose rows lie on disk have the bits of those in memory, in one process and on servers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import VarType
from paddlelike.distributed import growing_tables as tables
from paddlelike.errors import UnsupportedError
from paddlelike.io.contents.interface import Held, Want
from paddlelike.io.deltas.contents import open_directory
from paddlelike.storage.location import locate
from tests.distributed.jobs import Job, Network
from tests.distributed.training.test_growing_tables import OPTIMIZERS, Trainer, clicks, feeds
from tests.helpers.fresh import fresh_programs

pytestmark = pytest.mark.slow  # several processes
_LAZY = ["sgd", "adagrad", "adam"]


@pytest.fixture(autouse=True)
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the stores, which is empty in the end; five rows stay in memory."""
    folder = tmp_path / "stores"
    monkeypatch.setenv("PADDLELIKE_TABLE_STORE", str(folder))
    monkeypatch.setenv("PADDLELIKE_HOT_ROWS", "5")
    return folder


def train_here(network: Network, *, save: str, load: str = "") -> Any:
    """The losses, and what was forgotten, of three days in one process, which loads and saves."""
    with fresh_programs() as (main, startup):
        loss = network.build()
        network.optimizer().minimize(loss)
        exe, found = fluid.Executor(), []
        exe.run(startup)
        if load:
            fluid.io.load_persistables(exe, load, main)
        for day in range(3):
            for step in range(4 * day, 4 * day + 4):
                found += exe.run(main, feed=feeds(step, 0), fetch_list=[loss])[0].tolist()
            found.append(tables.shrink(0.15 * day, main, delete_after_unseen_days=1))
            found.append(tables.print_table_stat(main))
        fluid.io.save_persistables(exe, save, main)
        return found


def read_rows(path: str | Path) -> dict[str, dict[int, bytes]]:
    """The bytes of the rows of a saved directory by table and id, its deltas replayed."""
    contents = open_directory(locate(str(path)))
    found = {}
    for name in contents.names():
        held = contents.look(name, VarType.SELECTED_ROWS)
        if name.startswith("emb") and isinstance(held, Held):
            value: Any = contents.read([Want(held)]).values[0]
            rows = np.asarray(value.array)
            found[name] = {i: row.tobytes() for i, row in zip(value.rows(), rows, strict=True)}
    return found


@pytest.mark.parametrize("optimizer", _LAZY)
@pytest.mark.parametrize("entry", [None, tables.CountFilterEntry(2)], ids=["all", "counted"])
def test_one_process_with_a_table_on_disk_has_the_same_bits_as_a_table_in_memory(
    optimizer: str, entry: Any, tmp_path: Path, stores: Path
) -> None:
    found = {}
    for kind in ("Memory", "SSD"):
        network = Network(clicks(entry, kind=kind), OPTIMIZERS[optimizer])
        first, second = str(tmp_path / kind), str(tmp_path / f"{kind}2")
        days = [train_here(network, save=first), train_here(network, save=second, load=first)]
        found[kind] = days, read_rows(first), read_rows(second)
    assert found["SSD"] == found["Memory"]
    assert len(found["SSD"][1]["emb"]) > 5
    assert not list(stores.iterdir())  # the files have no names


@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
@pytest.mark.parametrize("servers", [1, 3])
def test_servers_with_tables_on_disk_have_the_same_bits_as_tables_in_memory(
    servers: int, sync: bool, tmp_path: Path
) -> None:
    found = {}
    for kind in ("Memory", "SSD"):
        network = Network(clicks(tables.CountFilterEntry(2), kind=kind), OPTIMIZERS["adagrad"], sync=sync)
        with Job(network, servers=servers, trainers=1).start() as job:
            one = Trainer(job)
            losses = one.train(6)
            forgotten = one.call(tables.shrink, 0.3, one.programs.main)
            losses += one.train(4, first=6)
            one.save(str(tmp_path / kind))
            found[kind] = losses, forgotten, one.call(tables.print_table_stat, one.programs.main)
            one.exe.close()
        found[kind] += (read_rows(tmp_path / kind),)
    assert found["SSD"] == found["Memory"]


def test_an_optimizer_that_moves_all_rows_is_refused() -> None:
    with fresh_programs() as (main, startup):
        loss = clicks(kind="SSD")()
        OPTIMIZERS["momentum"]().minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        with pytest.raises(UnsupportedError, match="momentum updates every row"):
            exe.run(main, feed=feeds(0, 0))


def test_a_chain_of_deltas_loads_like_a_whole_save(tmp_path: Path) -> None:
    with fresh_programs() as (main, startup):
        ids = fluid.data("ids", [None, 1], "int64")
        found = tables.sparse_embedding(ids, [1, 16], table_class="SSDSparseTable", param_attr="emb")
        fluid.optimizer.Adagrad(0.1).minimize(fluid.layers.mean(found))
        exe, rng = fluid.Executor(), np.random.default_rng(1)
        exe.run(startup)
        exe.run(main, feed={"ids": np.arange(3000).reshape(-1, 1) * 7919 - (1 << 40)})
        for step in range(4):
            report = fluid.io.save_persistables(exe, str(tmp_path / "chain"), main, delta=True)
            assert step == 0 or report.written_bytes < 70_000  # the counts, 60 kB, are written whole
            exe.run(main, feed={"ids": rng.integers(0, 300, (50, 1)) * 7919 - (1 << 40) + step})
            if step == 2:
                tables.shrink(None, main, delete_after_unseen_days=1)
        fluid.io.save_persistables(exe, str(tmp_path / "chain"), main, delta=True)
        fluid.io.save_persistables(exe, str(tmp_path / "whole"), main)
    whole = read_rows(tmp_path / "whole")
    shutil.rmtree(tmp_path / "whole")
    fluid.io.compact(str(tmp_path / "chain"))
    assert whole == read_rows(tmp_path / "chain")
