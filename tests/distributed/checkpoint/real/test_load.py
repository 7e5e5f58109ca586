"""A server loads its rows of a directory that a real trainer 0 wrote."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError, MissingFileError
from tests.distributed.checkpoint.real.runs import find_placement, program_of, run_of, saved_by

RUN = "mlp_momentum_sync_2x2"


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("form", ["", "_startup"], ids=["main", "startup"])
def test_every_value_matches_the_real_server(number: int, form: str) -> None:
    exe = fluid.Executor()
    exe.run(program_of(RUN, f"pserver{number}_startup"))
    report = fluid.io.load_persistables(exe, saved_by(RUN), program_of(RUN, f"pserver{number}{form}"))
    expected = run_of(RUN)["pserver_values_after_load"][number]
    assert report
    assert set(report.loaded) == set(expected) - {"learning_rate_0"}
    for name, value in expected.items():
        array = np.array(fluid.global_scope().find_var(name).get_tensor())
        assert list(array.shape) == value["shape"], name
        assert hashlib.sha256(array.tobytes()).hexdigest() == value["sha256"], name


def test_in_place_loads_fill_the_existing_arrays() -> None:
    exe = fluid.Executor()
    exe.run(program_of(RUN, "pserver0_startup"))
    tensor = fluid.global_scope().find_var("fc_0.w_0.block1").get_tensor()
    before = tensor.held_array
    fluid.io.load_persistables(exe, saved_by(RUN), program_of(RUN, "pserver0"), in_place=True)
    assert tensor.held_array is before
    expected = run_of(RUN)["pserver_values_after_load"][0]["fc_0.w_0.block1"]
    assert hashlib.sha256(before.tobytes()).hexdigest() == expected["sha256"]


def test_bytes_after_the_tensor_are_ignored(tmp_path: Path) -> None:
    """The files that Fluid's recv_save writes may be longer than their tensor."""
    exe, program = fluid.Executor(), program_of(RUN, "pserver0")
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(exe, saved_by(RUN), program)
        plain = np.array(fluid.global_scope().find_var("fc_0.w_0_velocity_0").get_tensor())
    shutil.copytree(saved_by(RUN), tmp_path / "longer")
    for path in (tmp_path / "longer").iterdir():
        path.write_bytes(path.read_bytes() + b"\x07" * 7)
    report = fluid.io.load_persistables(exe, str(tmp_path / "longer"), program)
    loaded = np.array(fluid.global_scope().find_var("fc_0.w_0_velocity_0").get_tensor())
    assert np.array_equal(loaded, plain)
    assert any("7 bytes after the tensor" in note for note in report.notes)


def test_a_file_of_another_shape_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    """A cut model: the rows asked for would be there, but they would be others."""
    exe = fluid.Executor()
    shutil.copytree(saved_by(RUN), tmp_path / "model")
    other = fluid.Program()
    with fluid.program_guard(other):
        fluid.layers.create_parameter([140, 128], "float32", name="fc_0.w_0")
    with fluid.scope_guard(fluid.Scope()):
        fluid.global_scope().var("fc_0.w_0").get_tensor().set(np.zeros((140, 128), "float32"))
        fluid.io.save_persistables(exe, str(tmp_path / "other"), other)
    shutil.copy(tmp_path / "other" / "fc_0.w_0", tmp_path / "model" / "fc_0.w_0")
    with pytest.raises(LoadError, match=r"file fc_0.w_0 holds FP32\[140, 128\].*\[130, 128\]"):
        fluid.io.load_persistables(exe, str(tmp_path / "model"), program_of(RUN, "pserver0"))
    assert fluid.global_scope().find_var("fc_0.b_0") is None


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    shutil.copytree(saved_by(RUN), tmp_path / "model")
    path = tmp_path / "model" / "fc_0.w_0"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(LoadError, match=r"fc_0\.w_0\.block0: .* 66559 are left"):
        fluid.io.load_persistables(fluid.Executor(), str(tmp_path / "model"), program_of(RUN, "pserver1"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    shutil.copytree(saved_by(RUN), tmp_path / "model")
    (tmp_path / "model" / "fc_0.w_0_velocity_0").unlink()
    with pytest.raises(MissingFileError, match=r"fc_0\.w_0_velocity_0"):
        fluid.io.load_persistables(fluid.Executor(), str(tmp_path / "model"), program_of(RUN, "pserver1"))


def test_an_unsaved_learning_rate_keeps_its_startup_value() -> None:
    placement = find_placement(RUN)
    exe = fluid.Executor()
    exe.run(program_of(RUN, "pserver0_startup", placement))
    fluid.io.load_persistables(exe, saved_by(RUN), program_of(RUN, "pserver0", placement))
    rate = np.array(fluid.global_scope().find_var("learning_rate_0").get_tensor())
    assert rate == np.float32(0.01)


def test_an_unknown_endpoint_is_an_error_that_lists_the_servers() -> None:
    program = program_of(RUN, "pserver0_startup")
    program._ps_endpoint = "127.0.0.1:9999"
    with pytest.raises(LoadError, match=r"127.0.0.1:9999 is not one of the parameter servers 127.0.0.1:6174"):
        fluid.io.load_persistables(fluid.Executor(), saved_by(RUN), program)


def test_a_program_without_a_placement_is_an_error_with_its_cause() -> None:
    program = program_of(RUN, "pserver0")
    program._parameters_on_pservers = None
    with pytest.raises(LoadError, match=r"server 127.0.0.1:6174 has no placement"):
        fluid.io.load_persistables(fluid.Executor(), saved_by(RUN), program)


def test_a_plan_lists_the_variables_that_a_server_would_load() -> None:
    plan = fluid.io.plan_load(saved_by(RUN), program_of(RUN, "pserver1"))
    assert plan
    assert {row.variable: row.file for row in plan.rows if row.what == "load"}[
        "fc_0.w_0.block0"
    ] == "fc_0.w_0"
    assert not plan.chosen("not requested")


def test_a_server_that_loads_with_the_program_of_a_trainer_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own rows would stay as startup made them, and nobody would notice."""
    fluid.layers.fc(fluid.data("x", [None, 130]), 128)
    program = fluid.default_main_program()
    program._is_distributed, program._parameters_on_pservers = True, find_placement(RUN)
    assert fluid.io.load_persistables(fluid.Executor(), saved_by(RUN), program)
    monkeypatch.setenv("TRAINING_ROLE", "PSERVER")
    with pytest.raises(LoadError, match="this process is a parameter server"):
        fluid.io.load_persistables(fluid.Executor(), saved_by(RUN), program)
