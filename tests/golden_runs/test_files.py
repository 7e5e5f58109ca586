"""What we write are the bytes that real Fluid 1.8.5 writes; what it wrote we read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.framework.codec.schema import messages
from paddlelike.storage.names import MANIFEST
from tests.helpers.canonical import assert_same_program, canonical
from tests.helpers.golden_data import GOLDEN, Arrays, arrays, manifest, with_lod
from tests.helpers.networks import NETWORKS
from tests.helpers.runs import Run, building
from tests.zoo.encoded import digest


@pytest.fixture(params=NETWORKS)
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """A network that holds the values of the real checkpoint."""
    with building(request.param) as run:
        run.exe.run(run.startup)
        golden = GOLDEN / run.name
        fluid.io.load_persistables(run.exe, str(golden / "persistables"), run.main)
        yield run


def contents(directory: Path) -> dict[str, bytes]:
    """The files of a directory, without the manifest that we add."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != MANIFEST
    }


def test_the_values_read_equal_the_recorded_ones(run: Run) -> None:
    files = manifest(run.name)["persistables_dir"]
    digests = {key: hashlib.sha256(value.tobytes()).hexdigest() for key, value in run.values().items()}
    assert digests == {key: entry["sha256"] for key, entry in files.items()}


def test_save_persistables_writes_one_file_per_persistable(run: Run, tmp_path: Path) -> None:
    fluid.io.save_persistables(run.exe, str(tmp_path / "ours"), run.main)
    assert contents(tmp_path / "ours") == contents(GOLDEN / run.name / "persistables")


def test_without_a_manifest_the_directory_contains_only_paddle_files(run: Run, tmp_path: Path) -> None:
    fluid.io.save_persistables(run.exe, str(tmp_path / "ours"), run.main, manifest=False)
    assert not (tmp_path / "ours" / MANIFEST).exists()
    assert contents(tmp_path / "ours") == contents(GOLDEN / run.name / "persistables")


def test_a_save_of_parameters_writes_one_file_per_parameter(run: Run, tmp_path: Path) -> None:
    fluid.io.save_params(run.exe, str(tmp_path / "ours"), run.main)
    ours, theirs = contents(tmp_path / "ours"), contents(GOLDEN / run.name / "persistables")
    assert sorted(ours) == manifest(run.name)["params_dir"]
    assert ours == {key: theirs[key] for key in ours}


def test_combined_files_have_the_bytes_of_fluid(run: Run, tmp_path: Path) -> None:
    directory = str(tmp_path / "ours")
    fluid.io.save_persistables(run.exe, directory, run.main, filename="all_persistables")
    fluid.io.save_params(run.exe, directory, run.main, filename="all_params")
    assert contents(tmp_path / "ours") == contents(GOLDEN / run.name / "combined")


def overwrite_all(run: Run) -> None:
    for key, value in run.values().items():
        tensor = fluid.global_scope().find_var(key).get_tensor()
        tensor.set(np.full_like(value, 7), fluid.CPUPlace())


def assert_restored(run: Run, want: Arrays) -> None:
    got = run.values()
    assert {key: got[key].tobytes() for key in want} == {k: v.tobytes() for k, v in want.items()}


def test_a_combined_file_of_fluid_is_read(run: Run) -> None:
    want = run.values()
    overwrite_all(run)
    directory = str(GOLDEN / run.name / "combined")
    fluid.io.load_persistables(run.exe, directory, run.main, filename="all_persistables")
    assert_restored(run, want)


def test_the_files_of_fluid_save_are_read(run: Run) -> None:
    want = run.values()
    overwrite_all(run)
    fluid.load(run.main, str(GOLDEN / run.name / "fluid_save" / "model"), run.exe)
    assert_restored(run, want)


def test_real_files_give_a_program_state(run: Run) -> None:
    golden, want = GOLDEN / run.name, run.values()
    for path in (golden / "persistables", golden / "fluid_save" / "model"):
        state = fluid.io.load_program_state(str(path))
        assert {k: v.tobytes() for k, v in state.items()} == {k: v.tobytes() for k, v in want.items()}


def test_an_inference_directory_has_the_files_of_fluid(run: Run, tmp_path: Path) -> None:
    """`__model__` is compared without the lines of the script."""
    recorded, golden = manifest(run.name), GOLDEN / run.name
    for kind, names, returned in (
        ("inference", {}, "save_inference_model_returns"),
        (
            "inference_combined",
            {"model_filename": "model", "params_filename": "params"},
            "save_inference_model_combined_returns",
        ),
    ):
        clone = run.main.clone()
        targets = [clone.global_block().var(v.name) for v in run.built.infer]
        result = fluid.io.save_inference_model(
            str(tmp_path / kind), run.built.infer_feed, targets, run.exe, clone, **names
        )
        assert result == recorded[returned]
        ours, theirs = contents(tmp_path / kind), contents(golden / kind)
        model = names.get("model_filename", "__model__")
        mine, real = ours.pop(model), theirs.pop(model)
        assert_same_program(canonical(mine), canonical(real))  # says what differs
        assert digest(mine, messages().ProgramDesc) == digest(real, messages().ProgramDesc)
        assert ours == theirs


@pytest.mark.parametrize("combined", [False, True], ids=["separate", "combined"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_real_inference_model_runs_here(name: str, combined: bool) -> None:
    want = list(arrays(name, "io", "infer_out/").values())
    recorded = with_lod(fluid, arrays(name, "io", "infer_in/"))
    exe = fluid.Executor(fluid.CPUPlace())
    where = str(GOLDEN / name / ("inference_combined" if combined else "inference"))
    files = ("model", "params") if combined else ()
    program, feeds, targets = fluid.io.load_inference_model(where, exe, *files)
    assert feeds == manifest(name)["infer_feed"]
    got = exe.run(program, feed={n: recorded[n] for n in feeds}, fetch_list=targets)
    for ours, theirs in zip(got, want, strict=False):  # the recorded outputs end with the loss
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)
