"""A server writes only below the directories that it was started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlelike.distributed.server.save_roots import check_save_directory
from paddlelike.distributed.settings import Settings
from paddlelike.errors import SaveError

HERE = "127.0.0.1:6174"


@pytest.mark.parametrize(
    "directory",
    ["saves", "saves/", "saves/7", "saves/7.saving/new", "saves.saving/new/", ".saves.saving-3f2a/new"],
)
def test_directories_below_a_root_and_staging_directories_are_allowed(tmp_path: Path, directory: str) -> None:
    check_save_directory(f"{tmp_path}/{directory}", [str(tmp_path / "saves")], HERE)


@pytest.mark.parametrize(
    "directory", [".", "..", "saves/../other", "saves2", "saves.old", ".ssh", "other/saves", "link/x"]
)
def test_other_directories_are_refused(tmp_path: Path, directory: str) -> None:
    (tmp_path / "saves").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(SaveError) as caught:
        check_save_directory(f"{tmp_path}/{directory}", [str(tmp_path / "saves")], HERE)
    assert f"the server at {HERE} does not write into {tmp_path}/{directory}" in str(caught.value)
    assert "PADDLELIKE_CHECKPOINT_DIR=DIR" in str(caught.value)


def test_a_link_inside_a_root_does_not_lead_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "saves").mkdir()
    (tmp_path / "saves" / "out").symlink_to(tmp_path)
    with pytest.raises(SaveError):
        check_save_directory(f"{tmp_path}/saves/out/x", [str(tmp_path / "saves")], HERE)


def test_the_roots_are_the_checkpoint_directory_or_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Settings.from_environment({}).save_roots == (str(tmp_path),)
    named = Settings.from_environment({"PADDLELIKE_CHECKPOINT_DIR": "saves"})
    assert named.save_roots == (str(tmp_path / "saves"),)


def test_a_server_that_was_started_in_the_root_directory_writes_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    with pytest.raises(SaveError, match="it was started in / without PADDLELIKE_CHECKPOINT_DIR"):
        check_save_directory(str(tmp_path), Settings.from_environment({}).save_roots, HERE)
