"""Models of Fluid 1.8 as the two files of Paddle 2.x; test_fluid18.py has the way back."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError, SaveError
from paddlelike.interop.model_versions import convert_arrangement
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
def test_the_two_files_compute_what_the_directory_does(name: str, tmp_path: Path) -> None:
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


def test_the_report_names_what_paddle_2_no_longer_has(tmp_path: Path) -> None:
    report = fluid.convert(write_old("ctr", tmp_path), tmp_path / "model.pdmodel")
    assert str(report).endswith("\n  Paddle 2.6 has no kernel of cos_sim")


def test_what_is_there_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.pdiparams").write_bytes(b"mine")
    with pytest.raises(SaveError, match=r"a\.pdiparams exists"):
        convert_arrangement(FIT / "inference", tmp_path / "a.pdmodel")
    assert list_names(tmp_path) == ["a.pdiparams"]
    convert_arrangement(FIT / "inference", tmp_path / "a.pdmodel", overwrite=True)
    assert list_names(tmp_path) == ["a.pdiparams", "a.pdmodel"]


def test_without_a_program_or_values_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="holds no program"):
        convert_arrangement(FIT / "persistables", tmp_path / "a.pdmodel")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "__model__").write_bytes((FIT / "inference" / "__model__").read_bytes())
    with pytest.raises(LoadError, match=r"holds no values of fc_0\.b_0, fc_0\.w_0"):
        convert_arrangement(tmp_path / "old", tmp_path / "a.pdmodel")
    with pytest.raises(LoadError, match="holds no program, which an ONNX model is made of"):
        fluid.convert(FIT / "persistables", tmp_path / "a.onnx")
    assert list_names(tmp_path) == ["old"]
