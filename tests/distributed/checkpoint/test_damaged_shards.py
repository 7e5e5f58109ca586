"""Shards of a sharded table that are damaged, lost, or of another save: every reader refuses them by name."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError
from paddlelike.storage.names import MANIFEST
from tests.crash import servers
from tests.distributed.jobs import SEED, Job, Network, Programs, sgd
from tests.helpers.fresh import fresh_programs

ROWS = 60
SHARD = "__lookup_table__/table_{}"
READERS = [1, 2, 3, "one process"]


def _snapshot() -> dict[str, Any]:
    found = {}
    for name in fluid.global_scope().local_var_names():
        value = fluid.global_scope().find_var(name).value
        if isinstance(value, fluid.core.SelectedRows):
            found[name] = value.row_array.tobytes(), np.asarray(value.held_array).tobytes()
        elif isinstance(value, fluid.LoDTensor) and value.array is not None:
            found[name] = np.array(value).tobytes()
    return found


class Jobs:
    """The programs of jobs of 1, 2 and 3 servers, and two saves of each of them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._serving: dict[int, list[Programs]] = {}
        for count in (1, 2, 3):
            job = Job(Network(servers.build, sgd), servers=count, trainers=1)
            with fresh_programs(SEED):
                trainer = job.transpiler()[0].get_trainer_program(wait_port=False)
            self._serving[count] = [job.server(one) for one in job.endpoints]
            with mock.patch.object(servers, "MET", ROWS // count - 3):
                for number in range(2):
                    servers.save_set(trainer, str(home / f"{count}.{number}"), number)

    def copy(self, count: int, to: Path, *, manifest: bool = True) -> Path:
        """Return a copy of the second save of a job of that many servers."""
        shutil.copytree(self.home / f"{count}.1", to)
        if not manifest:
            (to / MANIFEST).unlink()
        return to

    def load(self, reader: int | str, path: Path, **options: Any) -> list[str]:
        """Load in each process of a reader; return the errors. Nothing has changed where there was one."""
        if reader == "one process":
            with fresh_programs(7) as (main, startup):
                servers.build()
                return list(self._load_in(path, startup, main, options))
        errors: list[str] = []
        for one in self._serving[int(reader)]:
            with fluid.scope_guard(fluid.Scope()):
                errors += self._load_in(path, one.startup, one.main, options)
        return errors

    @staticmethod
    def _load_in(path: Path, startup: Any, main: Any, options: dict[str, Any]) -> Iterator[str]:
        exe = fluid.Executor()
        exe.run(startup)
        before = _snapshot()
        try:
            fluid.io.load_persistables(exe, str(path), main, **options)
        except LoadError as error:
            assert _snapshot() == before
            yield str(error)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with mock.patch.object(servers, "ROWS", ROWS):
        yield Jobs(tmp_path_factory.mktemp("saves"))


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("count", [2, 3])
def test_undamaged_shards_load_without_warnings(
    jobs: Jobs, tmp_path: Path, count: int, reader: int | str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for manifest in (True, False):
            path = jobs.copy(count, tmp_path / str(manifest), manifest=manifest)
            assert jobs.load(reader, path) == []


@pytest.mark.parametrize("verify", [None, True])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("at", [5, 16, 400, -1])
def test_a_flipped_bit_of_a_shard_is_noticed_by_every_reader_of_it(
    jobs: Jobs, tmp_path: Path, at: int, reader: int | str, verify: bool | None
) -> None:
    path = jobs.copy(2, tmp_path / "model")
    _flip(path / SHARD.format(1), at)
    errors = jobs.load(reader, path, verify=verify)
    assert len(errors) >= (reader if reader in (1, 3) else 1)  # of two servers one reads this shard's rows
    assert all(str(path) in one and SHARD.format(1) in one for one in errors)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("shard", [0, 1, 2])
def test_a_shard_of_an_older_save_is_noticed(
    jobs: Jobs, tmp_path: Path, shard: int, reader: int | str
) -> None:
    path = jobs.copy(3, tmp_path / "model")
    shutil.copy(jobs.home / "3.0" / SHARD.format(shard), path / SHARD.format(shard))
    errors = jobs.load(reader, path)
    assert errors
    assert all(f"{SHARD.format(shard)}: it has" in one for one in errors)


@pytest.mark.parametrize("manifest", [True, False], ids=["manifest", "no manifest"])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("shard", [0, 1, 2])
def test_a_lost_shard_is_named(
    jobs: Jobs, tmp_path: Path, shard: int, reader: int | str, manifest: bool
) -> None:
    path = jobs.copy(3, tmp_path / "model", manifest=manifest)
    (path / SHARD.format(shard)).unlink()
    errors = jobs.load(reader, path)
    assert len(errors) == (1 if reader == "one process" else reader)
    named = SHARD.format(shard) if manifest or shard else "table"
    assert all(named in one for one in errors)


@pytest.mark.parametrize("manifest", [True, False], ids=["manifest", "no manifest"])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("change", ["swapped", "doubled", "of another count"])
def test_a_shard_under_the_file_name_of_another_is_refused(
    jobs: Jobs, tmp_path: Path, change: str, reader: int | str, manifest: bool
) -> None:
    path = jobs.copy(2, tmp_path / "model", manifest=manifest)
    first, second = (path / SHARD.format(at) for at in range(2))
    if change == "swapped":
        data = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(data)
    else:
        shutil.copy(first if change == "doubled" else jobs.home / "3.1" / SHARD.format(1), second)
    assert any("__lookup_table__/table_" in one for one in jobs.load(reader, path))


@pytest.mark.parametrize("reader", READERS)
def test_an_older_whole_table_does_not_replace_lost_shards(
    jobs: Jobs, tmp_path: Path, reader: int | str
) -> None:
    path = jobs.copy(1, tmp_path / "model")
    with fresh_programs(7) as (main, startup):
        servers.build()
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.load_persistables(exe, str(path), main)
        fluid.io.save_persistables(exe, str(path), main)
    job = Job(Network(servers.build, sgd), servers=2, trainers=1)
    with fresh_programs(SEED), mock.patch.object(servers, "MET", ROWS // 2 - 3):
        trainer = job.transpiler()[0].get_trainer_program(wait_port=False)
        servers.save_set(trainer, str(path), 1)
    assert (path / "table").is_file()
    assert jobs.load(reader, path) == []
    for shard in range(2):
        (path / SHARD.format(shard)).unlink()
    errors = jobs.load(reader, path)
    assert errors
    assert all(f"{SHARD.format(0)}: there is no such file, and 2 shards were saved" in one for one in errors)


@pytest.mark.parametrize("reader", [1, 2, 3])
def test_a_damaged_table_of_a_combined_file_is_noticed_by_servers(
    jobs: Jobs, tmp_path: Path, reader: int
) -> None:
    path = tmp_path / "model"
    with fresh_programs(7) as (main, startup):
        servers.build()
        exe = fluid.Executor()
        exe.run(startup)
        variables = [one for one in fluid.io.get_program_persistable_vars(main) if one.name != "emb"]
        dense = [one for one in variables if one.type == fluid.core.VarDesc.VarType.LOD_TENSOR]
        fluid.io.save_vars(exe, str(path), main, vars=dense, filename="all")
    _flip(path / "all", -400)
    for one in jobs._serving[reader]:
        with fluid.scope_guard(fluid.Scope()):
            exe = fluid.Executor()
            exe.run(one.startup)
            with pytest.raises(LoadError, match="bytes"):
                fluid.io.load_vars(exe, str(path), one.main, vars=["table"], filename="all")
