"""What loads and saves take: each server only its own rows, trainer 0 only a piece of what it gathers."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import VarType
from paddlelike.distributed.checkpoint.gather import Gathering, gather_files
from paddlelike.distributed.client.receivers import Sink
from paddlelike.distributed.placement import Kind, Placement, Slice
from paddlelike.storage.local.manifest_file import read_manifest
from paddlelike.storage.local.transaction import Transaction
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.checkpoint.test_resume import ADAM
from tests.distributed.jobs import Network, perceptron_feeds, sgd
from tests.io.load.reads import counting_reads, needs_read_counts

MB = 1 << 20


@needs_read_counts
@pytest.mark.parametrize("in_place", [False, True])
def test_a_server_reads_its_own_rows_and_headers_only(tmp_path: Path, in_place: bool) -> None:
    """Where nothing is compared; else the pieces of the checksums, of a megabyte each, that have its rows."""
    with SavingJob(ADAM, servers=2, trainers=1) as job:
        job.go(perceptron_feeds, 0, 1, save=(0, tmp_path / "model"))
    manifest = (tmp_path / "model" / "__manifest__").stat().st_size
    job = SavingJob(ADAM, servers=4)
    for endpoint in job.endpoints:
        programs = job.server(endpoint)
        slices = programs.main._parameters_on_pservers.on(endpoint)
        with fluid.scope_guard(fluid.Scope()):
            exe = fluid.Executor()
            exe.run(programs.startup)
            with counting_reads() as count:
                fluid.io.load_persistables(
                    exe, str(tmp_path / "model"), programs.main, in_place=in_place, verify=False
                )
                read = count()
        own = sum(one.nbytes for one in slices)
        files = len({one.origin for one in slices})
        assert own <= read
        assert read <= own + files * 4097 + 2 * manifest + 4096
    whole = sum(path.stat().st_size for path in (tmp_path / "model").iterdir())
    assert own < whole / 3  # so the bound above means something


def tall() -> Any:
    """1300 -> 2000 -> 1: the first weight has 10 MB."""
    x = fluid.data(name="x", shape=[None, 1300], dtype="float32")
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    out = fluid.layers.fc(input=fluid.layers.fc(input=x, size=2000), size=1)
    return fluid.layers.mean(fluid.layers.square_error_cost(input=out, label=y))


@needs_read_counts
def test_a_server_compares_only_the_pieces_of_its_own_rows(tmp_path: Path) -> None:
    network = Network(tall, sgd)
    feed = {"x": np.zeros((2, 1300), "float32"), "y": np.zeros((2, 1), "float32")}
    with SavingJob(network, servers=4, trainers=1) as job:
        job.go(lambda step, trainer: feed, 0, 1, save=(0, tmp_path / "model"))
    for endpoint in job.endpoints:
        programs, exe = job.server(endpoint), fluid.Executor()
        own = sum(one.nbytes for one in programs.main._parameters_on_pservers.on(endpoint))
        with fluid.scope_guard(fluid.Scope()):
            exe.run(programs.startup)
            with counting_reads() as count:
                report = fluid.io.load_persistables(exe, str(tmp_path / "model"), programs.main)
                read = count()
        assert report.verified
        assert own <= read <= own + 3 * MB + 64 * 1024  # the pieces at both ends, and the first one


class Rows:
    """Servers whose variables cost nothing: every row is its number."""

    def pull(self, wanted: Sequence[tuple[str, str]]) -> list[Any]:
        raise AssertionError("a large variable is not fetched whole")

    def row_ids(self, wanted: tuple[str, str]) -> Any:
        raise AssertionError("there is no table")

    def save(self, directory: str, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        raise AssertionError("nobody asked the servers to write")

    def stream(self, wanted: tuple[str, str], sink: Callable[[], Sink]) -> None:
        first = 32 * MB * int(wanted[1][-1])
        for attempt in range(2):  # the first call breaks off
            into = sink()
            for at in range(0, (32 if attempt else 9) * MB, MB):
                into.place(0, at, MB)[:] = np.full(MB // 4, (first + at) // MB, "<f4").tobytes()
        into.check()


@pytest.mark.parametrize("checksum", ["xxh3_128", "sha256"])
def test_gathering_a_variable_takes_the_memory_of_a_piece(tmp_path: Path, checksum: Any) -> None:
    """64 MB on two servers; a call that is repeated counts once, in the file and in its checksum."""
    shape, whole = (32 * 1024, 256), (64 * 1024, 256)
    slices = [
        Slice(
            "w", f"w.block{n}", f"127.0.0.1:{n}", n, n * shape[0], shape, whole, VarType.FP32, Kind.OPTIMIZER
        )
        for n in range(2)
    ]
    table = Placement(slices, endpoints=["127.0.0.1:0", "127.0.0.1:1"])
    tracemalloc.start()
    try:
        with Transaction(tmp_path / "model", checksum=checksum) as transaction:
            for extra in gather_files(Rows(), table, ["w"], Gathering(checksum)):
                transaction.add(extra.name, extra.buffers, extra.facts)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12 * MB
    assert fluid.io.verify(str(tmp_path / "model"))
    rows = fluid.io.load_slice(str(tmp_path / "model"), "w", (0, 64 * 1024)).reshape(64, -1)
    assert np.array_equal(rows[:, 0], np.arange(64))
    assert np.array_equal(rows[:, -1], np.arange(64))
    manifest = read_manifest(tmp_path / "model")
    assert manifest is not None
    assert len(manifest.files["w"].pieces) == (65 if checksum == "xxh3_128" else 0)  # a header and 64 MiB
