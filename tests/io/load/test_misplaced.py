"""Loads that are given the path above, or beside, what was saved: the error names the right one."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError, NotInitializedError
from paddlelike.io.load.misplaced import explain_prefix
from tests.io.loading import executor, network, save


def refuse(call: Any, *args: Any, **kwargs: Any) -> str:
    """Return the text of the refusal of a call."""
    with fluid.scope_guard(fluid.Scope()), pytest.raises(LoadError) as caught:
        call(*args, **kwargs)
    return str(caught.value)


def test_a_directory_with_one_combined_file_is_refused_with_the_right_call(tmp_path: Path) -> None:
    save(tmp_path, network(), "__params__")
    text = refuse(fluid.io.load_persistables, executor(), str(tmp_path), network()[0])
    assert f"{tmp_path} holds one combined file, '__params__'" in text
    assert text.endswith("hint: pass filename='__params__'")
    with fluid.scope_guard(fluid.Scope()):
        assert fluid.io.load_persistables(executor(), str(tmp_path), network()[0], "__params__")


def test_the_combined_file_of_another_network_is_not_proposed(tmp_path: Path) -> None:
    save(tmp_path, network(3), "__params__")
    text = refuse(fluid.io.load_persistables, executor(), str(tmp_path), network()[0])
    assert "there is no such file" in text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
@pytest.mark.parametrize("name", ["m", "m.pdparams"])
def test_a_pipe_in_place_of_a_saved_program_is_named(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    text = refuse(fluid.load, network()[0], str(tmp_path / "m"), executor())
    assert text.endswith(f"\n  hint: {tmp_path / name} is not a file: no pipe, socket or device is read")


@pytest.mark.parametrize("load", ["load_persistables", "load"])
def test_loading_the_parent_of_epoch_directories_names_the_newest_epoch(tmp_path: Path, load: str) -> None:
    for epoch in (2, 9, 10):
        save(tmp_path / f"epoch_{epoch}", network())
    main = network()[0]
    if load == "load":
        text = refuse(fluid.load, main, str(tmp_path), executor())
    else:
        text = refuse(fluid.io.load_persistables, executor(), str(tmp_path), main)
    assert text.endswith(f"did you mean {tmp_path}/epoch_10?")


def test_the_directory_of_a_fluid_save_is_refused_with_the_right_call(tmp_path: Path) -> None:
    main, startup = network()
    with fluid.scope_guard(fluid.Scope()):
        executor().run(startup)
        fluid.save(main, str(tmp_path / "model"))
    text = refuse(fluid.load, main, str(tmp_path))
    assert text.endswith(f"{tmp_path} is a directory that holds model.pdopt\n  hint: pass '{tmp_path}/model'")
    text = refuse(fluid.io.load_persistables, executor(), str(tmp_path), main)
    assert text.endswith(f"hint: fluid.load(program, '{tmp_path}/model')")


def test_loading_a_gradient_explains_that_gradients_are_not_saved(tmp_path: Path) -> None:
    main, startup = network()
    with fluid.scope_guard(fluid.Scope()):
        executor().run(startup)
        with pytest.raises(NotInitializedError, match=r"and v\.persistable"):
            fluid.io.save_vars(executor(), str(tmp_path), main, predicate=lambda v: "@GRAD" in v.name)


def test_an_unlistable_folder_does_not_change_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> list[str]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "listdir", refuse)
    assert explain_prefix(str(tmp_path / "model")) is None
