"""Models of Fluid 1.8 as the two files of Paddle 2.x; test_fluid18.py has the way back."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError, SaveError, UnsupportedError
from paddlelike.framework import Program
from paddlelike.framework.codec.decode import decode_program
from paddlelike.framework.opdef import registry
from paddlelike.interop.model_versions import _LATER, convert_arrangement
from paddlelike.interop.paddle3.operators import find_rows
from tests.helpers.golden_data import GOLDEN
from tests.models.archive import find_names, read_archive, run_model, write_files

MODELS = read_archive("models185")
FIT = Path(__file__).parents[1] / "golden" / "fit_a_line"

#: What real Paddle 2.6.2 itself no longer has, or has no CPU kernel of.
GONE = {"branches": "rnn_memory_helper", "convnet": "pad2d", "ctr": "cos_sim"}

OPEN_262 = """
import sys, numpy as np, paddle
paddle.enable_static()
exe = paddle.static.Executor(paddle.CPUPlace())
program, feeds, fetches = paddle.static.load_inference_model(sys.argv[1], exe)
arrays = np.load(sys.argv[2])
feed = {}
for index, name in enumerate(feeds):
    feed[name] = tensor = paddle.base.core.LoDTensor()
    tensor.set(arrays[f"in{index}"], paddle.CPUPlace())
    tensor.set_lod([arrays[key].tolist() for key in sorted(arrays) if key.startswith(f"in{index}@lod")])
for index, out in enumerate(exe.run(program, feed=feed, fetch_list=fetches, return_numpy=False)):
    np.testing.assert_allclose(np.array(out), arrays[f"out{index}"], rtol=2e-5, atol=2e-5)  # other kernels
