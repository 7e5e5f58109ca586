"""safetensors files: the package's bytes, metadata, BF16, and damage."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import VarType
from paddlelike.errors import FormatError
from paddlelike.formats.entry import list_left_out
from paddlelike.formats.safetensors import Safetensors, SafetensorsFolder
from paddlelike.storage.location import locate
from paddlelike.testing import FormatContract


def make_file(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


class TestSafetensors(FormatContract):
    format = Safetensors()
    golden_values = {"ids": np.int64([[7]]), "w": np.float32([1, -2])}
    golden_files = {
        "": (112).to_bytes(8, "little")
        + b'{"ids":{"dtype":"I64","shape":[1,1],"data_offsets":[0,8]},'
        + b'"w":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}'
        + bytes.fromhex("0700000000000000 0000803f 000000c0")
    }


class TestSafetensorsFolder(FormatContract):
    format = SafetensorsFolder()
    golden_values = {"w": np.float32([1, -2])}
    golden_files = {
        "model.safetensors": (88).to_bytes(8, "little")
        + b'{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   '
        + bytes.fromhex("0000803f 000000c0")
    }


SHARDS = {"a": np.arange(6, dtype="f4").reshape(2, 3), "b": np.ones(4, "i8"), "c": np.zeros(2, "f4")}


def write_folder(folder: Path, shard_size: int) -> None:
    for name, pieces in SafetensorsFolder(shard_size).write(SHARDS).items():
        (folder / name).write_bytes(b"".join(pieces))
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.model").write_bytes(b"\x0a\x0e")


def test_a_model_in_several_files_has_the_index_of_the_hub(tmp_path: Path) -> None:
    write_folder(tmp_path, 40)
    names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index == {
        "metadata": {"total_size": 64},
        "weight_map": {"a": names[0], "b": names[1], "c": names[1]},
    }
    assert Safetensors.read_metadata((tmp_path / names[0]).read_bytes()) == {"format": "pt"}
    fluid.convert(tmp_path, tmp_path / "back.npz")
    with np.load(tmp_path / "back.npz") as found:
        assert sorted(found.files) == ["a", "b", "c"]
        for name, array in SHARDS.items():
            np.testing.assert_array_equal(found[name], array)
    (tmp_path / names[1]).unlink()
    with pytest.raises(FormatError, match=r"names 'model-00002-of-00002.safetensors', which is not in the"):
        SafetensorsFolder().entries(locate(str(tmp_path)))


def test_a_model_in_one_file_is_recognized_beside_its_config(tmp_path: Path) -> None:
    write_folder(tmp_path, 1 << 20)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json", "model.safetensors", "tokenizer.model",
    ]  # fmt: skip
    assert fluid.convert(tmp_path, tmp_path / "back.npz").source_format == "safetensors_folder"


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ("[]", "is not an index of safetensors files"),
        ('{"weight_map": {"a": 3}}', r"is not an index|outside of the folder"),
        ('{"weight_map": {"a": "../secret.safetensors"}}', "outside of the folder"),
        ('{"weight_map": {"z": "model-00001-of-00002.safetensors"}}', "has no 'z', which"),
    ],
    ids=["list", "number", "outside", "missing"],
)
def test_a_damaged_index_is_named(index: str, text: str, tmp_path: Path) -> None:
    write_folder(tmp_path, 40)
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(FormatError, match=text):
        SafetensorsFolder().entries(locate(str(tmp_path)))


def test_the_safetensors_package_reads_our_files_and_writes_the_same_bytes() -> None:
    library = pytest.importorskip("safetensors.numpy", reason="safetensors is in the extra 'test'")
    dtypes = ("bool", "uint8", "int8", "int16", "float16", "int32", "float32", "float64", "int64")
    values = {f"{dtype}.w": np.arange(6).reshape(2, 3).astype(dtype) for dtype in dtypes}
    values |= {
        "empty": np.zeros((0, 4), "float32"),
        "none": np.array(2.5),
        "a b": np.ones(3, "int8"),
    }
    ours = b"".join(Safetensors((("made_by", "test"),)).write(values))
    assert library.save(values, metadata={"made_by": "test"}) == ours
    assert b"".join(Safetensors().write(values)) == library.save(values)
    for name, array in library.load(ours).items():
        np.testing.assert_array_equal(array, values[name])
        assert array.dtype == values[name].dtype


def test_metadata_is_read() -> None:
    file = make_file(
        {"__metadata__": {"format": "pt"}, "w": {"dtype": "BOOL", "shape": [], "data_offsets": [0, 1]}}, b"\1"
    )
    assert Safetensors.read_metadata(file) == {"format": "pt"}
    assert Safetensors().read_all(file)["w"].array == True  # noqa: E712


def test_bf16_keeps_its_bits() -> None:
    header = {"w": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}
    (entry,) = Safetensors().entries(make_file(header, b"\x80\x3f\x00\xc0"))
    assert entry.dtype == VarType.BF16
    array = Safetensors().read(make_file(header, b"\x80\x3f\x00\xc0"), entry).array
    assert array is not None
    assert array.view("uint16").tolist() == [0x3F80, 0xC000]
    assert b'"BF16"' in b"".join(Safetensors().write({"w": array}))


ROW = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "data", "text"),
    [
        ({"w": ROW, "v": ROW}, b"\0" * 8, "takes 8 bytes from offset"),
        ({"w": ROW}, b"\0" * 9, "the tensors end at offset"),
        ({"w": ROW | {"data_offsets": [1, 9]}}, b"\0" * 9, "takes 8 bytes from offset"),
        ({"w": ROW | {"shape": [2**20, 2**20]}}, b"\0" * 8, "takes"),
        (
            {"w": ROW | {"shape": [0, 2**40, 2**40], "data_offsets": [0, 0]}},
            b"",
            "cannot have the dims",
        ),
        ({"w": ROW | {"shape": [2] + [1] * 32}}, b"\0" * 8, "cannot have the dims"),
        ({"w": ROW | {"dtype": []}}, b"\0" * 8, "has the element type"),
        (b'{"w": %s, "w": %s}' % ((json.dumps(ROW).encode(),) * 2), b"\0" * 8, "a name is repeated"),
        ({"w": ROW | {"shape": [-2]}}, b"\0" * 8, "not whole numbers"),
        ({"w": ROW | {"shape": [True]}}, b"\0" * 8, "not whole numbers"),
        ({"w": 3}, b"", "no dtype, shape"),
        ([1], b"", "not a JSON object"),
        (b"{" * 5000, b"", "is not JSON"),
    ],
    ids=[
        "overlap",
        "rest",
        "hole",
        "huge",
        "zero",
        "dims",
        "kind",
        "twice",
        "negative",
        "bool",
        "row",
        "list",
        "nested",
    ],
)
def test_an_invalid_header_is_refused(header: object, data: bytes, text: str) -> None:
    with pytest.raises(FormatError, match=text):
        Safetensors().entries(make_file(header, data))


@pytest.mark.parametrize(
    "text",
    [b'{"w": [' + b"[]," * 700_000 + b"[]]}", b'{"": {}' + b',"":{}' * 350_000 + b"}",
     b'{"__metadata__": {"a": [' + b"{}," * 700_000 + b"{}]}}"],
    ids=["lists", "dictionaries", "metadata"],
)  # fmt: skip
def test_a_large_header_of_other_json_is_not_parsed(text: bytes) -> None:
    file = len(text).to_bytes(8, "little") + text
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="and of nothing else"):
            Safetensors().entries(file)
        assert tracemalloc.get_traced_memory()[1] < 3 * len(text)
    finally:
        tracemalloc.stop()


def test_a_large_header_is_read_however_it_is_laid_out() -> None:
    rows = {
        f'layer {index} " [{{é': {"shape": [1], "data_offsets": [index, index + 1], "dtype": "U8"}
        for index in range(15_000)
    }
    text = json.dumps({"__metadata__": {"a": "{[ \\ é"}, **rows}, indent=1, ensure_ascii=False).encode()
    assert len(text) > 1 << 20
    entries = Safetensors().entries(len(text).to_bytes(8, "little") + text + bytes(15_000))
    assert [entry.name for entry in entries] == list(rows)


def test_a_tensor_of_a_type_that_no_variable_has_is_named_and_the_rest_is_read() -> None:
    rows = {"w": ROW, "f8": {"dtype": "F8_E4M3", "shape": [2, 2], "data_offsets": [8, 12]}}
    header = json.dumps(rows).encode()
    entries = Safetensors().entries(len(header).to_bytes(8, "little") + header + bytes(12))
    assert [entry.name for entry in entries] == ["w"]
    assert list_left_out(entries) == (("f8", "a tensor of F8_E4M3", True, False),)
