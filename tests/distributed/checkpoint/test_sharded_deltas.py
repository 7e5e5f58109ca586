"""Deltas of tables that are sharded by id: a chain for each server's shard."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError
from paddlelike.io.deltas.chain import Chain, list_chains
from paddlelike.io.save.compact import compact
from paddlelike.storage.location import locate
from tests.crash import servers
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.jobs import Network
from tests.helpers.fresh import fresh_programs

ROWS, WIDTH, STEPS = 6000, 16, 5
LAST = f"whole{STEPS - 1}"
SHARDS = "__lookup_table__/table_"


def _build() -> Any:
    ids = fluid.data("ids", [None, 1], "int64")
    table = fluid.ParamAttr(name="table", initializer=fluid.initializer.Constant(0.05))
    found = fluid.layers.embedding(ids, [ROWS, WIDTH], is_sparse=True, is_distributed=True, param_attr=table)
    return fluid.layers.mean(fluid.layers.square(fluid.layers.fc(found, 1)))


NETWORK = Network(_build, lambda: fluid.optimizer.SGD(0.5))


def _feed(step: int) -> dict[str, Any]:
    """Half of the rows, then some of them and a few that nobody has met."""
    rng = np.random.default_rng(step)
    ids = np.arange(ROWS // 2) if not step else np.concatenate([rng.integers(0, 200, 30), [4000 + step]])
    return {"ids": ids.reshape(-1, 1).astype("int64")}


def _save(home: Path, servers: int, steps: range = range(STEPS), loaded: Path | None = None) -> list[Any]:
    """Train, with a delta after each step in ``chain`` and whole saves beside; return the reports."""
    reports = []
    with SavingJob(NETWORK, servers=servers, trainers=1, loaded=loaded) as job:
        trainer, exe = job.trainer(0), fluid.Executor()
        with fluid.scope_guard(fluid.Scope()):
            exe.run(trainer.startup)
            for step in steps:
                exe.run(trainer.main, feed=_feed(step))
                reports.append(fluid.io.save_persistables(exe, str(home / "chain"), trainer.main, delta=True))
                fluid.io.save_persistables(exe, str(home / f"whole{step}"), trainer.main)
            exe.close()
    return reports


def _links(home: Path) -> dict[str, int]:
    chains = list_chains(locate(str(home / "chain")))
    return {name: len(chain.records) for name, chain in chains.items() if isinstance(chain, Chain)}


def _values_on(servers: int, where: Path) -> list[tuple[bytes, bytes]]:
    """The ids and rows that servers hold after a load, in their order."""
    found = []
    with SavingJob(NETWORK, servers=servers, trainers=1, loaded=where) as job:
        for endpoint in job.endpoints:
            value = job.scopes[endpoint].find_var("table").get_selected_rows()
            found.append((value.row_array.tobytes(), np.asarray(value.held_array).tobytes()))
        exe = fluid.Executor()
        with fluid.scope_guard(fluid.Scope()):
            exe.run(job.trainer(0).startup)
            exe.close()
    return found


def _values_here(where: Path) -> bytes:
    with fresh_programs() as (main, startup):
        NETWORK.optimizer().minimize(_build())
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.load_persistables(exe, str(where), main)
        return np.array(fluid.global_scope().find_var("table").get_tensor()).tobytes()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("shards")
    reports = _save(home, 2)
    for step, report in enumerate(reports[1:], 1):
        changed = len(np.unique(_feed(step)["ids"]))
        # A row and its id; what belongs to links, the manifest and the small variables are under 4 kB.
        assert report.written_bytes <= 1.2 * changed * (4 * WIDTH + 8) + 4096
    return home


def test_each_shard_has_its_own_chain_of_deltas(saved: Path) -> None:
    assert _links(saved) == {f"{SHARDS}{one}": STEPS for one in range(2)}
    assert fluid.io.verify(str(saved / "chain"))


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_any_number_of_servers_loads_a_chain_of_shards(servers: int, saved: Path) -> None:
    assert _values_on(servers, saved / "chain") == _values_on(servers, saved / LAST)


def test_one_process_loads_a_chain_of_shards(saved: Path) -> None:
    assert _values_here(saved / "chain") == _values_here(saved / LAST)


def test_compacting_chains_gives_the_files_of_a_whole_save(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved / "chain", tmp_path / "d")
    assert sorted(compact(tmp_path / "d").files) == [f"{SHARDS}{one}" for one in range(2)]
    for one in range(2):
        assert (tmp_path / f"d/{SHARDS}{one}").read_bytes() == (saved / f"{LAST}/{SHARDS}{one}").read_bytes()
    assert _values_on(3, tmp_path / "d") == _values_on(3, saved / LAST)


@pytest.mark.parametrize("servers", [1, 2])
@pytest.mark.parametrize("damage", ["remove", "swap", "flip", "manifest"])
def test_a_damaged_chain_of_shards_is_refused(damage: str, servers: int, saved: Path, tmp_path: Path) -> None:
    """Proves C2, C3."""
    shutil.copytree(saved / "chain", tmp_path / "d")
    second, third = (next((tmp_path / "d").glob(f"__deltas__/{SHARDS}0.*.{at}")) for at in (2, 3))
    data = second.read_bytes()
    if damage == "remove":
        second.unlink()
    elif damage == "swap":
        second.write_bytes(third.read_bytes())
        third.write_bytes(data)
    elif damage == "flip":
        second.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    else:
        (tmp_path / "d/__manifest__").unlink()
    job = SavingJob(NETWORK, servers=servers, loaded=tmp_path / "d")
    with pytest.raises(LoadError, match=r"table_0.*link 2|link 2.*table_0|no manifest"):
        job.serve(job.endpoints[0])


@pytest.mark.parametrize("servers", [1, 3])
def test_servers_load_the_chain_of_one_process(servers: int, tmp_path: Path) -> None:
    with fresh_programs() as (main, startup):
        NETWORK.optimizer().minimize(_build())
        exe = fluid.Executor()
        exe.run(startup)
        for step in range(3):
            exe.run(main, feed=_feed(step))
            fluid.io.save_persistables(exe, str(tmp_path / "chain"), main, delta=True)
        fluid.io.save_persistables(exe, str(tmp_path / "whole"), main)
    assert _links(tmp_path) == {"table": 3}
    assert _values_on(servers, tmp_path / "chain") == _values_on(servers, tmp_path / "whole")


def test_chains_in_a_remote_directory_are_planned_and_loaded_as_whole_saves_are(tmp_path: Path) -> None:
    url, whole = f"memory://{tmp_path.name}/chain", str(tmp_path / "whole")
    trainer, serving = servers.make_programs()
    for number in range(3):
        servers.save_set(trainer, url, number, delta=True)
    servers.save_set(trainer, whole, 2)
    chains = list_chains(locate(url))
    assert {name: len(chain.records) for name, chain in chains.items() if isinstance(chain, Chain)} == {
        f"{SHARDS}0": 3, f"{SHARDS}1": 3, "emb": 3
    }  # fmt: skip
    assert fluid.io.verify(url)
    assert servers.read_servers(serving, url) == servers.read_servers(serving, whole)
    found = []
    for where in (url, whole):
        with fresh_programs(7) as (main, startup):  # rows that no server has met keep initial values
            servers.build()
            exe = fluid.Executor()
            exe.run(startup)
            assert fluid.io.plan_load(where, main)
            assert all(fluid.io.plan_load(where, one.main) for one in serving)
            fluid.io.load_persistables(exe, where, main)
            found.append(np.array(fluid.global_scope().find_var("table").get_tensor()).tobytes())
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_chain_of_shards_continues_in_a_new_job_and_restarts_with_another_number_of_servers(
    tmp_path: Path,
) -> None:
    chain = tmp_path / "chain"
    _save(tmp_path, 2, range(3))
    _save(tmp_path, 2, range(3, 5), loaded=chain)
    assert _links(tmp_path) == {f"{SHARDS}{one}": 5 for one in range(2)}
    _save(tmp_path, 3, range(5, 6), loaded=chain)
    assert _links(tmp_path) == {f"{SHARDS}{one}": 1 for one in range(3)}
    assert _values_here(chain) == _values_here(tmp_path / "whole5")
    assert _values_on(3, chain) == _values_on(3, tmp_path / "whole5")
