"""Merged, split and pruned models: the bytes of the files that Paddle itself writes in those forms."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import paddlelike as fluid
from paddlelike.cli.app import app
from paddlelike.errors import FormatError, GraphError, LoadError, SaveError
from paddlelike.inspection.inspect import inspect
from paddlelike.interop.model_versions import convert_arrangement
from paddlelike.interop.repack import merge, prune, split

GOLDEN = Path(__file__).parents[1] / "golden" / "fit_a_line"


def test_merged_parameters_have_the_bytes_of_paddle(tmp_path: Path) -> None:
    merge(GOLDEN / "inference", tmp_path / "m", "params")
    assert (tmp_path / "m" / "params").read_bytes() == (GOLDEN / "inference_combined" / "params").read_bytes()
    assert (tmp_path / "m" / "__model__").read_bytes() == (GOLDEN / "inference" / "__model__").read_bytes()
    assert fluid.io.verify(tmp_path / "m")


def test_split_parameters_have_the_bytes_of_paddle(tmp_path: Path) -> None:
    split(GOLDEN / "inference_combined", tmp_path / "s")
    for name in ("fc_0.w_0", "fc_0.b_0"):
        assert (tmp_path / "s" / name).read_bytes() == (GOLDEN / "inference" / name).read_bytes()


@pytest.mark.parametrize("suffix", ["", ".pdmodel"])
def test_a_model_of_paddle2_is_named_by_its_prefix_or_program(suffix: str, tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "inference_combined" / "params", tmp_path / "m.pdiparams")
    shutil.copy(GOLDEN / "inference_combined" / "model", tmp_path / "m.pdmodel")
    split(tmp_path / f"m{suffix}", tmp_path / "s")
    merge(tmp_path / f"m{suffix}", tmp_path / "c", "params")
    assert [one.name for one in inspect(tmp_path / f"m{suffix}").files] == ["m.pdmodel", "m.pdiparams"]
    assert (tmp_path / "s" / "fc_0.w_0").read_bytes() == (GOLDEN / "inference" / "fc_0.w_0").read_bytes()
    assert (tmp_path / "c" / "params").read_bytes() == (tmp_path / "m.pdiparams").read_bytes()


@pytest.mark.parametrize("program", ["__model__", "model"])
def test_a_conversion_takes_names_from_the_program_beside_the_file(program: str, tmp_path: Path) -> None:
    source = tmp_path / "m"
    source.mkdir()
    shutil.copyfile(GOLDEN / "inference_combined" / "params", source / "params")
    with pytest.raises((FormatError, LoadError), match="params"):
        fluid.convert(source, tmp_path / "m.npz")
    shutil.copyfile(GOLDEN / "inference_combined" / "model", source / program)
    fluid.convert(source, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as found:
        assert sorted(found) == ["fc_0.b_0", "fc_0.w_0"]
        for name, value in found.items():
            assert (GOLDEN / "inference" / name).read_bytes().endswith(value.tobytes())
    (source / "more").write_bytes((source / "params").read_bytes())  # which one is the program's?
    with pytest.raises((FormatError, LoadError)):
        fluid.convert(source, tmp_path / "m.npz", overwrite=True)


def test_a_combined_file_without_names_needs_them_as_an_argument(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "inference_combined" / "params", tmp_path / "params")
    with pytest.raises(LoadError, match="stores no names"):
        split(tmp_path / "params", tmp_path / "s")
    with pytest.raises(LoadError, match="stores no names"):  # whose order is that of a merged file
        merge(tmp_path / "params", tmp_path / "s")
    with pytest.raises(LoadError, match="2 variables, 1 names"):
        split(tmp_path / "params", tmp_path / "s", ["w"])
    split(tmp_path / "params", tmp_path / "s", ["w", "b"])  # in sorted order, as Fluid writes them
    assert (tmp_path / "s" / "b").read_bytes() == (GOLDEN / "inference" / "fc_0.b_0").read_bytes()


def test_a_program_that_is_not_understood_is_copied_and_reported(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN.parent / "paddle300", tmp_path / "a")
    program = tmp_path / "a" / "inference.json"
    program.write_text(program.read_text().replace('"1.add"', '"1.frobnicate"'))
    names = ["--names", "fc_0.b_0,fc_0.w_0"]
    for command, source, target, more in (("split", "a", "b", names), ("merge", "b", "c", [])):
        done = CliRunner().invoke(app, [command, str(tmp_path / source), str(tmp_path / target), *more])
        assert (done.exit_code, "inference.json was copied, but not understood" in done.stderr) == (3, True)
        assert "operators that are not supported: frobnicate" in done.stderr
        assert (tmp_path / target / "inference.json").read_bytes() == program.read_bytes()
    merged, real = (tmp_path / "c" / "__params__", tmp_path / "a" / "inference.pdiparams")
    assert merged.read_bytes() == real.read_bytes()


def test_a_model_file_of_other_bytes_is_copied_and_reported(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "inference", tmp_path / "a")
    (tmp_path / "a" / "__model__").write_bytes(b"garbage\0\1")
    done = CliRunner().invoke(app, ["merge", str(tmp_path / "a"), str(tmp_path / "b")])
    assert done.exit_code == 3
    assert "__model__ was copied, but not understood: this is not a whole program" in done.stderr
    assert (tmp_path / "b" / "__model__").read_bytes() == b"garbage\0\1"


@pytest.mark.parametrize(
    "command",
    [
        *("merge", "split", "prune --fetch fc_0.tmp_1", "convert to", "convert to.npz", "convert to.pdmodel"),
        pytest.param("convert to.onnx", marks=pytest.mark.slow),
    ],
)
def test_every_file_of_a_directory_is_copied_or_named(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(GOLDEN / "inference", "from")
    others = {"notes.txt": b"trained twice", "more/words.json": b'{"a": 1}', "plot.png": b"\x89PNG\r\n"}
    for name, data in others.items():
        (tmp_path / "from" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "from" / name).write_bytes(data)
    np.savez("from/more.npz", ids=np.ones(3, "uint16"))
    name, *rest = command.split()
    done = CliRunner().invoke(app, [name, "from", *(rest if name == "convert" else ["to", *rest])])
    assert done.exit_code == 1, done.stderr
    assert "'ids' (an array of uint16)" in done.stderr
    for other, data in others.items():
        copied = tmp_path / "to" / other
        assert other in done.stderr
        assert name == "convert" or copied.read_bytes() == data


def test_values_that_a_converted_model_does_not_read_are_named(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "inference", tmp_path / "a")
    assert fluid.convert(tmp_path / "a", tmp_path / "whole.json")
    shutil.copy(GOLDEN / "inference" / "fc_0.b_0", tmp_path / "a" / "moment")
    report = fluid.convert(tmp_path / "a", tmp_path / "m.json")
    assert not report
    assert [str(one) for one in report.left_out] == ["'moment' (a variable in moment)"]
    np.savez(tmp_path / "a" / "second.npz", moment=np.ones(1, "float32"))  # of which file?
    with pytest.raises(FormatError, match=r"several arrays have the same name: \['moment'\]"):
        fluid.convert(tmp_path / "a", tmp_path / "values.npz")
    for door in (merge, split, convert_arrangement):
        with pytest.raises(LoadError, match=r"moment and second\.npz hold 'moment'"):
            door(tmp_path / "a", tmp_path / "b.json")


def test_a_folder_with_the_files_of_fluid_save_is_converted(tmp_path: Path) -> None:
    report = fluid.convert(GOLDEN / "fluid_save", tmp_path / "m.npz")
    wanted = fluid.load_program_state(str(GOLDEN / "fluid_save" / "model"))
    with np.load(tmp_path / "m.npz") as found:
        assert set(report.names) == set(found) == wanted.keys()
        assert all(np.array_equal(found[name], wanted[name]) for name in found)


def test_notes_that_paddle2_writes_beside_a_model_are_named_but_are_not_values(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN.parent / "paddle262" / "mlp_adam" / "inference", tmp_path / "m")
    notes = {"fc_0.w_0": {"structured_name": "0.weight", "stop_gradient": False, "trainable": True}}
    (tmp_path / "m" / "model.pdiparams.info").write_bytes(pickle.dumps(notes, 2))  # as paddle.jit.save does
    for target in ("v.npz", "m.json", "d"):
        report = fluid.convert(tmp_path / "m", tmp_path / target)
        assert report, target
        assert "'fc_0.w_0/structured_name' ('0.weight')" in str(report)


def test_a_model_pruned_from_a_training_program_predicts(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "persistables", tmp_path / "t")
    shutil.copy(GOLDEN / "programs" / "main_train.pb", tmp_path / "t" / "__model__")
    done = prune(tmp_path / "t", tmp_path / "p", ["x"], ["fc_0.tmp_1"])
    assert sorted(done.files) == ["__model__", "fc_0.b_0", "fc_0.w_0"]
    exe = fluid.Executor()
    data = np.load(GOLDEN / "io.npz")
    x = next(data[name] for name in data.files if data[name].shape[-1] == 13)
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path / "p"), exe)
        (made,) = exe.run(program, feed={feeds[0]: x}, fetch_list=fetches)
    w = np.frombuffer((GOLDEN / "persistables" / "fc_0.w_0").read_bytes()[-52:], "<f4").reshape(13, 1)
    b = np.frombuffer((GOLDEN / "persistables" / "fc_0.b_0").read_bytes()[-4:], "<f4")
    np.testing.assert_allclose(made, x @ w + b, rtol=1e-5)  # two orders of a float32 sum of 13


def test_refused_conversions_write_nothing(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="no variable 'nothing'"):
        prune(GOLDEN / "inference", tmp_path / "p", None, ["nothing"])
    with pytest.raises(SaveError, match="exists and holds files"):
        merge(GOLDEN / "inference", GOLDEN / "persistables")
    assert list(tmp_path.iterdir()) == []
