"""The advice of errors of Arrow and Parquet files, followed to the letter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.interop.arrow import export_rows, import_rows
from tests.distributed.test_growing_tables import Job as GrowingJob
from tests.hints.advice import Advice
from tests.hints.files.test_files import load, save
from tests.hints.files.test_formats import save_deltas
from tests.io.deltas.tables import HEIGHT

pytestmark = pytest.mark.slow


def export_table(variable: bool) -> Any:
    """Change rows of a saved variable by those of a file, which may name no variable."""
    import pyarrow
    import pyarrow.parquet

    save()
    rows = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(np.array([7.0], "float32")), 1)
    pyarrow.parquet.write_table(pyarrow.table({"id": np.array([1]), "row": rows}), "rows.parquet")
    import_rows("rows.parquet", "m", *(["fc_0.w_0"] if variable else []))
    return load().ravel()


def import_columns(good: bool) -> Any:
    import pyarrow
    import pyarrow.parquet

    save()
    rows = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(np.array([7.0], "float32")), 1)
    names = ("id", "row") if good else ("ids", "rows")
    pyarrow.parquet.write_table(
        pyarrow.table(dict(zip(names, (np.array([1]), rows), strict=True))), "rows.parquet"
    )
    import_rows("rows.parquet", "m", "fc_0.w_0")
    return load().ravel()


def export_link(link: int | None) -> Any:
    save_deltas()
    return export_rows("m", "rows.parquet", "emb", link=link)


def add_row(is_growing: bool) -> Any:
    """Import the row of a new id into a table of a fixed size, or into one that grows; return its value."""
    import pyarrow
    import pyarrow.parquet

    job = GrowingJob(lambda: fluid.optimizer.SGD(0.1))
    job.train(1)
    with fluid.scope_guard(job.scope):
        fluid.io.save_persistables(job.exe, "grown", job.main)
    save()
    width = 4 if is_growing else 1
    rows = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(np.full(width, 7, "float32")), width)
    pyarrow.parquet.write_table(pyarrow.table({"id": np.array([99]), "row": rows}), "rows.parquet")
    if not is_growing:
        return import_rows("rows.parquet", "m", "fc_0.w_0")
    import_rows("rows.parquet", "grown", "emb")
    with fluid.scope_guard(job.scope):
        fluid.io.load_persistables(job.exe, "grown", job.main)
    return job.look_up([99] * 3).ravel()[:4]


ARROW: dict[str, Advice] = {
    "an id beyond the table": Advice(
        lambda: add_row(is_growing=False),
        "use a growing table (sparse_embedding), which takes any ids",
        lambda: add_row(is_growing=True),
        [7.0] * 4,
    ),
    "rows of no variable": Advice(
        lambda: export_table(variable=False),
        "pass variable=",
        lambda: export_table(variable=True),
        [2.0, 7.0, 2.0, 2.0],
    ),
    "columns of other names": Advice(
        lambda: import_columns(good=False),
        "expected id (int64), row (a list of fixed size) and, for removed ids, forgotten (bool)",
        lambda: import_columns(good=True),
        [2.0, 7.0, 2.0, 2.0],
    ),
    "a link that is not there": Advice(
        lambda: export_link(9),
        "link=None exports all rows; a chain starts again when it would cost more than it saves",
        lambda: export_link(None),
        HEIGHT,
    ),
}


@pytest.mark.parametrize("advice", ARROW.values(), ids=ARROW)
def test_following_a_hint_of_arrow_files_gives_the_right_result(advice: Advice) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is in the extra 'test-all'")
    advice.follow()
