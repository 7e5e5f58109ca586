"""Differences of saved values, on files that were made to differ in a known way."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from paddlelike.errors import FormatError
from paddlelike.inspection import compare

GOLDEN = Path(__file__).parents[1] / "golden" / "fit_a_line"


def test_the_same_values_in_another_form_do_not_differ() -> None:
    found = compare(GOLDEN / "inference", GOLDEN / "inference_combined")
    assert (found.same, found.changed, found.added, found.removed) == (2, (), (), ())


def test_a_flipped_bit_is_reported_with_the_norm_of_the_difference(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "persistables", tmp_path / "b")
    path = tmp_path / "b" / "fc_0.w_0"
    data = bytearray(path.read_bytes())
    before = np.frombuffer(data[-4:], "<f4")[0]
    data[-1] ^= 0x01
    path.write_bytes(data)
    (change,) = compare(GOLDEN / "persistables", tmp_path / "b").changed
    assert (change.name, change.what, change.elements) == ("fc_0.w_0", "values", 1)
    assert change.norm == abs(float(np.frombuffer(data[-4:], "<f4")[0]) - float(before))


def test_renamed_added_and_removed_variables_are_listed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    w, v = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    np.savez(tmp_path / "a.npz", w=w, v=v, gone=np.ones(2), s=np.ones(2, "f4"), d=np.ones(2, "f4"))
    np.savez(tmp_path / "b.npz", w2=w, v=v, new=np.ones(5), s=np.ones(3, "f4"), d=np.ones(2, "f8"))
    found = compare(tmp_path / "a.npz", tmp_path / "b.npz")
    assert found.renamed == (("w", "w2"),)
    assert (found.removed, found.added, found.same) == (("gone",), ("new",), 1)
    assert {one.name: one.what for one in found.changed} == {"s": "shape", "d": "type"}


def test_nan_equals_nan_in_a_comparison(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", w=np.float32([np.nan, -0.0]))
    np.savez(tmp_path / "b.npz", w=np.float32([np.nan, 0.0]))
    assert not compare(tmp_path / "a.npz", tmp_path / "a.npz")
    assert compare(tmp_path / "a.npz", tmp_path / "b.npz").changed[0].norm != 0  # -0.0 is another bit pattern


def test_operators_of_programs_are_compared() -> None:
    programs = GOLDEN / "programs"
    assert not compare(programs / "main_train.pb", programs / "main_train.pb")
    lines = compare(programs / "main_forward.pb", programs / "main_train.pb").operators
    assert all(line.startswith("+") for line in lines)
    assert sum(" = sgd(" in line for line in lines) == 2


def test_comparing_with_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "persistables", tmp_path / "b")
    (tmp_path / "b" / "fc_0.w_0").write_bytes((GOLDEN / "persistables" / "fc_0.w_0").read_bytes()[:-1])
    with pytest.raises(FormatError, match=r"fc_0\.w_0 cannot be read"):
        compare(GOLDEN / "persistables", tmp_path / "b")
