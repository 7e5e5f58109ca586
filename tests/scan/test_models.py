"""Models and other files of a folder that is scanned."""

from __future__ import annotations

import shutil
from pathlib import Path

import paddlelike as fluid
from paddlelike.scan import scan

FIT = Path(__file__).parents[1] / "golden" / "fit_a_line"


def save_program(path: Path, *types: str) -> None:
    """Write a program of operators of some types, whether they are known or not."""
    program = fluid.Program()
    x = program.global_block().create_var(name="x", shape=[2], dtype="float32")
    program.global_block().append_op(type="relu", inputs={"X": x}, outputs={"Out": x})
    data = program.desc.serialize_to_string()
    for type_ in types:
        data = data.replace(b"relu", type_.encode())
    path.write_bytes(data)


def test_a_model_of_known_operators_has_no_findings(tmp_path: Path) -> None:
    shutil.copytree(FIT / "inference", tmp_path / "model")
    found = scan(tmp_path)
    assert found
    assert {"mul", "elementwise_add"} <= found.operators.keys()
    assert "__model__" in {Path(one.path).name for one in found.files}


def test_a_model_with_an_unknown_operator_cannot_run(tmp_path: Path) -> None:
    save_program(tmp_path / "__model__", "fizz")  # as many letters
    found = scan(tmp_path)
    assert not found
    assert found.unknown_operators == ("fizz",)
    assert "fizz" in found.files[0].stops


def test_a_model_with_missing_values_cannot_run(tmp_path: Path) -> None:
    shutil.copytree(FIT / "inference", tmp_path / "model")
    (tmp_path / "model" / "fc_0.b_0").unlink()
    (stopped,) = [one for one in scan(tmp_path).files if one.stops]
    assert stopped.stops == "no values of fc_0.b_0"


def test_a_damaged_model_file_cannot_run(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04 no archive")
    (tmp_path / "notes.pkl").write_bytes(b"of the script")
    assert [one.path for one in scan(tmp_path).files if one.stops] == ["a.npz"]
