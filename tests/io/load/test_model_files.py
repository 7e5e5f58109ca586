"""A model of Paddle 2 or 3 by the prefix of its files, by one of them, and by its directory."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import VarType
from paddlelike.errors import MissingFileError, StorageError
from paddlelike.inspection.diagnosis import diagnose
from tests.models.archive import read_archive, write_files

FILES = read_archive("layers262")["linear"]
FORMS = ["m", "m.pdmodel", "m.json", "."]


@pytest.fixture(params=FORMS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """What names the model: of Paddle 3 where it is ``m.json``."""
    (tmp_path / "real").mkdir()
    write_files({name: data for name, data in FILES.items() if name != "io.npz"}, tmp_path / "real")
    if request.param == "m.json":
        fluid.convert(tmp_path / "real/model.pdmodel", tmp_path / "model/m.json")
    else:
        (tmp_path / "model").mkdir()
        for end in ("pdmodel", "pdiparams"):
            (tmp_path / "real" / f"model.{end}").rename(tmp_path / "model" / f"m.{end}")
    return str(tmp_path / "model" / request.param).removesuffix("/.")


def open_model(path: str, *names: str) -> fluid.Program:
    """Return the program of a model, whose numbers are those that Paddle recorded."""
    with fluid.scope_guard(fluid.Scope()), np.load(io.BytesIO(FILES["io.npz"])) as arrays:
        program, (feed,), fetches = fluid.io.load_inference_model(path, exe := fluid.Executor(), *names)
        (out,) = exe.run(program, feed={feed: arrays["in0"]}, fetch_list=fetches)
        np.testing.assert_allclose(out, arrays["out0"], rtol=2e-5, atol=2e-5)
    return program


def test_every_load_accepts_the_path_prefix_of_a_model(path: str) -> None:
    program = open_model(path)
    names = sorted(v.name for v in program.list_vars() if v.persistable and v.type == VarType.LOD_TENSOR)
    assert len(names) == 2
    for load in (
        lambda: fluid.load(program, path),
        lambda: fluid.io.load_persistables(fluid.Executor(), path, program),
        lambda: fluid.io.load_vars(fluid.Executor(), path, program, vars=names),
    ):
        with fluid.scope_guard(fluid.Scope()):
            assert sorted(load().loaded) == names
    assert sorted(fluid.load_program_state(path)) == names


def test_parameters_of_a_built_network_load_from_the_path_prefix_of_a_model(path: str) -> None:
    built = fluid.Program()
    for one in open_model(path).list_vars():
        if one.persistable and one.type == VarType.LOD_TENSOR:
            built.global_block().create_parameter(name=one.name, shape=one.shape, dtype=one.dtype)
    for load in fluid.io.load_params, fluid.io.load_persistables:
        with fluid.scope_guard(fluid.Scope()):
            assert len(load(fluid.Executor(), path, built).loaded) == 2


def test_conversions_accept_the_path_prefix_of_a_model(path: str, tmp_path: Path) -> None:
    assert len(fluid.convert(path, tmp_path / "values.npz").names) == 2
    for target in "again.pdmodel", "newer.json", "old":
        fluid.convert(path, tmp_path / target)
    for one in "again", "newer":
        open_model(str(tmp_path / one))
    open_model(str(tmp_path / "old"), "__model__", "__params__")


def test_a_directory_of_a_model_becomes_a_directory_of_values_when_the_format_says_so(
    path: str, tmp_path: Path
) -> None:
    names = fluid.convert(path, tmp_path / "values", format="directory").names
    assert {one.name for one in (tmp_path / "values").iterdir()} == {*names, "__manifest__"}


@pytest.mark.parametrize("_", [pytest.param("", marks=pytest.mark.slow)])
def test_commands_accept_the_path_prefix_of_a_model(path: str, tmp_path: Path, _: str) -> None:
    from typer.testing import CliRunner

    from paddlelike.cli.app import app
    from paddlelike.view.server import Predictor

    with np.load(io.BytesIO(FILES["io.npz"])) as arrays, fluid.scope_guard(fluid.Scope()):
        _, (feed,), (fetch,) = fluid.io.load_inference_model(path, fluid.Executor())
        given = arrays["in0"]
        np.savez(tmp_path / "in.npz", **{feed: given})
        np.savez(tmp_path / "out.npz", **{fetch.name: arrays["out0"]})
    inputs, expected, part = (str(tmp_path / name) for name in ("in.npz", "out.npz", "part"))
    for command in (
        ["check", path, inputs, "--expected", expected],
        ["prune", path, part, "--fetch", fetch.name],
        ["check", part, inputs, "--expected", expected],
        ["plan", path, "--program", path],
    ):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
    assert list(Predictor(path).run({feed: given.tolist()})["outputs"]) == [fetch.name]


def test_following_the_advice_of_doctor_opens_the_model(path: str) -> None:
    calls = dict(diagnose(path).calls)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        program, _, _ = eval(calls.pop("paddlelike"), {"fluid": fluid, "exe": exe})
    assert program.global_block().ops
    prefix = (
        str(Path(path) / "m") if Path(path).is_dir() else path.removesuffix(".pdmodel").removesuffix(".json")
    )
    call = f"paddle.static.load_inference_model({prefix!r}, exe)"
    in_new = f"{call}, with FLAGS_enable_pir_api=0 in the environment"
    is_new = path.endswith("m.json")
    assert calls == ({"Paddle 3.x": call} if is_new else {"Paddle 2.x": call, "Paddle 3.x": in_new})


def test_paths_without_a_model_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"name": 1}')
    with pytest.raises(MissingFileError, match="no such file"):
        fluid.io.load_inference_model(tmp_path, fluid.Executor())
    with pytest.raises(ValueError, match="there is no directory"):
        fluid.io.load_inference_model(str(tmp_path / "config"), fluid.Executor())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
def test_a_pipe_in_place_of_a_combined_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "all")
    program = fluid.Program()
    program.global_block().create_parameter(name="w", shape=[2], dtype="float32")
    with pytest.raises(StorageError, match="all is a pipe; a file is expected"):
        fluid.io.load_persistables(fluid.Executor(), tmp_path, program, "all")
