"""The training position of a saved directory, for servers that saved it and for others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed.server.position import empty_load, note_empty_load, read_position
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


def test_a_server_that_did_not_save_takes_the_round_that_all_have(tmp_path: Path) -> None:
    positions = {"a:1": {"round": 9, "updates": [[0, 5, 4]]}, "b:1": {"round": 7}, "c:1": "?"}
    path = save_with(tmp_path / "model", {"servers": positions})
    assert read_position(path, "d:1") == {"round": 7}
    assert read_position(path) == {"round": 7}
    assert read_position(path, "c:1") is None


@pytest.mark.parametrize("state", [None, {}, {"servers": {}}, {"servers": [1]}, {"epoch": 3}, [1, 2]])
def test_a_state_of_something_else_has_no_position(tmp_path: Path, state: Any) -> None:
    assert read_position(save_with(tmp_path / "model", state), "a:1") is None


def test_a_directory_without_a_manifest_has_no_position(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"".join(lod_tensor.encode(fluid.LoDTensor(np.ones(2, "float32")))))
    assert read_position(tmp_path, "a:1") is None


def test_each_scope_remembers_that_nothing_was_loaded_into_it() -> None:
    one, other = fluid.Scope(), fluid.Scope()
    note_empty_load(one, "models")
    assert (empty_load(one), empty_load(other)) == ("models", None)
