"""The words for files that are not tensors."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import tarfile
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlelike.core.tensor import SelectedRows
from paddlelike.errors import FormatError
from paddlelike.formats.explain import HEAD, explain
from paddlelike.formats.paddle import lod_tensor, selected_rows
from tests.helpers.golden_data import GOLDEN


def archive() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("fc_0.w_0"))
    return file.getvalue()


def zipped(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr(name, b"")
    return file.getvalue()


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


SAFETENSORS = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
STREAM = b"".join(lod_tensor.encode(np.random.RandomState(0).randn(8, 8).astype("float32")))

FILES = {
    "pickle 2": ({"w": 1}, "a pickle, as fluid.save writes"),
    "pickle 4": (pickle.dumps({"w": np.zeros(300)}, 4), "a pickle, as fluid.save writes"),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(20), "a PNG image"),
    "jpeg": (b"\xff\xd8\xff\xe0" + bytes(20), "a JPEG image"),
    "zip": (zipped("net/readme.txt"), "a zip archive"),
    "npz": (zipped("w.npy"), "an npz file"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(20), "an HDF5 file"),
    "safetensors": (len(SAFETENSORS).to_bytes(8, "little") + SAFETENSORS + bytes(8), "safetensors"),
    "program": ((GOLDEN / "fit_a_line/inference/__model__").read_bytes(), "a program .__model__"),
    "onnx": (b"\x08\x07\x12\x07pytorch\x1a\x051.9.0", "an ONNX model"),
    "npy": (npy(), "a .npy array"),
    "gzip": (gzip.compress(b"x"), "a gzip archive"),
    "tar": (archive(), "a tar archive"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a", "git lfs pull"),
    "html": (b"\n<!DOCTYPE html><html>", "a web page"),
    "index": (b'{"metadata": {"total_size": 8}, "weight_map": {"w": "a.safetensors"}}', "name the folder"),
    "json": (json.dumps({"a": [1]}).encode(), "JSON text"),
    "pir": (json.dumps({"base_code": {"magic": "pir"}}).encode(), r"Paddle 3 \(PIR"),
    "vocabulary": (b"[PAD]\n[UNK]\n[CLS]\n", "a vocabulary"),
    "text": ("# Größen\nread me\n".encode() * 80, "plain text"),
    "empty": (b"", "the file is empty"),
    "cut": (STREAM[:40], "a tensor that was cut"),
    "cut in the header": (bytes(10), "a tensor that was cut"),
    "out of step": (STREAM[-200:], "the middle of a combined file"),
}


@pytest.mark.parametrize("name", FILES)
def test_an_error_says_what_a_file_is(name):
    data, words = FILES[name]
    data = data if isinstance(data, bytes) else pickle.dumps(data, 2)
    with pytest.raises(FormatError, match=words) as caught:
        lod_tensor.read(data)
    assert caught.value.hint is not None


def test_the_numbers_that_users_of_paddle_saw():
    """The four bytes behind its errors: 1904018048, 2492793984, 1145131099, 1196314761."""
    said = [
        explain(number.to_bytes(4, "little") + b"...", 5000)
        for number in (1904018048, 2492793984, 1145131099, 1196314761)
    ]
    assert [text.split(":")[0].split(",")[0] for text in said] == [
        "this is a pickle", "this is a pickle", "this is plain text", "this is a PNG image",
    ]  # fmt: skip


def test_rows_read_as_a_dense_tensor_and_the_reverse():
    rows = b"".join(selected_rows.encode(SelectedRows([0, 4], 9, np.zeros((2, 3)))))
    with pytest.raises(FormatError, match="this is a SelectedRows stream"):
        lod_tensor.read(rows)
    with pytest.raises(FormatError, match="this is a dense tensor"):
        selected_rows.read(STREAM)


def test_nothing_is_said_of_unknown_bytes():
    assert explain(bytes(range(160, 240)), 5000) is None


@given(st.binary(max_size=HEAD), st.integers(0, 5000))
def test_an_explanation_never_fails(head, size):
    for asked in ("dense", "rows", None):
        told = explain(head, size, asked)
        assert told is None or told
