"""Gradients are checked against the server's table before they travel, and merged by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.core import SelectedRows, VarType
from paddlelike.distributed.client.outbox import fit_gradient, outbox_parts, row_counts
from paddlelike.distributed.placement import Entry, Kind, rows_at, values_at
from paddlelike.errors import GraphError

DENSE = Entry(0, "w@GRAD", Kind.GRADIENT, (3, 2), VarType.FP32)
SPARSE = Entry(1, "t@GRAD", Kind.GRADIENT, (9, 2), VarType.FP32)


def fit(entry: Entry, value: Any) -> Any:
    return fit_gradient(entry, entry.name, value, "a:1")


def test_a_gradient_with_strides_becomes_contiguous() -> None:
    value = np.arange(6, dtype="float32").reshape(2, 3).T
    found = fit(DENSE, value)
    assert found.flags.c_contiguous
    assert np.array_equal(found, value)


def test_rows_with_the_same_id_are_added() -> None:
    rows = SelectedRows([7, 2, 7], 9, np.array([[1, 1], [2, 2], [3, 3]], "float32"))
    found = fit(SPARSE, rows)
    assert dict(zip(found.rows(), found.array[:, 0].tolist(), strict=True)) == {7: 4, 2: 2}


def test_an_empty_sparse_gradient_is_sent_as_zero_rows() -> None:
    found = fit(SPARSE, SelectedRows([], 9, None))
    assert (found.rows(), found.array.shape) == ([], (0, 2))


@pytest.mark.parametrize(
    "value",
    [np.zeros((2, 2), "float32"), np.zeros((3, 2)), SelectedRows([0], 4, np.zeros((1, 2), "float32"))],
    ids=["shape", "element type", "height"],
)
def test_a_gradient_of_another_shape_is_refused_with_both_shapes(value: Any) -> None:
    with pytest.raises(GraphError, match=r"'w@GRAD' for the server at a:1: expected float32\[3, 2\], got"):
        fit(DENSE, value)


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in (Kind.GRADIENT, Kind.COUNTER)])
def test_only_gradients_and_counters_are_pushed(kind: Kind) -> None:
    entry = Entry(0, "w", kind, (3, 2), VarType.FP32)
    with pytest.raises(GraphError, match=f"its kind there is {kind}"):
        fit(entry, np.zeros((3, 2), "float32"))


def test_the_parts_of_a_push_match_its_header() -> None:
    outbox = {
        1: fit(SPARSE, SelectedRows([2, 5], 9, np.ones((2, 2), "float32"))),
        0: np.ones((3, 2), "float32"),
    }
    assert row_counts(outbox) == ((1, 2),)
    parts = list(outbox_parts(outbox))
    assert [(part.index, part.offset, len(part.data)) for part in parts] == [
        (values_at(0), 0, 24),
        (rows_at(1), 0, 16),
        (values_at(1), 0, 16),
    ]
    assert np.frombuffer(parts[1].data, np.int64).tolist() == [2, 5]
