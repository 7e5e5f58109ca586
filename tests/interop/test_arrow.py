"""Rows as Arrow and Parquet, read by pyarrow alone, and back as deltas of a saved directory."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from paddlelike.cli.app import app
from paddlelike.errors import FormatError, LoadError
from paddlelike.interop.arrow import export_rows, import_rows
from paddlelike.io.deltas.chain import list_chains
from paddlelike.storage.location import locate
from tests.io.deltas import tables
from tests.io.deltas.test_growing_tables import Training

pytestmark = pytest.mark.slow  # the extra arrow is in test-all
pa = pytest.importorskip("pyarrow", reason="the extra arrow is not installed")


def read_table(path: Path) -> Any:
    """A file as pyarrow reads it."""
    import pyarrow.feather
    import pyarrow.parquet

    return (pyarrow.parquet if path.suffix == ".parquet" else pyarrow.feather).read_table(str(path))


def write_table(path: Path, **columns: Any) -> None:
    """A file of another program."""
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table(columns), str(path))


def rows_of(job: Any, name: str = "emb") -> dict[int, bytes]:
    """The bytes of rows by id in a scope."""
    value = job.scope.find_var(name).value
    return {i: row.tobytes() for i, row in zip(value.rows(), np.asarray(value.array), strict=True)}


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_deltas_and_whole_tables_imported_from_arrow_rebuild_the_table(tmp_path: Path, suffix: str) -> None:
    job, first, copy = Training(), tmp_path / "saves", tmp_path / "copy"
    job.step(*(np.arange(200, 3000) * 7919 - (1 << 40)))
    job.save(first, delta=True)
    shutil.copytree(first, copy)
    for step in range(3):
        job.step(*(np.arange(20) * 7919 - (1 << 40)), 5 + step)
        if step == 1:
            job.shrink(threshold=0.15)
        job.save(first, delta=True)
        for name in ("emb", "emb_moment_0"):
            link = len(list_chains(locate(str(first)))[name].records) - 1
            path = tmp_path / f"{name}{step}.{suffix}"
            count = export_rows(first, path, name, link=link)
            table = read_table(path)
            assert table.column_names == ["id", "row", "forgotten"]
            assert len(table) == count
            assert json.loads(table.schema.metadata[b"paddlelike"])["link"]["at"] == link
            import_rows(path, copy)
    export_rows(first, tmp_path / f"whole.{suffix}", "emb")
    held = rows_of(job)
    whole = read_table(tmp_path / f"whole.{suffix}")
    values = np.array(whole["row"].combine_chunks().flatten()).reshape(-1, 16)
    assert {i: v.tobytes() for i, v in zip(whole["id"].to_pylist(), values, strict=True)} == held
    other = Training(0)
    other.load(copy)
    assert rows_of(other) == held
    assert rows_of(other, "emb_moment_0") == rows_of(job, "emb_moment_0")
    assert 2800 < len(held) < 2900


def test_rows_written_by_another_program_are_imported_as_a_delta(tmp_path: Path) -> None:
    job, saves, path = tables.Training(), tmp_path / "saves", tmp_path / "new.parquet"
    job.save(saves, delta=True)
    before = job.values()
    rows = np.full((3, 16), -0.0, "float32")
    rows[0, :2] = np.array([0x7FC00001, 0xFFC12345], "uint32").view("float32")  # NaNs keep their bits
    flat = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 16)
    write_table(path, row=flat, id=pa.array([7, 1999, 0]))
    report = import_rows(path, saves, "emb")
    assert report.written_bytes < 3 * (64 + 8) + 100
    expected = np.frombuffer(before["emb"], "float32").reshape(-1, 16).copy()
    expected[[7, 1999, 0]] = rows
    assert job.loaded(saves) == before | {"emb": expected.tobytes()}


@pytest.mark.parametrize(
    ("columns", "error", "said"),
    [
        ({"id": pa.array([1])}, FormatError, "has the columns id"),
        ({"id": pa.array([1.0]), "row": [16]}, FormatError, "id of double"),
        ({"id": pa.array([1, 1]), "row": [16, 16]}, FormatError, "repeats an id"),
        ({"id": pa.array([1]), "row": [8]}, FormatError, "rows of 8 float32"),
        ({"id": pa.array([2000]), "row": [16]}, LoadError, "outside of 0 to 1999"),
        ({"id": pa.array([3]), "row": [16], "forgotten": pa.array([True])}, LoadError, "forgotten ones"),
    ],
    ids=["no_rows", "floats", "doubled", "narrow", "outside", "forgotten"],
)
def test_files_that_are_not_arrow_rows_are_refused_and_change_nothing(
    columns: dict[str, Any], error: type[Exception], said: str, tmp_path: Path
) -> None:
    job, saves, path = tables.Training(), tmp_path / "saves", tmp_path / "new.parquet"
    job.save(saves, delta=True)
    before = tables.read_files(saves)
    if "row" in columns:
        count, width = len(columns["row"]), columns["row"][0]
        zeros = pa.array(np.zeros(count * width, "float32"))
        columns = columns | {"row": pa.FixedSizeListArray.from_arrays(zeros, width)}
    write_table(path, **columns)
    with pytest.raises(error, match=said):
        import_rows(path, saves, "emb")
    path.write_bytes(b"PAR1 and more")
    with pytest.raises(FormatError, match="not an Arrow or Parquet"):
        import_rows(path, saves, "emb")
    assert tables.read_files(saves) == before


def test_convert_exports_rows_and_imports_them_again(tmp_path: Path) -> None:
    training = tables.Training()
    training.save(tmp_path / "d", delta=True)
    training.step(5, 7)
    training.save(tmp_path / "d", delta=True)
    shutil.copytree(tmp_path / "d", tmp_path / "e")

    def convert(*words: object) -> Any:
        return CliRunner().invoke(app, ["convert", *map(str, words)])

    assert convert(tmp_path / "d", tmp_path / "all.parquet", "--names", "emb").exit_code == 0
    assert convert(tmp_path / "d", tmp_path / "one.arrow", "--names", "emb", "--link", 1).exit_code == 0
    assert (len(read_table(tmp_path / "all.parquet")), len(read_table(tmp_path / "one.arrow"))) == (2000, 2)
    training.step(5, 9)
    training.save(tmp_path / "e", delta=True)
    refused = convert(tmp_path / "all.parquet", tmp_path / "e")
    assert refused.exit_code == 2
    assert "--overwrite" in refused.stderr
    assert convert(tmp_path / "all.parquet", tmp_path / "e", "--overwrite").exit_code == 0
    assert training.loaded(tmp_path / "e")["emb"] == training.loaded(tmp_path / "d")["emb"]
    assert convert(tmp_path / "d", tmp_path / "x.arrow").exit_code == 2  # of which variable?
