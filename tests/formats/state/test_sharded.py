"""Checkpoints of ``paddle.distributed``: real ones of two processes, joined; ours; damaged ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import inspection
from paddlelike.errors import FormatError, LoadError, MissingFileError, SaveError
from paddlelike.formats.entry import list_left_out
from paddlelike.formats.state import sharded
from paddlelike.formats.state.format import encode
from paddlelike.formats.state.pickle_writer import encode_plain
from paddlelike.formats.state.sharded import PaddleDistributed
from paddlelike.testing.formats import FormatContract, MemoryFolder
from tests.helpers.golden_data import GOLDEN

REAL = GOLDEN / "sharded"
WHOLE = np.arange(24, dtype="float32").reshape(4, 6)
TWO = {"model/row": WHOLE, "model/col": 2 * WHOLE, "model/rep": WHOLE + 1, "plain": np.array([1, 2, 3])}
VALUES: dict[str, dict[str, Any]] = {
    "two300": TWO,
    "two331": TWO,
    "flat331": {"flat": WHOLE, "flat2": 1.5 * WHOLE, "u": 3 * WHOLE},
    "safe331": {"s": WHOLE},
}


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


class TestPaddleDistributed(FormatContract):
    format = PaddleDistributed()
    golden_values = {"m/w": np.float32([1, -0.0])}
    golden_files = read_files(REAL / "ours")  # which 3.3.1 loads


@pytest.mark.parametrize("name", VALUES)
def test_pieces_of_two_processes_are_joined(name: str, tmp_path: Path) -> None:
    fluid.convert(REAL / name, tmp_path / "a.npz")
    state = fluid.load_program_state(str(REAL / name))
    assert state.keys() == VALUES[name].keys()
    with np.load(tmp_path / "a.npz") as converted:
        for key, value in VALUES[name].items():
            np.testing.assert_array_equal(converted[key], value)
            np.testing.assert_array_equal(state[key], value)


def test_inspect_treats_a_sharded_checkpoint_as_one_file() -> None:
    found = inspection.inspect(REAL / "two331")
    assert {one.name: list(one.shape) for one in found.variables} == {
        name: list(value.shape) for name, value in TWO.items()
    }
    assert found.title == "a checkpoint of paddle.distributed"
    assert "load_state_dict" in str(inspection.diagnose(REAL / "two331").calls)


def test_the_newest_checkpoint_of_a_directory_is_read_and_others_are_named() -> None:
    files = read_files(REAL / "two331")
    later = {"1.metadata": files["0.metadata"].replace(b"_0.distcp", b"_1.distcp")}
    later |= {name.replace("_0.", "_1."): data for name, data in files.items() if name.endswith(".distcp")}
    folder = MemoryFolder({**files, "0_0.distcp": b"", **later})
    entries = PaddleDistributed().entries(folder)
    assert [entry.name for entry in entries] == list(TWO)
    assert {one.name: one.what for one in list_left_out(entries) if one.is_value} == {
        "0.metadata": "an earlier checkpoint"
    }


def test_a_checkpoint_without_a_file_or_a_piece_is_refused() -> None:
    files = read_files(REAL / "two331")
    with pytest.raises(FormatError, match=r"names '1_0.distcp', which is not in the folder"):
        PaddleDistributed().entries(MemoryFolder({k: v for k, v in files.items() if k != "1_0.distcp"}))
    other = {"1_0.distcp": read_files(REAL / "flat331")["1_0.distcp"]}
    with pytest.raises(FormatError, match=r"1_0.distcp has no 'model.re?.*', which the metadata expects"):
        PaddleDistributed().entries(MemoryFolder({**files, **other}))
    ours = read_files(REAL / "ours")
    longer = ours["0.metadata"].replace(b"global_shape(J\x02", b"global_shape(J\x04")
    with pytest.raises(FormatError, match=r"'m/w': its 1 pieces have 2 of 4 elements"):
        PaddleDistributed().entries(MemoryFolder({**ours, "0.metadata": longer}))


def test_a_tensor_saved_with_use_binary_format_is_named_after_its_file(tmp_path: Path) -> None:
    expected = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(fluid.load_program_state(str(REAL / "tensor331"))["tensor331"], expected)
    assert fluid.convert(REAL / "tensor331", tmp_path / "a.npz").names == ("tensor331",)


@pytest.mark.parametrize("spans", [((0, 3), (1, 4)), ((0, 2), (2, 5)), ((3, 0), (0, 9))])
def test_pieces_of_a_box_that_do_not_follow_one_another_are_refused(spans: tuple[Any, Any]) -> None:
    where = {"global_offset": (0,), "is_flattened": True, "tensor_key": "w", "replica_id": None}
    box = {"global_offset": (0,), "local_shape": (6,), "dtype": "float32", "global_shape": (6,)}
    ids = [sharded._make("LocalTensorIndex", {**where, "flattened_range": span}) for span in spans]
    boxes = [sharded._make("LocalTensorMetadata", {**box, "flattened_range": span}) for span in spans]
    parts = {"state_dict_metadata": {"w": boxes}, "storage_metadata": dict(zip(ids, "ab", strict=True))}
    files = {"0.metadata": encode_plain(sharded._make("Metadata", parts))}
    for file, (start, stop) in zip("ab", spans, strict=True):
        files[file] = b"".join(encode({"w": np.zeros(max(stop - start, 0), "float32")}))
    with pytest.raises(FormatError, match="'w'"):
        PaddleDistributed().entries(MemoryFolder(files))


def test_only_the_tensors_of_var_list_are_loaded() -> None:
    state = fluid.load_program_state(str(REAL / "two331"), ["plain", "model/row"])
    assert [*state] == ["plain", "model/row"]
    with pytest.raises(MissingFileError, match="it holds no model/raw"):
        fluid.load_program_state(str(REAL / "two331"), ["model/raw"])


def test_a_checkpoint_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    files = read_files(REAL / "two331")
    for name in ("0.metadata", "0_0.distcp"):
        (tmp_path / name).write_bytes(files[name])
    with pytest.raises(FormatError, match=rf"{tmp_path}: the metadata names '1_0\.distcp'"):
        fluid.load_program_state(tmp_path)


def test_a_checkpoint_with_a_manifest_is_compared_with_it(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", w=np.array([1.5, 2.5]))
    fluid.convert(tmp_path / "a.npz", tmp_path / "c", "paddle_distributed")
    file = tmp_path / "c" / "0_0.distcp"
    file.write_bytes(
        file.read_bytes().replace(np.float64(2.5).tobytes()[-2:], np.float64(4.5).tobytes()[-2:])
    )
    with pytest.raises(LoadError, match=r"0_0\.distcp: its bytes are not those that were saved"):
        fluid.load_program_state(tmp_path / "c")
    assert fluid.load_program_state(tmp_path / "c", verify=False)["w"].tolist() == [1.5, 4.5]


def test_a_checkpoint_is_not_written_beside_one_of_a_higher_number(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", w=np.ones(2))
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "3.metadata").write_bytes(b"newer")
    with pytest.raises(SaveError, match=r"the target has 3\.metadata of another save"):
        fluid.convert(tmp_path / "a.npz", tmp_path / "c", "paddle_distributed", overwrite=True)
    (tmp_path / "c" / "3.metadata").unlink()
    for _ in range(2):
        fluid.convert(tmp_path / "a.npz", tmp_path / "c", "paddle_distributed", overwrite=True)
    assert fluid.load_program_state(tmp_path / "c")["w"].tolist() == [1, 1]
