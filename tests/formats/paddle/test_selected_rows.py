"""Streams of SelectedRows: the golden bytes, the real files, and damaged ones."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from paddlelike.core import SelectedRows
from paddlelike.errors import FormatError
from paddlelike.formats.paddle import selected_rows
from paddlelike.testing.damage import cuts, flips, refuses
from tests.helpers.golden_data import GOLDEN

MANIFEST = json.loads((GOLDEN / "tensors" / "manifest.json").read_text())
NAMES = sorted(name for name in MANIFEST if name.startswith("selected_rows"))

THREE_ROWS = bytes.fromhex(
    "00000000 0300000000000000"  # version, three rows
    "0000000000000000 0400000000000000 0700000000000000 0a00000000000000"  # 0, 4, 7 of 10
    "00000000 06000000 0805 1003 1001"  # tensor version, TensorDesc: FP32 [3, 1]
    "0000803f 00000040 00004040"
)


def dumps(value: SelectedRows) -> bytes:
    return b"".join(selected_rows.encode(value))


def test_three_rows_have_the_bytes_of_paddle():
    value = SelectedRows([0, 4, 7], 10, np.float32([[1], [2], [3]]))
    assert dumps(value) == THREE_ROWS
    read = selected_rows.read(THREE_ROWS)
    assert (read.rows(), read.height(), read.array.tolist()) == ([0, 4, 7], 10, [[1], [2], [3]])


@pytest.mark.parametrize("name", NAMES)
def test_a_real_file_is_read_and_written_back(name):
    data, facts = (GOLDEN / "tensors" / name).read_bytes(), MANIFEST[name]
    value = selected_rows.read(data)
    assert (value.rows(), value.height()) == (facts["rows"], facts["height"])
    assert hashlib.sha256(value.array.tobytes()).hexdigest() == facts["sha256"]
    assert dumps(value) == data


def test_a_table_with_spare_rows_is_read():
    """A parameter server's table names only the rows that were asked for."""
    value = SelectedRows([17, 3], 1001, np.zeros((1001, 8), "float32"))
    header = selected_rows.read_header(dumps(value) + b"more")
    assert (header.row_count, header.height, header.shape, header.surplus) == (2, 1001, (1001, 8), 4)
    assert selected_rows.read(dumps(value)).rows() == [17, 3]


def test_a_negative_height_is_refused():
    with pytest.raises(FormatError, match="offset 36: height -10 is negative"):
        selected_rows.read(dumps(SelectedRows([0, 4, 7], -10, np.zeros((3, 1)))))


def test_a_cut_file_is_a_format_error():
    assert all(refuses(selected_rows.read, cut) for cut in cuts(THREE_ROWS))


def test_a_changed_byte_gives_another_value_or_a_format_error():
    for changed in flips(THREE_ROWS):
        assert refuses(selected_rows.read, changed) or selected_rows.read(changed).array.nbytes < 60


@given(st.binary(max_size=100))
def test_any_bytes_decode_to_rows_or_raise_a_format_error(data):
    for stream in (data, bytes(12) + data):
        assert refuses(selected_rows.read, stream) or selected_rows.read(stream).held_array.nbytes <= len(
            stream
        )
