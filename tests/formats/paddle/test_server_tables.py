"""Tables of Paddle 2.6.2's parameter servers: what its own servers saved, and what they look up in it."""

from __future__ import annotations

import base64
import functools
import gzip
import json
import lzma
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import SelectedRows
from paddlelike.distributed import growing_tables as tables
from paddlelike.errors import FormatError, LoadError, SaveError
from paddlelike.formats.paddle.server_tables import ServerTables
from paddlelike.inspection.diagnosis import diagnose
from paddlelike.inspection.inspect import inspect
from paddlelike.interop.arrow import export_rows
from paddlelike.testing.formats import MemoryFolder

_GOLDEN = Path(__file__).parents[2] / "golden" / "server_tables262.json.xz"
_DUMP = Path(__file__).parents[2] / "interop" / "dumps" / "dump_server_tables.py"
_RULES = ("two", "naive", "adagrad", "std", "shared")
_OPTIMIZERS: Any = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1),
    "adam": lambda: fluid.optimizer.Adam(0.1, lazy_mode=True),
}


@functools.cache
def _cases() -> dict[str, Any]:
    cases: dict[str, Any] = json.loads(lzma.decompress(_GOLDEN.read_bytes()))
    for case in cases.values():
        case["files"] = {name: base64.b64decode(data) for name, data in case["files"].items()}
    return cases


def _unpack(case: str, target: Path) -> str:
    for name, data in _cases()[case]["files"].items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(data)
    return str(target)


def _rows(value: Any, ids: Any) -> Any:
    places = value.find_rows(np.asarray(ids))
    assert (places >= 0).all()
    return np.asarray(value.held_array)[places]


class Job:
    """A network on a table of width 4."""

    def __init__(self, optimizer: str) -> None:
        self.main, startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.exe = fluid.Executor()
        start = fluid.ParamAttr(name="emb", initializer=fluid.initializer.Uniform(-1.0, 1.0))
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            ids = fluid.data("ids", [None, 1], "int64")
            self.found = tables.sparse_embedding(ids, [1, 4], param_attr=start)
            self.test = self.main.clone(for_test=True)
            self.loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(self.found, 1)))
            _OPTIMIZERS[optimizer]().minimize(self.loss)
        self.run(startup)

    def run(self, program: fluid.Program, *fetch: Any, **feed: Any) -> Any:
        with fluid.scope_guard(self.scope):
            return self.exe.run(program, feed=feed, fetch_list=list(fetch))

    def train(self) -> None:
        for ids in ([3, 1 << 62, -1], [3, 12, 0], [-(1 << 63), (1 << 63) - 1, 12]):
            self.run(self.main, self.loss, ids=np.array(ids).reshape(-1, 1))

    def look_up(self, ids: Any) -> Any:
        return self.run(self.test, self.found, ids=np.asarray(ids, np.int64).reshape(-1, 1))[0]

    def call(self, function: Any, *args: Any, **how: Any) -> Any:
        with fluid.scope_guard(self.scope):
            return function(self.exe, "emb", *args, program=self.main, **how)


@pytest.mark.parametrize("case", _RULES)
def test_table_rows_match_the_rows_returned_by_servers(case: str) -> None:
    folder, seen = MemoryFolder(_cases()[case]["files"]), _cases()[case]["looked_up"]
    read = ServerTables(width=4).read_all(folder)
    np.testing.assert_array_equal(_rows(read["000"], seen["ids"]), np.float32(seen["rows"]))
    assert read["000_counts"].held_array.shape == (8, 3)  # type: ignore[union-attr]


