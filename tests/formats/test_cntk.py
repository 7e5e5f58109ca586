"""CNTK's dictionaries: golden bytes, the real system's files, and damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlelike.errors import FormatError
from paddlelike.formats import registry
from paddlelike.formats.base import SNIFF_BYTES
from paddlelike.formats.cntk.dictionary import Axis, Shape, SizeT, decode, encode
from paddlelike.formats.cntk.file import CntkFile
from paddlelike.testing import FormatContract

GOLDEN = Path(__file__).parent.parent / "golden" / "cntk"
FILES = sorted(path.name for path in GOLDEN.iterdir() if path.suffix in (".model", ".dnn", ".ckp"))


class TestCntkFile(FormatContract):
    format = CntkFile()
    golden_values = {"w": np.float32([[1, -2.5]])}
    golden_files = {
        "": (
            b"\x08\x02\x12\x11\n\x07version\x12\x06\x08\x02\x10\x03(\x03\x12\x1f\n\x04type\x12\x17\x08"
            b"\x02\x10\x06B\x11CompositeFunction\x12\x16\n\x03uid\x12\x0f\x08\x02\x10\x06B\tComposite\x12"
            b"\x15\n\x04root\x12\r\x08\x02\x10\x06B\x07Combine\x12\x90\x02\n\x06inputs\x12\x85\x02\x08"
            b"\x02\x10\tZ\xfe\x01\n\xfb\x01\x08\x02\x10\nb\xf4\x01\x08\x02\x12\x11\n\x07version\x12\x06"
            b"\x08\x02\x10\x03(\x01\x12\x16\n\x04type\x12\x0e\x08\x02\x10\x06B\x08Variable\x12\x0e\n\x03u"
            b"id\x12\x07\x08\x02\x10\x06B\x01w\x12\x0e\n\x04kind\x12\x06\x08\x02\x10\x03(\x02\x12\x13\n\t"
            b"data_type\x12\x06\x08\x02\x10\x03(\x01\x12\x16\n\x0cdynamic_axis\x12\x06\x08\x02\x10\tZ\x00"
            b"\x12\x13\n\tis_sparse\x12\x06\x08\x02\x10\x01\x18\x00\x12\x18\n\x0eneeds_gradient\x12\x06"
            b"\x08\x02\x10\x01\x18\x01\x12\x13\n\x05shape\x12\n\x08\x02\x10\x07J\x04\n\x02\x02\x01\x12"
            b"\x0f\n\x04name\x12\x07\x08\x02\x10\x06B\x01w\x12#\n\x05value\x12\x1a\x08\x02\x10\x0bj\x14"
            b'\x08\x01\x1a\x04\n\x02\x02\x01"\n\n\x08\x00\x00\x80?\x00\x00 \xc0\x12\xb6\x01\n\x13primitiv'
            b"e_functions\x12\x9e\x01\x08\x02\x10\tZ\x97\x01\n\x94\x01\x08\x02\x10\nb\x8d\x01\x08\x02\x12"
            b"\x11\n\x07version\x12\x06\x08\x02\x10\x03(\x18\x12\x1f\n\x04type\x12\x17\x08\x02\x10\x06B"
            b"\x11PrimitiveFunction\x12\x14\n\x03uid\x12\r\x08\x02\x10\x06B\x07Combine\x12\x0c\n\x02op"
            b"\x12\x06\x08\x02\x10\x03(,\x12\x16\n\nattributes\x12\x08\x08\x02\x10\nb\x02\x08\x02\x12\x19"
            b"\n\x06inputs\x12\x0f\x08\x02\x10\tZ\t\n\x07\x08\x02\x10\x06B\x01w"
        )
    }


@pytest.mark.parametrize("name", FILES)
def test_every_file_of_cntk_is_read_and_written_back_byte_for_byte(name: str) -> None:  # C03
    data = (GOLDEN / name).read_bytes()
    assert encode(decode(data)) == data
    assert registry.sniff_head(data[:SNIFF_BYTES], len(data)) == CntkFile()  # C04: by content


@pytest.mark.parametrize("name", ["mlp", "mlp64", "convnet", "plain", "bn", "lstm"])
def test_the_values_of_a_model_match_cntk(name: str) -> None:
    values = CntkFile().read_all((GOLDEN / f"{name}.model").read_bytes())
    with np.load(GOLDEN / f"{name}.npz") as file:
        real = {key[2:]: file[key] for key in file.files if key[:2] in ("p:", "c:")}
    assert values.keys() == real.keys()
    for uid, array in real.items():
        np.testing.assert_array_equal(values[uid].array, array)
        assert values[uid].array.dtype == array.dtype


def test_the_arrays_of_a_checkpoint_are_under_their_paths() -> None:
    values = CntkFile().read_all((GOLDEN / "ck-momentum.dnn.ckp").read_bytes())
    with np.load(GOLDEN / "ck-momentum.npz") as file:
        for index in range(4):
            found = values[f"Learners/0/smoothed_gradients/{index}"].array
            np.testing.assert_array_equal(found, file[f"state{index}"])
    np.testing.assert_array_equal(values["ExternalState/array"].array, np.arange(6.0).reshape(2, 3))


VALUES: dict[str, Any] = {
    "none": None,
    "flag": True,
    "no": False,
    "int": -(2**31),
    "size": SizeT(0),
    "large": 2**63,
    "float": np.float32(0.1),
    "double": 0.1,
    "text": "Zähler",
    "empty": "",
    "shape": Shape((3, 0, 2)),
    "axis": Axis(2147483647, "defaultBatchAxis"),
    "list": [1, 2.5, [], {}],
    "dict": {"": {"k": [None]}},
}


def test_every_kind_of_value_comes_back_with_its_type() -> None:
    again = decode(encode(VALUES))
    assert again == VALUES
    kinds = {key: SizeT if key == "large" else type(value) for key, value in VALUES.items()}
    assert {key: type(value) for key, value in again.items()} == kinds


@pytest.mark.parametrize(
    ("value", "text"),
    [((1, 2), "no tuple"), (b"x", "no bytes"), (2**70, "no int"), (-(2**40), "no int"),
     (np.arange(3), "not int64"), ({1: 2}, "texts as keys")],
    ids=["tuple", "bytes", "over-64-bits", "under-32-bits", "int64-array", "key"],
)  # fmt: skip
def test_values_that_a_dictionary_cannot_hold_are_refused(value: object, text: str) -> None:
    with pytest.raises(FormatError, match=text):
        encode({"v": value})


def _array(**changes: bytes) -> bytes:
    """The bytes of ``{"v": float32 [2]}`` by hand, with parts replaced."""
    parts = {
        "type": b"\x08\x01", "storage": b"", "shape": b"\x1a\x03\x0a\x01\x02",
        "values": b"\x22\x0a\x0a\x08" + bytes(8),
    } | changes  # fmt: skip
    view = b"".join(parts.values())
    value = b"\x08\x02\x10\x0b\x6a" + bytes([len(view)]) + view
    entry = b"\x0a\x01v\x12" + bytes([len(value)]) + value
    return b"\x08\x02\x12" + bytes([len(entry)]) + entry


@pytest.mark.parametrize(
    ("changes", "text"),
    [({"type": b"\x08\x03"}, "element type 3"), ({"storage": b"\x10\x01"}, "storage 1"),
     ({"shape": b"\x1a\x03\x0a\x01\x03"}, "has 3 elements, the file 2"),
     ({"shape": b"\x1a\x0c\x0a\x0a" + b"\xff" * 8 + b"\x3f\x00"}, "an array cannot have the dims"),
     ({"shape": b"\x1a\x07\x0a\x05" + b"\xff" * 4 + b"\x7f"}, "has 34359738367 elements, the file 2"),
     ({"values": b""}, "lacks its float_values"), ({"type": b"\x08\x06"}, "lacks its sint32_values"),
     ({"type": b"\x08\x06", "values": b"\x3a\x06\x0a\x04\x80\x80\x04\x02"}, "beyond the range of int16")],
    ids=["type", "sparse", "count", "inferred", "huge", "absent", "other", "int16"],
)  # fmt: skip
def test_damage_is_named(changes: dict[str, bytes], text: str) -> None:
    assert decode(_array())["v"].tolist() == [0, 0]
    with pytest.raises(FormatError, match=text):
        decode(_array(**changes))


def test_a_file_nested_without_end_is_refused() -> None:
    nested: list[Any] = []
    for _ in range(20):
        nested = [nested]
    assert decode(encode({"v": nested})) == {"v": nested}
    value = b"\x10\x00"
    for _ in range(5000):
        vector = b"\x0a" + _varint(len(value)) + value
        value = b"\x10\x09\x5a" + _varint(len(vector)) + vector
    entry = b"\x0a\x01v\x12" + _varint(len(value)) + value
    with pytest.raises(FormatError, match="not a dictionary of CNTK"):
        decode(b"\x08\x02\x12" + _varint(len(entry)) + entry)


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])


def test_two_values_of_one_name_are_refused() -> None:
    data = encode({"v": 1})
    with pytest.raises(FormatError, match="two values have the key 'v'"):
        decode(data + data)
