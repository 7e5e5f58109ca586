"""The words for files that are not tensors."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import paddlelike as fluid
from paddlelike import inspection
from paddlelike.core import SelectedRows
from paddlelike.errors import FormatError, MissingFileError, PaddlelikeError
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
    "empty zip": (b"PK\x05\x06" + bytes(18), "an empty zip archive"),
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
    "index": (b'{"metadata": {"total_size": 8}, "weight_map": {"w": "a.safetensors"}}', "convert its folder"),
    "json": (json.dumps({"a": [1]}).encode(), "JSON text"),
    "pir": (json.dumps({"base_code": {"magic": "pir"}}).encode(), r"Paddle 3 \(PIR"),
    "vocabulary": (b"[PAD]\n[UNK]\n[CLS]\n", "a vocabulary"),
    "text": ("# Größen\nread me\n".encode() * 80, "plain text"),
    "gguf": (b"GGUF\3\0\0\0\1\0\0\0", "GGUF .*GGUFReader"),
    "mxnet": (bytes.fromhex("1201000000000000") + bytes(8) + b"\2" + bytes(7), "MXNet: mxnet.nd.load"),
    "mxnet network": (b'{\n  "nodes": [\n    {\n      "op": "null"', "a network of MXNet"),
    "cntk 1": ("BCN\0BVersion\0".encode("utf-16-le"), "a model of CNTK 1: CNTK 2 opens it"),
    "tflite": (b"\x1c\0\0\0TFL3\x14\0\x20\0", "TensorFlow Lite"),
    "checkpoint of tensorflow": (
        bytes.fromhex("00000608011a0208010013"),
        "TensorFlow: tf.train.load_checkpoint",
    ),
    "saved model": (bytes.fromhex("0801128f640ade0d12ae0d0a440a0541"), "a SavedModel of TensorFlow"),
    "orbax": (bytes.fromhex("0cdb3a2a7100000000000000"), "Orbax: orbax.checkpoint"),
    "empty": (b"", "the file is empty"),
    "cut": (STREAM[:40], "a tensor that was cut"),
    "cut in the header": (bytes(10), "a tensor that was cut"),
    "out of step": (STREAM[-200:], "the middle of a combined file"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_read_error_names_the_kind_of_the_file(name):
    data, words = FILES[name]
    data = data if isinstance(data, bytes) else pickle.dumps(data, 2)
    with pytest.raises(FormatError, match=words) as caught:
        lod_tensor.read(data)
    assert caught.value.hint is not None


DIRECTORIES = {
    "SavedModel of TensorFlow": ["saved_model.pb", "variables/variables.index"],
    "checkpoint of TensorFlow": ["checkpoint", "m.ckpt-7.data-00000-of-00001", "m.ckpt-7.index"],
    "checkpoint of Orbax": ["_CHECKPOINT_METADATA", "manifest.ocdbt", "d/99eb"],
    "checkpoint of torch.distributed": [".metadata", "__0_0.distcp"],
    "model of MXNet": ["m-0000.params", "m-symbol.json"],
}


@pytest.mark.parametrize("what", DIRECTORIES)
def test_every_load_function_names_the_system_that_wrote_a_directory(what: str, tmp_path: Path) -> None:
    for name in DIRECTORIES[what]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"\x80\4of another system")
    where, exe = str(tmp_path), fluid.Executor()
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        fluid.layers.fc(fluid.data("x", [None, 2]), 2)
        for door in (
            lambda: fluid.convert(where, where + "/a.npz"),
            lambda: fluid.load_program_state(where),
            lambda: fluid.io.load_inference_model(where, exe),
            lambda: fluid.io.load_persistables(exe, where),
        ):
            with pytest.raises(PaddlelikeError) as caught:
                door()
            assert f"this is a {what}: " in str(caught.value)
    assert not inspection.inspect(where)
    assert inspection.inspect(where).title.startswith(f"this is a {what}: ")
    assert [finding.what.partition(": ")[2] for finding in inspection.diagnose(where).findings[:1]] == [
        f"a {what}"
    ]


def test_a_prefix_of_a_checkpoint_of_tensorflow_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.ckpt-7.data-00000-of-00001").write_bytes(bytes(8))
    for door in (
        inspection.inspect,
        fluid.load_program_state,
        lambda path: fluid.convert(path, path + ".npz"),
    ):
        with pytest.raises(MissingFileError, match=r"this is a checkpoint of TensorFlow"):
            door(str(tmp_path / "m.ckpt-7"))


def test_file_headers_known_from_error_messages_of_paddle_are_explained():
    """The four bytes behind its errors: 1904018048, 2492793984, 1145131099, 1196314761."""
    said = [
        explain(number.to_bytes(4, "little") + b"...", 5000)
        for number in (1904018048, 2492793984, 1145131099, 1196314761)
    ]
    assert [text.split(":")[0].split(",")[0] for text in said] == [
        "this is a pickle", "this is a pickle", "this is plain text", "this is a PNG image",
    ]  # fmt: skip


def test_reading_selected_rows_as_a_tensor_or_the_reverse_is_explained():
    rows = b"".join(selected_rows.encode(SelectedRows([0, 4], 9, np.zeros((2, 3)))))
    with pytest.raises(FormatError, match="this is a SelectedRows stream"):
        lod_tensor.read(rows)
    with pytest.raises(FormatError, match="this is a dense tensor"):
        selected_rows.read(STREAM)


def test_unknown_bytes_are_not_described():
    assert explain(bytes(range(160, 240)), 5000) is None


@given(st.binary(max_size=HEAD), st.integers(0, 5000))
def test_an_explanation_never_fails(head, size):
    for asked in ("dense", "rows", None):
        told = explain(head, size, asked)
        assert told is None or told
