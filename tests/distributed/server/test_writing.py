"""A server writes only its own rows, into files that trainer 0 began; what breaks a save breaks it whole."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import SelectedRows, VarType
from paddlelike.distributed.checkpoint.gather import Gathering, gather_files
from paddlelike.distributed.client.client import Client
from paddlelike.distributed.placement import Kind, Placement, Slice
from paddlelike.distributed.server.writing import write_rows
from paddlelike.errors import FaultError, LoadError, NotInitializedError, SaveError, StorageError
from paddlelike.formats.paddle import lod_tensor
from paddlelike.storage.hashing import PieceHasher
from paddlelike.storage.local.manifest_file import read_manifest
from paddlelike.storage.local.transaction import Transaction
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.checkpoint.test_resume import ADAM
from tests.distributed.checkpoint.test_save import files_of
from tests.distributed.jobs import MOMENTUM, perceptron_feeds

HERE = "127.0.0.1:6174"
OWN = Slice("w", "w.block1", HERE, 1, 2, (2, 3), (5, 3), VarType.FP32, Kind.PARAMETER)
SHARD = Slice("t", "t", HERE, 1, 1, (4, 3), (8, 3), VarType.FP32, Kind.TABLE, stride=2)


@pytest.fixture
def scope() -> Any:
    scope = fluid.Scope()
    scope.var("w.block1").get_tensor().set(np.full((2, 3), 7, "float32"))
    scope.var("t").set_value(SelectedRows([1, 5], 4, np.ones((4, 3), "float32")))
    return scope


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    (tmp_path / "w").write_bytes(lod_tensor.encode_header("float32", (5, 3)) + bytes(60))
    return tmp_path


def test_a_server_writes_only_its_own_rows(scope: Any, begun: Path) -> None:
    answer = write_rows(scope, [OWN, SHARD], str(begun), ["w", "other"])
    assert set(answer["sums"]) == {"w.block1"}
    array = lod_tensor.read((begun / "w").read_bytes()).array
    assert array is not None
    assert array[:, 0].tolist() == [0, 0, 7, 7, 0]


class Two:
    """Two servers, each with half of the rows of ``w``."""

    def __init__(self) -> None:
        shape, whole = (3001, 64), (6002, 64)
        self.slices = [
            Slice(
                "w", f"w.block{n}", f"127.0.0.1:{n}", n, n * 3001, shape, whole, VarType.FP32, Kind.PARAMETER
            )
            for n in range(2)
        ]
        self.scopes = [fluid.Scope(), fluid.Scope()]
        for number, scope in enumerate(self.scopes):
            rows = np.arange(3001 * 64, dtype="float32").reshape(3001, 64) + number
            scope.var(f"w.block{number}").get_tensor().set(rows)

    def save(self, directory: str, names: Any) -> dict[str, Any]:
        pairs = zip(self.slices, self.scopes, strict=True)
        return {one.endpoint: write_rows(scope, [one], directory, names) for one, scope in pairs}

    def pull(self, wanted: Any) -> Any:
        raise AssertionError("the servers write by themselves")

    stream = row_ids = pull


def save_by_servers(servers: Two, directory: Path) -> None:
    table = Placement(servers.slices, endpoints=[one.endpoint for one in servers.slices])
    with Transaction(directory) as transaction:
        for one in gather_files(servers, table, ["w"], Gathering(by_servers=True)):
            transaction.add(one.name, one.buffers, one.facts)


def test_manifests_of_servers_hold_the_checksums_of_pieces(tmp_path: Path) -> None:
    """So a server that resumes verifies its own rows, of a large file too, without reading the others."""
    save_by_servers(Two(), tmp_path / "model")
    data = (tmp_path / "model" / "w").read_bytes()
    manifest = read_manifest(tmp_path / "model")
    assert manifest is not None
    whole = PieceHasher()
    whole.update(data)
    assert manifest.files["w"].pieces == whole.pieces()
    assert fluid.io.verify(tmp_path / "model")
    with (tmp_path / "model" / "w").open("r+b") as file:
        file.seek(-2, 2)
        file.write(b"?")
    assert fluid.io.load_slice(tmp_path / "model", "w", (0, 3001)).shape == (3001, 64)
    with pytest.raises(LoadError, match=r"w: its bytes 1048576 to .* are not those that were saved"):
        fluid.io.load_slice(tmp_path / "model", "w", (3001, 6002))


def test_rows_that_do_not_reach_the_directory_of_trainer_0_break_the_save(
    tmp_path: Path, monkeypatch: Any
) -> None:
    servers = Two()
    save = servers.save

    def lost(directory: str, names: Any) -> dict[str, Any]:
        answers = save(directory, names)
        with open(f"{directory}/w", "r+b") as file:  # such as a directory of the same name on another machine
            file.seek(30 + 3001 * 256)
            file.write(bytes(3001 * 256))
        return answers

    monkeypatch.setattr(servers, "save", lost)
    with pytest.raises(SaveError, match="differs from the data that the servers wrote"):
        save_by_servers(servers, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"root:x:0:0:root:/root:/bin/sh\n", "does not find the file"),
        (lod_tensor.encode_header("float32", (5, 4)) + bytes(80), "is not the file"),
        (lod_tensor.encode_header("float64", (5, 3)) + bytes(120), "is not the file"),
        (lod_tensor.encode_header("float32", (5, 3)) + bytes(61), "is not the file"),
        (lod_tensor.encode_header("float32", (5, 3)) + bytes(59), "does not find the file"),
    ],
    ids=["another file", "shape", "type", "longer", "shorter"],
)
def test_a_foreign_file_is_not_written(scope: Any, tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(SaveError, match=why):
        write_rows(scope, [OWN], str(tmp_path), ["w"])
    assert (tmp_path / "w").read_bytes() == content


def test_a_server_creates_no_files_and_follows_no_links(scope: Any, begun: Path) -> None:
    with pytest.raises(SaveError, match="only into a directory that all processes see"):
        write_rows(scope, [OWN], str(begun / "elsewhere"), ["w"])
    assert not (begun / "elsewhere").exists()
    (begun / "w").rename(begun / "target")
    (begun / "w").symlink_to(begun / "target")
    before = (begun / "target").read_bytes()
    with pytest.raises(SaveError):
        write_rows(scope, [OWN], str(begun), ["w"])
    assert (begun / "target").read_bytes() == before


def test_a_shard_goes_into_an_empty_file_only(scope: Any, tmp_path: Path) -> None:
    path = tmp_path / "__lookup_table__" / "t_1"
    path.parent.mkdir()
    path.write_bytes(b"somebody's")
    with pytest.raises(SaveError, match="not empty"):
        write_rows(scope, [SHARD], str(tmp_path), ["__lookup_table__/t_1"])
    assert path.read_bytes() == b"somebody's"


def test_a_name_does_not_lead_out_of_the_directory(scope: Any, begun: Path) -> None:
    (begun / "inside").mkdir()
    slice_ = Slice("../w", "w.block1", HERE, 1, 2, (2, 3), (5, 3), VarType.FP32, Kind.PARAMETER)
    with pytest.raises(StorageError):
        write_rows(scope, [slice_], str(begun / "inside"), ["../w"])


def test_a_variable_without_a_value_is_named(begun: Path) -> None:
    with pytest.raises(NotInitializedError, match=r"'w\.block1' cannot be saved by 127\.0\.0\.1:6174"):
        write_rows(fluid.Scope(), [OWN], str(begun), ["w"])


@pytest.mark.parametrize(
    "after",
    [pytest.param(0, marks=pytest.mark.slow), 1, pytest.param(2, marks=pytest.mark.slow)],
    ids=["before", "first piece", "second piece"],
)
@pytest.mark.parametrize("by_servers", [False, True], ids=["gathered", "by servers"])
def test_a_lost_server_fails_only_the_save(
    tmp_path: Path, monkeypatch: Any, by_servers: bool, after: int
) -> None:
    monkeypatch.setenv("FLAGS_rpc_deadline", "1500")
    with SavingJob(ADAM, servers=2, trainers=1) as job:
        programs, exe = job.trainer(0), fluid.Executor()
        exe.run(programs.startup)
        exe.run(programs.main, feed=perceptron_feeds(0, 0))
        fluid.io.save_persistables(exe, str(tmp_path / "model"), programs.main)
        before = files_of(tmp_path / "model")
        exe.run(programs.main, feed=perceptron_feeds(1, 0))
        server, future = job._serving[1]
        calls: list[str] = []

        def dying(name: str) -> Any:
            done = getattr(Client, name)

            def call(self: Any, *args: Any) -> Any:
                if len(calls) == after:
                    server.close()
                    future.result(timeout=60)
                calls.append(name)
                return done(self, *args)

            return call

        for name in ("save", "stream"):
            monkeypatch.setattr(Client, name, dying(name))
        with pytest.raises(FaultError, match=job.endpoints[1]):
            fluid.io.save_persistables(exe, str(tmp_path / "model"), programs.main, by_servers=by_servers)
        exe.close()
    assert len(calls) > after
    assert files_of(tmp_path / "model") == before
    assert fluid.io.verify(str(tmp_path / "model"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_servers_load_a_combined_file_of_one_process(tmp_path: Path) -> None:
    with SavingJob(MOMENTUM, trainers=1) as job:
        (losses,) = job.go(perceptron_feeds, 0, 4, save=(2, tmp_path / "model"))
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        MOMENTUM.optimizer().minimize(MOMENTUM.build())
    exe = fluid.Executor()
    fluid.io.load_persistables(exe, str(tmp_path / "model"), main)
    fluid.io.save_persistables(exe, str(tmp_path / "one"), main, filename="all")
    with SavingJob(MOMENTUM, servers=3, trainers=1, loaded=tmp_path / "one", filename="all") as job:
        (again,) = job.go(perceptron_feeds, 2, 4)
    assert again == losses[2:]
    shutil.copy(tmp_path / "one" / "all", tmp_path / "bare")
    job = SavingJob(MOMENTUM, servers=3, loaded=tmp_path, filename="bare")
    with pytest.raises(LoadError, match="stores no names"):
        job.serve(job.endpoints[0])
