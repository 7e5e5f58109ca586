"""What a server takes and knows: positions, signs of life, directories, values."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed.server.position import empty_load, note_empty_load, read_position
from paddlelike.distributed.server.presence import Presence
from paddlelike.distributed.server.save_roots import check_save_directory
from paddlelike.distributed.server.variables import Variables
from paddlelike.distributed.settings import Settings
from paddlelike.errors import EnforceNotMet, SaveError
from paddlelike.formats.paddle import lod_tensor
from paddlelike.storage.location import locate


def save_with(directory: Path, state: Any) -> Path:
    with locate(directory).begin(state=state) as writing:
        writing.add("w", lod_tensor.encode(fluid.LoDTensor(np.ones(2, "float32"))))
        writing.commit()
    return directory


def test_every_server_reads_its_own_position(tmp_path: Path) -> None:
    positions = {"a:1": {"round": 9, "updates": [[0, 5, 4]]}, "b:1": {"round": 9, "updates": []}}
    path = save_with(tmp_path / "model", {"servers": positions})
    assert read_position(path, "a:1") == positions["a:1"]
    assert read_position(path, "b:1") == positions["b:1"]


def test_a_server_without_a_position_takes_the_earliest_round(tmp_path: Path) -> None:
    positions = {"a:1": {"round": 9, "updates": [[0, 5, 4]]}, "b:1": {"round": 7}, "c:1": "?"}
    path = save_with(tmp_path / "model", {"servers": positions})
    assert read_position(path, "d:1") == {"round": 7}
    assert read_position(path) == {"round": 7}
    assert read_position(path, "c:1") is None


@pytest.mark.parametrize("state", [None, {}, {"servers": {}}, {"servers": [1]}, {"epoch": 3}, [1, 2]])
def test_a_state_of_another_kind_has_no_position(tmp_path: Path, state: Any) -> None:
    assert read_position(save_with(tmp_path / "model", state), "a:1") is None


def test_a_directory_without_a_manifest_has_no_position(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"".join(lod_tensor.encode(fluid.LoDTensor(np.ones(2, "float32")))))
    assert read_position(tmp_path, "a:1") is None


def test_each_scope_remembers_that_nothing_was_loaded_into_it() -> None:
    one, other = fluid.Scope(), fluid.Scope()
    note_empty_load(one, "models")
    assert (empty_load(one), empty_load(other)) == ("models", None)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_trainer_is_silent_when_its_lease_is_over() -> None:
    clock = Clock()
    presence = Presence(3, lease=30.0, clock=clock)
    clock.now += 20
    presence.hear(2)
    clock.now += 15
    assert presence.silent([0, 1, 2]) == [0, 1]
    assert presence.silent([2]) == []
    clock.now += 20
    assert presence.silent([0, 1, 2]) == [0, 1, 2]


def test_a_server_waits_without_limit_until_a_trainer_connects() -> None:
    clock = Clock()
    presence = Presence(2, lease=1.0, clock=clock)
    clock.now += 1000
    assert presence.seconds_alone([0, 1]) == 0
    presence.hear(0)
    clock.now += 7
    presence.hear(1)
    clock.now += 5
    assert presence.seconds_alone([0, 1]) == 5
    assert presence.seconds_alone([0]) == 12
    assert presence.seconds_alone([]) == 0


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


def test_save_roots_are_the_checkpoint_directory_or_the_working_directory(
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


def value(held: Any, shape: tuple[int, ...]) -> Any:
    variables: Any = object.__new__(Variables)
    variables._find_value = lambda entry: held
    variables._served = SimpleNamespace(endpoint="127.0.0.1:6174")
    return variables.value(SimpleNamespace(name="learning_rate_0", shape=shape))


def test_a_zero_dim_array_loads_into_a_variable_of_one_element() -> None:
    assert value(np.array(0.5, "float32"), (1,)).tolist() == [0.5]


@pytest.mark.parametrize("shape", [(2,), (1, 1)])
def test_a_zero_dim_array_is_refused_for_other_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(EnforceNotMet, match="learning_rate_0"):
        value(np.array(0.5, "float32"), shape)
