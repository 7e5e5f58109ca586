"""What is odd about damaged, incomplete and foreign files, and the calls that open good ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.inspection import diagnose

GOLDEN = Path(__file__).parents[1] / "golden" / "fit_a_line"


@pytest.mark.parametrize("form", ["inference", "inference_combined", "persistables", "fluid_save/model"])
def test_files_of_paddle_have_no_problems(form: str) -> None:
    assert diagnose(GOLDEN / form)


def test_the_call_suggested_for_a_model_opens_it() -> None:
    calls = dict(diagnose(GOLDEN / "inference_combined").calls)
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, _ = eval(calls["paddlelike"], {"fluid": fluid, "exe": exe})
    assert feeds == ["x"]
    assert program.global_block().has_var("fc_0.w_0")


def test_a_missing_parameter_is_named(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "inference", tmp_path / "m")
    (tmp_path / "m" / "fc_0.w_0").unlink()
    found = diagnose(tmp_path / "m")
    assert found.findings[0].level == "error"
    assert "needs 1 variable that no file holds: fc_0.w_0" in found.findings[0].what


def test_a_flipped_bit_is_found_by_the_manifest(tmp_path: Path) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        fluid.io.save_persistables(exe, str(tmp_path / "m"), main)
    assert not [one for one in diagnose(tmp_path / "m").findings if one.level == "error"]
    path = tmp_path / "m" / "fc_0.w_0"
    data = bytearray(path.read_bytes())
    data[-2] ^= 0x40
    path.write_bytes(data)
    assert [one.what for one in diagnose(tmp_path / "m").findings if one.level == "error"] == [
        "fc_0.w_0 has other bytes than when it was saved"
    ]


def test_empty_directories_and_directories_of_epochs_are_diagnosed(tmp_path: Path) -> None:
    assert not diagnose(tmp_path)
    shutil.copytree(GOLDEN / "persistables", tmp_path / "epoch_0")
    found = diagnose(tmp_path)
    assert any("one level deeper, in epoch_0" in one.what for one in found.findings)


def test_nan_values_are_diagnosed_as_an_error(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", w=np.float32([np.nan, 1]))
    (finding,) = [one for one in diagnose(tmp_path / "a.npz").findings if one.level == "error"]
    assert finding.what == "w: 1 of 2 elements are NaN or infinite"


def test_a_pair_of_dynet_files_has_no_problems(tmp_path: Path) -> None:
    for end in ("data", "meta"):
        shutil.copy(GOLDEN.parent / "dynet" / f"ln-pair.{end}", tmp_path)
    assert diagnose(tmp_path)
    assert diagnose(tmp_path / "ln-pair.meta").title == "the classes of a pair of files of DyNet"
