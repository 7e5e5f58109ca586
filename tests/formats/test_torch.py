"""PyTorch's files, read and written without PyTorch."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlelike.errors import FormatError
from paddlelike.formats import torch
from paddlelike.formats.torch import Torch
from paddlelike.testing import FormatContract

GOLDEN = Path(__file__).parent.parent / "golden" / "torch"
VALUES = {"w": np.float32([1, -2])}


class TestTorch(FormatContract):
    format = Torch()
    golden_values = VALUES
    golden_files = {
        "": b"".join(Torch().write(VALUES))
    }  # PyTorch itself reads it: tests/interop/test_torch.py
    memory_per_byte = 256  # objects of zipfile


@pytest.mark.parametrize("name", ["state.pt", "state-legacy.pt"])
def test_a_state_dict_of_pytorch_is_read(name: str) -> None:
    golden = np.load(GOLDEN / "state.npz")
    data = (GOLDEN / name).read_bytes()
    assert Torch().sniff(data[:1024], len(data))
    found = Torch().read_all(data)
    assert found.keys() == set(golden.files)
    for key, value in found.items():
        assert value.array is not None
        same = value.array.view("int16") if key == "dtype.bf16" else value.array
        np.testing.assert_array_equal(same, golden[key], err_msg=key)
        assert (same.dtype, same.shape) == (golden[key].dtype, golden[key].shape), key


def test_strided_views_are_copied_and_contiguous_tensors_are_mapped() -> None:
    data = (GOLDEN / "state.pt").read_bytes()
    entries = {entry.name: entry for entry in Torch().entries(data)}
    assert entries["transposed"].offset is None
    assert entries["0.weight"].offset is not None
    golden = np.load(GOLDEN / "state.npz")
    np.testing.assert_array_equal(
        Torch().read_slice(data, entries["transposed"], 1, 3), golden["transposed"][1:3]
    )


def test_values_inside_a_checkpoint_are_named_by_their_paths() -> None:
    names = [entry.name for entry in Torch().entries((GOLDEN / "checkpoint.pt").read_bytes())]
    assert names[0] == "model/0.weight"
    assert names[-1] == "param"
    assert len(names) == 8


def make_file(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/data/0", b"\0" * 8)
    return file.getvalue()


class Evil:
    def __reduce__(self) -> Any:
        return print, ("executed",)


STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ"


def tensor(offset: bytes = b"K\0", shape: bytes = b"K\x02\x85", strides: bytes = b"K\x01\x85") -> bytes:
    rebuild = b"ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE + offset + shape + strides + b"\x89}tR"
    return b"\x80\x02}X\x01\x00\x00\x00w" + rebuild + b"s."


def test_the_handmade_pickle_is_valid_before_it_is_damaged() -> None:
    assert Torch().read_all(make_file(tensor()))["w"].shape() == [2]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (pickle.dumps({"w": Evil()}, 2), "print, which is refused"),
        (b"\x80\x02ctorch\nFloatStorage\n(tR.", "is called"),
        (tensor(offset=b"K\x01"), "exceeds its storage"),
        (tensor(shape=b"K\xff\x85"), "exceeds its storage"),
        (tensor(strides=b"J\xff\xff\xff\xff\x85"), "invalid storage, shape or strides"),
        (tensor(shape=b"J\xff\xff\xff\x7f\x85", strides=b"K\0\x85"), "repeats the 8 bytes"),
        (tensor().replace(b"FloatStorage", b"QuadStorage"), "invalid class, key or count"),
        (b"\x80\x02]." , "holds a list"),
        (b"\x80\x02}X\x01\x00\x00\x00wK\x05Qs.", "not a storage"),
    ],
    ids=["global", "call", "offset", "shape", "strides", "repeat", "class", "list", "id"],
)  # fmt: skip
def test_crafted_pickles_are_refused(data: bytes, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FormatError, match=text):
        Torch().read_all(make_file(data))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("keys", [[[1]], [{}], [5], None])
def test_keys_of_an_old_file_that_are_not_text_are_refused(keys: Any) -> None:
    parts = (torch._MAGIC, 1001, {"little_endian": True}, {}, keys)
    with pytest.raises(FormatError, match="no list of keys"):
        Torch().read_all(b"".join(pickle.dumps(part, 2) for part in parts))


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_byte_order_is_read_from_a_file_that_was_packed_again(packing: int) -> None:
    file = io.BytesIO(make_file(tensor()))
    with zipfile.ZipFile(file, "a", packing) as archive:
        archive.writestr("archive/byteorder", b"little")
    assert Torch().read_all(file.getvalue())["w"].shape() == [2]  # type: ignore[union-attr]
