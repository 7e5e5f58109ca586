"""Combined files: the real ones, their exact end, and damaged ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from paddlelike.core import LoDTensor
from paddlelike.errors import FormatError
from paddlelike.formats.paddle import combined, lod_tensor
from paddlelike.storage.local.files import File
from paddlelike.testing import FormatContract
from paddlelike.testing.damage import cuts, flips, peak_memory, refuses
from tests.helpers.golden_data import GOLDEN

REAL = sorted(
    path
    for pattern in ("*/combined/*", "*/inference_combined/params", "*/*/combined/*", "**/*.pdiparams")
    for path in GOLDEN.glob(pattern)
)
VALUES = [np.ones(2, "float32"), LoDTensor(np.zeros((3, 1), "int64"), [[0, 1, 3]])]
TWO = b"".join(combined.encode(VALUES))
FIRST = b"".join(lod_tensor.encode(VALUES[0]))


class TestCombinedFile(FormatContract):
    format = combined.CombinedFile()
    golden_values = {"a": np.float32([1, -2]), "b": LoDTensor(np.int64([[1], [2], [3]]), [[0, 1, 3]])}
    golden_files = {
        "": bytes.fromhex(
            "00000000 0000000000000000"  # LoD version, no levels
            "00000000 04000000 0805 1002"  # tensor version, TensorDesc: FP32 [2]
            "0000803f 000000c0"
            "00000000 0100000000000000"  # LoD version, one level
            "1800000000000000 0000000000000000 0100000000000000 0300000000000000"
            "00000000 06000000 0803 1003 1001"  # tensor version, TensorDesc: INT64 [3, 1]
            "0100000000000000 0200000000000000 0300000000000000"
        )
    }


def test_a_combined_file_is_the_concatenation_of_its_streams():
    assert TWO.startswith(FIRST)
    assert lod_tensor.read(TWO[len(FIRST) :]).lod() == [[0, 1, 3]]


@pytest.mark.parametrize("path", REAL, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_a_real_file_is_read_and_written_back(path):
    with File(path) as file:
        values = combined.read(file)
        headers = list(combined.read_headers(file))
    assert b"".join(combined.encode(values)) == path.read_bytes()
    assert [list(header.shape) for header in headers] == [value.shape() for value in values]
    assert headers[-1].end == path.stat().st_size


def test_headers_are_read_one_by_one():
    headers = combined.read_headers(TWO + b"rubbish")
    assert next(headers).shape == (2,)
    assert next(headers).lod == ((0, 1, 3),)
    with pytest.raises(FormatError, match=r"tensor 2 \(counted from 0\).* begins at offset 114"):
        next(headers)


def test_an_empty_file_holds_no_tensor():
    with pytest.raises(FormatError, match="the file is empty"):
        combined.read(b"")


def test_every_header_is_read_before_memory_is_allocated():
    big = b"".join(lod_tensor.encode(np.zeros(1 << 20, "float32"))) + b"\1"

    def read() -> None:
        with pytest.raises(FormatError, match="tensor 1"):
            combined.read(big)

    assert peak_memory(read) < 100_000


def test_a_cut_file_is_a_format_error():
    whole = [cut for cut in cuts(TWO) if not refuses(combined.read, cut)]
    assert whole == [FIRST]  # which is a combined file of one tensor


def test_a_changed_byte_gives_another_value_or_a_format_error():
    for changed in flips(TWO):
        assert refuses(combined.read, changed) or len(combined.read(changed)) <= 2


@given(st.binary(max_size=100))
def test_any_bytes_decode_to_tensors_or_raise_a_format_error(data):
    for stream in (data, TWO + data):
        assert refuses(combined.read, stream) or sum(
            one.held_array.nbytes for one in combined.read(stream)
        ) <= len(stream)