config = paddle.inference.Config(sys.argv[1] + ".pdmodel", sys.argv[1] + ".pdiparams")
paddle.inference.create_predictor(config)
"""


def write_old(name: str, folder: Path) -> Path:
    (folder / "old").mkdir()
    files = {key: data for key, data in MODELS[name].items() if key not in ("io.npz", "files.json")}
    write_files(files, folder / "old")
    return folder / "old"


def list_names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_two_files_of_paddle_2_predict_as_the_directory_does(name: str, tmp_path: Path) -> None:
    old = write_old(name, tmp_path)
    convert_arrangement(old, tmp_path / "model.pdmodel")
    program, _ = find_names(MODELS[name])
    assert (tmp_path / "model.pdmodel").read_bytes() == MODELS[name][program or "__model__"]
    two = {one: (tmp_path / one).read_bytes() for one in ("model.pdmodel", "model.pdiparams")}
    for got, want in run_model(tmp_path, {**two, "io.npz": MODELS[name]["io.npz"]}):
        np.testing.assert_allclose(np.array(got), np.array(want), rtol=2e-5, atol=2e-6)  # as test_models.py


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MODELS))
def test_real_paddle_2_opens_the_two_files(name: str, tmp_path: Path) -> None:
    python = os.environ.get("PADDLELIKE_PADDLE262_PYTHON")
    if python is None:
        pytest.skip("PADDLELIKE_PADDLE262_PYTHON names no interpreter of Paddle 2.6.2")
    report = convert_arrangement(write_old(name, tmp_path), tmp_path / "model.pdmodel")
    (tmp_path / "io.npz").write_bytes(MODELS[name]["io.npz"])
    command = [python, "-c", OPEN_262, str(tmp_path / "model"), str(tmp_path / "io.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={})
    assert bool(report.lacking) == (name in GONE)
    if name in GONE:
        assert GONE[name] in report.lacking
        assert GONE[name] in done.stderr
    else:
        assert done.returncode == 0, done.stderr[-2000:]


def test_the_report_names_operators_that_paddle_2_lacks(tmp_path: Path) -> None:
    report = fluid.convert(write_old("ctr", tmp_path), tmp_path / "model.pdmodel")
    assert str(report).endswith("\n  Paddle 2.6 has no kernel of cos_sim")


def test_existing_files_are_not_replaced_without_overwrite(tmp_path: Path) -> None:
    (tmp_path / "a.pdiparams").write_bytes(b"mine")
    with pytest.raises(SaveError, match=r"a\.pdiparams exists"):
        convert_arrangement(FIT / "inference", tmp_path / "a.pdmodel")
    assert list_names(tmp_path) == ["a.pdiparams"]
    convert_arrangement(FIT / "inference", tmp_path / "a.pdmodel", overwrite=True)
    assert list_names(tmp_path) == ["a.pdiparams", "a.pdmodel"]


@pytest.mark.parametrize("target", ["a.onnx", "a.pdmodel", "a.json", "a"])
def test_arguments_for_values_are_refused_for_a_model(target: str, tmp_path: Path) -> None:
    source = tmp_path / "old"
    convert_arrangement(FIT / "inference", source / "model.pdmodel")
    for given in ({"dtype": "float16"}, {"names": ["a", "b"]}, {"rename": {"fc_0.b_0": "b"}}):
        with pytest.raises(LoadError, match=f"converted as a model: {next(iter(given))} cannot be applied"):
            fluid.convert(source, tmp_path / target, **given)
    assert list_names(tmp_path) == ["old"]
    fluid.convert(source, tmp_path / "values", format="directory", dtype="float16")
    assert "__model__" not in list_names(tmp_path / "values")


def test_without_a_program_or_values_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="holds no program"):
        convert_arrangement(FIT / "persistables", tmp_path / "a.pdmodel")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "__model__").write_bytes((FIT / "inference" / "__model__").read_bytes())
    with pytest.raises(LoadError, match=r"holds no values of fc_0\.b_0, fc_0\.w_0"):
        convert_arrangement(tmp_path / "old", tmp_path / "a.pdmodel")
    with pytest.raises(LoadError, match="holds no program, but an ONNX model is made from a program"):
        fluid.convert(FIT / "persistables", tmp_path / "a.onnx")
    assert list_names(tmp_path) == ["old"]


def write_later(archive: str, name: str, target: Path) -> Program:
    """Convert a model of a later Paddle to a ``.pdmodel``, and return its program."""
    (target.parent / name).mkdir()
    write_files(read_archive(archive)[name], target.parent / name)
    convert_arrangement(target.parent / name / "inference.json", target)
    return decode_program(target.read_bytes())


def test_defaults_of_paddle_2_are_written_as_attributes(tmp_path: Path) -> None:
    program = write_later("exports331", "rrelu", tmp_path / "a.pdmodel")
    assert [op.attrs["is_test"] for op in program.global_block().ops if op.type == "rrelu"] == [True]
    program = write_later("models331", "setv", tmp_path / "b.pdmodel")
    written = [op for op in program.global_block().ops if op.type == "set_value"]
    assert [one.r for op in written for one in op.attrs["values"]] == [0.0]
    assert not any(op.attrs.get(f"{kind}_values") for op in written for kind in ("fp32", "int32", "int64"))


@pytest.mark.parametrize(
    ("archive", "name", "type"),
    [
        ("exports331", "copysign", "copysign"),
        ("exports331", "median_1", "median"),
        ("exports331", "right_shift", "bitwise_right_shift"),
        ("pir_versions", "3.3.1-fractional", "fractional_max_pool2d"),
        ("pir_versions", "3.3.1-gammainc", "gammaincc"),
    ],
)
def test_an_operator_that_paddle_2_lacks_is_named_with_a_workaround(
    archive: str, name: str, type: str, tmp_path: Path
) -> None:
    """The golden file has null for each of them."""
    with pytest.raises(UnsupportedError, match=rf"2\.6 has no {type}, .*\n.*to a \.json, which Paddle 3"):
        write_later(archive, name, tmp_path / "a.pdmodel")
    assert not (tmp_path / "a.pdmodel").exists()
    known = json.loads(gzip.decompress((GOLDEN / "attributes262.json.gz").read_bytes()))
    later = {type for type, op in registry.all_ops().items() if op.since == "3"}
    assert {type for type, names in known.items() if names is None} == later


@pytest.mark.parametrize("name", ["ptq", "qat"])
def test_a_model_that_paddle_2_quantized_is_refused_where_paddle_3_would_not_run_it(
    name: str, tmp_path: Path
) -> None:
    """Real 3.3.1 fails on such a .json, and runs the .pdmodel with the flag."""
    write_files(read_archive("quantized262")[name], tmp_path)
    with pytest.raises(UnsupportedError, match=r"quantize_linear.* InAccum.*\n.*FLAGS_enable_pir_api=0"):
        convert_arrangement(tmp_path / "model.pdmodel", tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()


def test_attributes_of_paddle_3_become_attributes_of_paddle_2_or_are_refused() -> None:
    """The golden file lists the attributes in the operator prototypes of Paddle 2.6.2."""
    known = json.loads(gzip.decompress((GOLDEN / "attributes262.json.gz").read_bytes()))
    unknown = {
        (row.type, name)
        for row in find_rows()
        if known[row.type] is not None
        for name in [one.target for one in row.attributes] + [one.attr for one in row.operands]
        if name and name not in known[row.type]
    }
    kept_apart = {  # by what is read in the place of the row, and extras that prototypes do not list
        ("assign_value", "values"), ("range", "dtype"), ("dropout", "seed"), ("dropout", "fix_seed"),
        ("lookup_table_v2", "is_sparse"),
    }  # fmt: skip
    assert unknown == kept_apart | set(_LATER)


def test_paddle_3_receives_feeds_in_order_and_in_the_types_that_it_supports(tmp_path: Path) -> None:
    """Seen with Paddle 3.3.1: it lists feeds as they stand, and compares declared types in the run."""
    (tmp_path / "old").mkdir()
    write_files(read_archive("layers262")["viterbi"], tmp_path / "old")
    convert_arrangement(tmp_path / "old" / "model.pdmodel", tmp_path / "m.json")
    (region,) = json.loads((tmp_path / "m.json").read_text())["program"]["regions"]
    ops = region["blocks"][0]["ops"]
    columns = [one["A"][1]["AT"]["D"] for one in ops if one["#"] == "1.feed"]
    assert columns == sorted(columns)
    assert len(columns) > 1
    (viterbi,) = (one for one in ops if one["#"] == "1.viterbi_decode")
    assert [one["TT"]["D"][0]["#"] for one in viterbi["O"]] == ["0.t_f32", "0.t_i64"]
