"""Directories of variables: real ones, and files that are not variables."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.core import LoDTensor, SelectedRows, VarType
from paddlelike.errors import FormatError
from paddlelike.formats.paddle import lod_tensor
from paddlelike.formats.paddle.directory import VariableDirectory, encode_value
from paddlelike.storage.location import LocalDirectory
from paddlelike.testing.formats import FormatContract, MemoryFolder
from tests.helpers.golden_data import GOLDEN

W = bytes.fromhex("00000000 0000000000000000 00000000 04000000 0805 1002 0000803f 000000c0")


class TestVariableDirectory(FormatContract):
    format = VariableDirectory()
    golden_values = {"fc_0.w_0": np.float32([1, -2]), "tables/emb": SelectedRows([4], 9, np.float64([[3]]))}
    golden_files = {
        "fc_0.w_0": W,
        "tables/emb": bytes.fromhex(
            "00000000 0100000000000000 0400000000000000 0900000000000000"  # version, one row: 4 of 9
            "00000000 06000000 0806 1001 1001"  # tensor version, TensorDesc: FP64 [1, 1]
            "0000000000000840"
        ),
    }


@pytest.mark.parametrize("network", ["fit_a_line", "mnist_conv_bn", "sentiment_lstm", "word2vec_shared"])
def test_a_real_directory_is_read_and_written_back(network: str) -> None:
    home = GOLDEN / network / "persistables"
    values = VariableDirectory().read_all(LocalDirectory(home))
    assert len(values) >= 3
    for name, buffers in VariableDirectory().write(values).items():
        assert b"".join(buffers) == (home / name).read_bytes(), name


def test_programs_and_the_manifest_are_not_variables() -> None:
    folder = MemoryFolder({"__model__": b"\n\x10", "__manifest__": W, "w": W})
    assert [entry.name for entry in VariableDirectory().entries(folder)] == ["w"]
    assert not VariableDirectory().sniff(MemoryFolder({"__model__": b"\n\x10", "__manifest__": W}))


def test_the_expected_kind_decides_how_a_file_is_read() -> None:
    rows = b"".join(encode_value(SelectedRows([4], 9, np.ones((1, 1)))))
    assert VariableDirectory().read_entry("w", rows).kind == VarType.SELECTED_ROWS
    with pytest.raises(FormatError, match="this is a SelectedRows stream"):
        VariableDirectory().read_entry("w", rows, VarType.LOD_TENSOR)
    with pytest.raises(FormatError, match="this is a dense tensor"):
        VariableDirectory().read_entry("w", W, VarType.SELECTED_ROWS)


@pytest.mark.parametrize(
    "value",
    [np.ones((2, 3)), LoDTensor(np.ones((2, 3))), LoDTensor(np.ones((3, 1)), [[0, 1, 3]])],
    ids=["array", "tensor", "sequences"],
)
def test_cached_headers_match_the_headers_in_the_file(value) -> None:
    assert b"".join(encode_value(value)) == b"".join(lod_tensor.encode(value))


def test_a_file_that_is_not_a_variable_is_named_by_its_kind() -> None:
    with pytest.raises(FormatError, match="this is a PNG image"):
        VariableDirectory().entries(MemoryFolder({"loss.png": b"\x89PNG\r\n\x1a\n" + bytes(20)}))
