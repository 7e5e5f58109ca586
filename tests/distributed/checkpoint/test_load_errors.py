"""What a server says that cannot load: who it is, which directory, which file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError, MissingFileError
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.checkpoint.test_resume import ADAM
from tests.distributed.jobs import perceptron_feeds


@pytest.fixture(scope="module")
def job_and_model(tmp_path_factory: Any) -> Any:
    model = tmp_path_factory.mktemp("saved") / "model"
    with SavingJob(ADAM, servers=2, trainers=1) as job:
        job.go(perceptron_feeds, 0, 2, save=(1, model))
    return job, model


def load_on_first_server(job: SavingJob, directory: Path) -> str:
    """Return the text of the error."""
    programs, exe = job.server(job.endpoints[0]), fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(programs.startup)
        with pytest.raises(LoadError) as caught:
            fluid.io.load_persistables(exe, str(directory), programs.main)
    assert str(caught.value).startswith(f"the server at {job.endpoints[0]}: ")
    assert str(directory) in str(caught.value)
    return str(caught.value)


def test_loading_a_directory_that_does_not_exist_is_refused(job_and_model: Any, tmp_path: Path) -> None:
    job, _ = job_and_model
    assert "does not exist" in load_on_first_server(job, tmp_path / "nothing")


@pytest.mark.parametrize("content", [None, b"hello, not a variable"], ids=["empty", "foreign"])
def test_a_directory_without_variables_is_refused_with_every_name(
    job_and_model: Any, tmp_path: Path, content: bytes | None
) -> None:
    job, _ = job_and_model
    if content is not None:
        (tmp_path / "notes.txt").write_bytes(content)
    text = load_on_first_server(job, tmp_path)
    assert "fc_1.w_0: there is no such file" in text


def test_a_missing_file_is_named_as_the_file(job_and_model: Any, tmp_path: Path) -> None:
    job, model = job_and_model
    shutil.copytree(model, tmp_path / "model")
    (tmp_path / "model" / "fc_0.w_0").unlink()
    text = load_on_first_server(job, tmp_path / "model")
    assert "\n  fc_0.w_0: there is no such file; fc_0.w_0.block" in text


def test_a_file_of_another_shape_is_refused(job_and_model: Any, tmp_path: Path) -> None:
    job, model = job_and_model
    shutil.copytree(model, tmp_path / "model")
    shutil.copy(model / "fc_1.w_0", tmp_path / "model" / "fc_0.w_0")
    text = load_on_first_server(job, tmp_path / "model")
    assert "file fc_0.w_0 holds FP32[320, 1], the servers' slices are cut from FP32[130, 320]" in text


def test_an_error_of_one_process_names_no_server(tmp_path: Path) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        fluid.layers.fc(fluid.data("x", [None, 2]), 1)
    with pytest.raises(MissingFileError, match=r"^nothing") as caught:
        fluid.io.load_persistables(fluid.Executor(), str(tmp_path), main)
    assert "server" not in str(caught.value)
