"""Files of Paddle 1.8.5, 2.6.2 and others hold what their makers recorded beside them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from paddlelike.errors import MissingFileError
from paddlelike.formats.paddle import lod_tensor
from paddlelike.inspection import compare, inspect, summarize
from paddlelike.interop import content

GOLDEN = Path(__file__).parents[1] / "golden"
FIT = GOLDEN / "fit_a_line"


def encode(array: np.ndarray) -> bytes:
    return b"".join(bytes(part) for part in lod_tensor.encode(array))


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("persistables", "a directory of Paddle variables"),
        ("inference", "a model for prediction: a program and a file for each parameter"),
        ("inference_combined", "a model for prediction: a program and a combined file of its parameters"),
        ("fluid_save/model", "the files of fluid.save"),
        ("fluid_save", "the files of fluid.save"),
    ],
)
def test_every_form_of_paddle_gives_the_names_and_shapes_of_its_weights(path: str, title: str) -> None:
    found = inspect(FIT / path)
    recorded = np.load(FIT / "values_after_startup.npz")
    weights = {one.name: one for one in found.variables if one.name.startswith("fc_0")}
    assert found.title == title
    assert {name: one.shape for name, one in weights.items()} == {
        name: recorded[name].shape for name in recorded.files if name.startswith("fc_0")
    }
    assert found
    assert {one.dtype for one in found.variables} == {"FP32"}


def test_the_report_of_a_program_lists_feeds_fetches_and_required_files() -> None:
    (program,) = inspect(FIT / "inference").programs
    assert program.feeds == ("x",)
    assert program.persistables == ("fc_0.b_0", "fc_0.w_0")
    assert program.operators["mul"] == 1
    assert len(program.fetches) == 1


def test_a_combined_file_takes_its_names_from_the_program_beside_it(tmp_path: Path) -> None:
    shutil.copy(FIT / "inference_combined" / "params", tmp_path / "params")
    alone = inspect(tmp_path)
    assert alone.unnamed == ("params",)
    assert [one.name for one in alone.variables] == ["params[0]", "params[1]"]
    shutil.copy(FIT / "inference_combined" / "model", tmp_path / "__model__")
    assert [one.name for one in inspect(tmp_path).variables] == ["fc_0.b_0", "fc_0.w_0"]


def test_a_directory_of_many_files_lists_the_variables_of_its_program_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    listed = content.list_persistables
    monkeypatch.setattr(
        content, "list_persistables", lambda program: calls.append(program) or listed(program)
    )
    shutil.copy(FIT / "inference" / "__model__", tmp_path / "__model__")
    for number in range(20):
        (tmp_path / f"w{number}").write_bytes(encode(np.zeros(3, "f4")))
    assert len(inspect(tmp_path).variables) == 20
    assert sum(call is calls[0] for call in calls) < 5


def test_statistics_match_numpy() -> None:
    for one in inspect(FIT / "persistables").variables:
        value = np.frombuffer((FIT / "persistables" / one.name).read_bytes()[-one.nbytes :], "<f4")
        assert one.statistics is not None
        assert one.statistics.minimum == value.min()
        assert one.statistics.mean == pytest.approx(value.astype("f8").mean(), rel=1e-12)
        assert one.statistics.std == pytest.approx(value.astype("f8").std(), rel=1e-9, abs=1e-12)


def test_values_that_are_not_finite_are_flagged(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(encode(np.float32([1, np.nan, np.inf, -np.inf])))
    (tmp_path / "b").write_bytes(encode(np.zeros(3, "float32")))
    found = inspect(tmp_path)
    assert not found
    assert [one.name for one in found.flagged] == ["w"]
    facts = {one.name: one.statistics for one in found.variables}
    assert (facts["w"].nan, facts["w"].inf, facts["w"].mean) == (1, 2, 1.0)
    assert facts["b"].flags == ("all zero",)


def test_a_damaged_file_is_a_problem_not_an_error(tmp_path: Path) -> None:
    good = encode(np.ones((4, 4), "float32"))
    (tmp_path / "good").write_bytes(good)
    (tmp_path / "cut").write_bytes(good[:-5])
    (tmp_path / "page").write_bytes(b"<!doctype html><p>404")
    found = inspect(tmp_path)
    facts = {file.name: file for file in found.files}
    assert [one.name for one in found.variables] == ["good"]
    assert facts["cut"].problem is not None
    assert "web page" in facts["page"].title
    assert not found


def test_an_error_on_a_missing_path_suggests_a_near_name(tmp_path: Path) -> None:
    (tmp_path / "epoch_10").mkdir()
    (tmp_path / "epoch_10" / "w").write_bytes(encode(np.ones(1, "float32")))
    with pytest.raises(MissingFileError, match="did you mean 'epoch_10'"):
        inspect(tmp_path / "epoch_1")
    assert inspect(tmp_path).title == "a directory of 1 directory: epoch_10"


@given(
    hnp.arrays(st.sampled_from(["f4", "f8", "i4", "i8", "u1", "?"]), hnp.array_shapes(max_dims=2, max_side=9))
)
def test_arrays_of_any_kind_have_a_summary(array: np.ndarray) -> None:
    found = summarize(array)
    values = array.astype("f8").reshape(-1)
    finite = values[np.isfinite(values)]
    assert found.count == array.size
    assert found.nan == int(np.isnan(values).sum())
    assert found.inf == int(np.isinf(values).sum())
    assert found.zeros == int((finite == 0).sum())
    if finite.size:
        assert (found.minimum, found.maximum) == (finite.min(), finite.max())


@pytest.mark.parametrize("last", [np.inf, 0.5])
def test_statistics_and_differences_of_bfloat16_use_its_numeric_values(tmp_path: Path, last: float) -> None:
    header = json.dumps({"w": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}).encode()
    for name, numbers in (("a", [1.5, -3, last]), ("b", [1.5, -2, last])):
        bits = (np.float32(numbers).view(np.uint32) >> 16).astype(np.uint16)
        data = len(header).to_bytes(8, "little") + header + bits.tobytes()
        (tmp_path / f"{name}.safetensors").write_bytes(data)
    (variable,) = inspect(tmp_path / "a.safetensors").variables
    assert variable.dtype == "BF16"
    assert variable.statistics is not None
    found = variable.statistics
    assert (found.minimum, found.maximum, found.inf) == (-3, 1.5, np.isinf(last))
    (change,) = compare(tmp_path / "a.safetensors", tmp_path / "b.safetensors").changed
    assert change.elements == 1
    if np.isfinite(last):
        assert (change.norm, change.largest) == (1, 1)