def test_state_follows_its_rule_and_short_rows_and_plain_deltas_are_read() -> None:
    """Adam's powers are those of the betas; a row below embedx_threshold has only its first number."""
    read = {case: ServerTables(width=4).read_all(MemoryFolder(_cases()[case]["files"])) for case in _cases()}
    for case in ("two", "shared", "click"):
        first, second = np.split(
            read[case]["000_beta_pows"].held_array.astype(float).reshape(-1, 2), 2, axis=1
        )  # type: ignore[union-attr]
        count = np.rint(np.log(first) / np.log(0.9))
        np.testing.assert_allclose(second, 0.999**count, rtol=1e-5)
    ids, clicked = read["click"]["000"].row_array, read["click"]["000_counts"].held_array  # type: ignore[union-attr]
    assert clicked[list(ids).index(5497558138887)].tolist() == [22, 14, 0]  # type: ignore[index]
    assert {name for name in _cases()["mode1"]["files"] if name.startswith("000/part")} == {
        f"000/part-000-0000{index}" for index in range(4)
    }
    assert read["mode1"]["000"].held_array.shape == (8, 4)  # type: ignore[union-attr]
    line = b"7 0 0 0.1 1 0 0.5 0.1 0.2 0.9 0.999\n"
    long = b"8 0 0 0.1 1 0 1" + b" 0.1 0.2 0.9 0.999 2 3 4" + b" 1" * 6 + b" 0.9 0.999\n"
    short = ServerTables(width=4).read_all(MemoryFolder({"part-000-00000": line + long}))
    np.testing.assert_array_equal(short["table"].held_array, np.float32([[0.5, 0, 0, 0], [1, 2, 3, 4]]))


@pytest.mark.parametrize("case", ["two", "naive", "std"])
def test_a_program_loads_the_tables_that_the_servers_saved(case: str, tmp_path: Path) -> None:
    job = Job({"two": "adam", "naive": "sgd", "std": "adagrad"}[case])
    path, seen = _unpack(case, tmp_path / "saved"), _cases()[case]["looked_up"]
    if case == "two":
        with pytest.warns(UserWarning, match="_beta_pows of 'emb' is only in the file"):
            job.call(tables.load_one_table, path)
    else:
        job.call(tables.load_one_table, path + "/000")
    np.testing.assert_array_equal(job.look_up(seen["ids"]), np.float32(seen["rows"]))
    assert [one.name for one in tmp_path.iterdir()] == ["saved"]
    job.train()  # the rows that came are trained on


def test_inspect_doctor_and_convert_accept_server_tables(tmp_path: Path) -> None:
    path = _unpack("two", tmp_path / "saved")
    found = inspect(path)
    assert found
    assert found.title == ServerTables.title
    assert [one.name for one in found.variables][:2] == ["000", "000_moment1_0"]
    told = diagnose(path)
    assert told
    assert not any("gzip" in finding.what for finding in told.findings)
    assert any("load_one_table" in call for _, call in told.calls)
    assert any("shard_num is 4" in call for _, call in told.calls)
    report = fluid.convert(path, tmp_path / "ours")
    assert report
    assert "000_counts" in report.names
    back = fluid.convert(
        tmp_path / "ours", tmp_path / "back", ServerTables(shards=4), rules=fluid.io.Rules().skip("001")
    )
    assert back
    again = ServerTables(width=4).read_all(MemoryFolder(_read_folder(tmp_path / "back")))
    once = ServerTables(width=4).read_all(MemoryFolder(_cases()["two"]["files"]))
    for name in again:
        np.testing.assert_array_equal(
            _rows(again[name], once["000"].row_array),
            _rows(once[name], once["000"].row_array),  # type: ignore[union-attr]
        )


@pytest.mark.slow
def test_rows_become_a_parquet_file(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow.parquet")
    path = _unpack("two", tmp_path / "saved")
    assert export_rows(path, tmp_path / "rows.parquet", "000") == 8
    assert arrow.read_table(tmp_path / "rows.parquet").column_names == ["id", "row", "forgotten"]


def _read_folder(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.name != "__manifest__" and file.is_file()
    }


@pytest.mark.parametrize("optimizer", _OPTIMIZERS)
def test_a_converted_table_keeps_its_bits_and_optimizer_state(optimizer: str, tmp_path: Path) -> None:
    job, other = Job(optimizer), Job(optimizer)
    job.train()
    path = str(tmp_path / "t")
    assert job.call(tables.save_one_table, path, format=ServerTables(shards=5))
    files = _read_folder(tmp_path / "t")
    assert sorted(files) == [f"000/part-000-0000{index}.gz" for index in range(5)]
    ids = [3, 1 << 62, -1, 12, 0, -(1 << 63), (1 << 63) - 1]
    for index in range(5):  # each id, unsigned, is in the shard of its remainder
        text = gzip.decompress(files[f"000/part-000-0000{index}.gz"]).split(b"\n")[:-1]
        assert sorted(int(line.split()[0]) for line in text) == sorted(
            one % (1 << 64) for one in ids if one % (1 << 64) % 5 == index
        )
    if optimizer == "adam":
        with pytest.warns(UserWarning, match="_beta_pows"):
            other.call(tables.load_one_table, path)
    else:
        other.call(tables.load_one_table, path)
    np.testing.assert_array_equal(other.look_up(ids), job.look_up(ids))
    for end in {"sgd": [], "adagrad": ["_moment_0"], "adam": ["_moment1_0", "_moment2_0"]}[optimizer] + [
        "_counts"
    ]:
        mine, theirs = (one.scope.find_var("emb" + end).value for one in (job, other))
        np.testing.assert_array_equal(_rows(mine, ids), _rows(theirs, ids))
    job.call(tables.save_one_table, str(tmp_path / "u"), format=ServerTables(shards=5))
    assert _read_folder(tmp_path / "u") == files


def test_invalid_server_tables_are_refused(tmp_path: Path) -> None:
    good = _cases()["two"]["files"]
    shard = good["000/part-001-00003.gz"]
    for name, data in {
        "cut": shard[:-20],
        "flipped": shard[:60] + bytes([shard[60] ^ 8]) + shard[61:],
        "not numbers": gzip.compress(b"7 0 0 x 1 0 0.5\n"),
        "no id": gzip.compress(b"-7 0 0 0 1 0 0.5\n"),
        "half a line": b"7 0 0 0 1 0 0.5",
        "three lengths": b"7 0 0 0 1 0 1\n8 0 0 0 1 0 1 2\n9 0 0 0 1 0 1 2 3\n",
        "too large": b"18446744073709551616 0 0 0 1 0 1\n",
        "not as wide as others": b"7 0 0 0 1 0 1 2 3\n",
        "twice": b"7 0 0 0 1 0 1\n7 0 0 0 1 0 1\n",
        "long": b"7 0 0 0 1 0 " + b"1" * 200 + b"\n",
    }.items():
        with pytest.raises(FormatError) as error:
            ServerTables(width=4).read_all(MemoryFolder({**good, "000/part-001-00003.gz": data}))
        assert "00" in error.value.message, name
    with pytest.raises(FormatError, match="expected 24 or 18 or 12 or 15 or 10 for rows of width 5"):
        ServerTables(width=5).read_all(MemoryFolder(good))
    for table in ("000", "002", "003"):
        (tmp_path / table).mkdir()
        (tmp_path / table / "part-000-00000.gz").write_bytes(good["000/part-001-00003.gz"])
    with pytest.raises(LoadError, match="holds the tables 000, 002, 003, the program emb"):
        Job("adam").call(tables.load_one_table, str(tmp_path))
    values = {"emb": SelectedRows([1], 9, np.ones((1, 2), "float32")), "w": np.ones(2, "float32")}
    values["emb_counts"] = SelectedRows([1], 9, np.ones((1, 3), "float32"))
    with pytest.raises(FormatError, match="not w"):
        ServerTables().write(values)


def _table(name: str, ids: Any, rows: Any) -> dict[str, Any]:
    counts = SelectedRows(ids, 9, np.ones((len(ids), 3), "float32"))
    return {name: SelectedRows(ids, 9, np.float32(rows)), f"{name}_counts": counts}


def _write(form: ServerTables, values: Any) -> MemoryFolder:
    return MemoryFolder({name: b"".join(data) for name, data in form.write(values).items()})


def test_a_numeric_table_name_does_not_collide_with_numbered_folders() -> None:
    values = {**_table("001", [1], [[1, 2]]), **_table("emb", [2], [[3, 4]]), **_table("more", [3], [[5, 6]])}
    read = ServerTables(width=2).read_all(_write(ServerTables(shards=2), values))
    found = {name: read[name].held_array.tolist() for name in ("000", "001", "002")}  # type: ignore[union-attr]
    assert found == {"000": [[3, 4]], "001": [[1, 2]], "002": [[5, 6]]}


@pytest.mark.parametrize("width", [None, 4])
def test_a_table_without_rows_is_read(width: int | None, tmp_path: Path) -> None:
    folder = _write(ServerTables(shards=2), _table("emb", [], np.zeros((0, 4))))
    read = ServerTables(width=width).read_all(folder)
    shapes = {name: value.held_array.shape for name, value in read.items()}  # type: ignore[union-attr]
    assert shapes == {"000": (0, width or 0), "000_counts": (0, 3), "000_stats": (0, 2)}
    job = Job("sgd")
    job.call(tables.save_one_table, str(tmp_path / "t"), format=ServerTables(shards=2))
    job.call(tables.load_one_table, str(tmp_path / "t"))
    assert job.scope.find_var("emb").get_selected_rows().rows() == []


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (_table("emb", [1, 1], [[1, 2], [3, 4]]), "'emb' has an id twice"),
        (_table("emb", [1], np.zeros((1, 0))), r"'emb' has rows of the shape \[0\]"),
        (_table("emb", [1], np.zeros((1, 2, 2))), r"'emb' has rows of the shape \[2, 2\]"),
        (
            _table("emb", [1], [[1]]) | {"emb_stats": SelectedRows([1], 9, np.ones((1, 4), "float32"))},
            "2 numb",
        ),
        (_table("emb", [1], [[1]]) | {"emb_stats": np.ones(3, "float32")}, "has 3 numbers, not 2"),
    ],
)
def test_values_other_than_tables_are_refused(values: Any, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        ServerTables().write(values)


@pytest.mark.parametrize("how", [{"width": 0}, {"shards": 0}, {"shards": -1}])
def test_a_width_or_a_number_of_shards_below_one_is_refused(how: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        ServerTables(**how)


def test_lines_of_a_dense_table_must_have_equal_lengths() -> None:
    for files in ({"001/part-000": b"1 2\n4\n"}, {"001/part-000": b"1 2\n", "001/part-001": b"4\n"}):
        with pytest.raises(FormatError, match="lines"):
            ServerTables().read_all(MemoryFolder(files))


def test_a_table_is_not_saved_beside_shards_that_would_be_read_with_it(tmp_path: Path) -> None:
    job, target = Job("sgd"), tmp_path / "t"
    job.train()
    job.call(tables.save_one_table, str(target), format=ServerTables(shards=3))
    before = _read_folder(target)
    with pytest.raises(SaveError, match=r"the target has 000/part-000-00002\.gz of another save"):
        job.call(tables.save_one_table, str(target), format=ServerTables(shards=2))
    assert _read_folder(target) == before
    job.call(tables.save_one_table, str(target), format=ServerTables(shards=3))
    job.call(tables.load_one_table, str(target))


def test_a_table_is_loaded_from_a_folder_without_write_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job("sgd")
    job.train()
    job.call(tables.save_one_table, str(tmp_path / "t"), format=ServerTables(shards=2))
    made: list[object] = []
    create = tempfile.mkdtemp
    monkeypatch.setattr(tempfile, "mkdtemp", lambda *how: made.append(how[-1]) or create(*how))
    job.call(tables.load_one_table, str(tmp_path / "t"))
    assert made == [None]  # the system's


@pytest.mark.slow
def test_real_servers_look_up_the_saved_rows(tmp_path: Path) -> None:
    python = os.environ.get("PADDLELIKE_PADDLE262_PYTHON")
    if not python:
        pytest.skip("PADDLELIKE_PADDLE262_PYTHON names no interpreter of Paddle 2.6.2")
    job, seen = Job("adam"), _cases()["two"]["looked_up"]["ids"]
    job.run(job.main, job.loss, ids=np.array(seen).reshape(-1, 1))
    job.call(tables.save_one_table, str(tmp_path / "t"), format=ServerTables(shards=4))
    command = [python, str(_DUMP), str(tmp_path / "no"), "-", "2", "0", str(tmp_path / "t")]
    env = os.environ | {"PYTHONPATH": os.environ.get("PADDLELIKE_PADDLE262_PATH", "")}
    told = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env, check=False)
    (line,) = [line for line in told.stdout.splitlines() if line.startswith('{"ids"')]
    np.testing.assert_array_equal(np.float32(json.loads(line)["rows"]), job.look_up(seen))
