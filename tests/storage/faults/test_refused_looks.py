"""A path that the system refuses to look up is an error: it is not taken for one where nothing is.

``os.path.isdir`` and its kin answer "no" to EIO or ESTALE, so that a training would begin anew beside its
checkpoints.
"""

from __future__ import annotations

import errno
import mmap
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import PaddlelikeError
from paddlelike.io.checkpoints.numbered import NumberedCheckpoints
from paddlelike.io.incremental import ledger
from paddlelike.io.training_log import TrainingLog
from paddlelike.storage.problems import is_directory, is_file, is_there
from tests.storage.faults.test_table import EXE, READERS, build, get, put

ONLY_READ = ("manifest, load", "manifest, slice", "manifest, verify", "state, values", "model", "chain, link",
             "session", "log", "best")  # fmt: skip


def save_numbered(home: Path) -> None:
    put(1)
    NumberedCheckpoints(home / "m").save_numbered(EXE, build(), 1)


def restore_numbered(home: Path) -> float:
    put(-1)
    NumberedCheckpoints(home / "m").restore_newest(EXE, build())
    return get()


CASES = {name: (READERS[name].write, READERS[name].read) for name in ONLY_READ}
CASES["numbered"] = save_numbered, restore_numbered


@pytest.fixture(autouse=True)
def scope() -> Any:
    ledger.forget()
    with fluid.scope_guard(fluid.Scope()):
        yield


@pytest.mark.parametrize("name", CASES)
def test_an_error_in_each_file_status_call_is_handled(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, read = CASES[name]
    write(tmp_path)
    for number in range(1, 200):
        count = [0]
        ledger.forget()
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for call in ("stat", "lstat"):
                patch.setattr(os, call, refuse(getattr(os, call), str(tmp_path), number, count))
            try:
                found, said = read(tmp_path), ""
            except PaddlelikeError as error:
                found, said = None, str(error)
        assert found == 1 or (os.strerror(errno.ESTALE) in said and str(tmp_path) in said), (
            f"look {number}: {found}, and it said {said!r}"
        )
        if count[0] < number:
            return
    raise AssertionError("more than 200 looks")


def refuse(real: Callable[..., Any], home: str, number: int, count: list[int]) -> Callable[..., Any]:
    """Return ``os.stat`` or its kin, of which the ``number``-th call below ``home`` is refused."""

    def looked(path: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(path, int) and os.fspath(path).startswith(home):
            count[0] += 1
            if count[0] == number:
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), os.fspath(path))
        return real(path, *args, **kwargs)

    return looked


@pytest.mark.parametrize("source", ["m", "m.npz"])  # mapped as it lies, or through a temporary file
def test_a_conversion_names_the_file_that_cannot_be_mapped(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    READERS["manifest, load"].write(tmp_path)
    if source == "m.npz":
        np.savez_compressed(tmp_path / source, table=np.ones((2000, 16), "float32"))
    monkeypatch.setattr(mmap, "mmap", refuse_all)
    with pytest.raises(
        PaddlelikeError, match=f"({tmp_path}/m/|temporary file).*: {os.strerror(errno.ENODEV)}"
    ):
        fluid.convert(tmp_path / source, tmp_path / "out.safetensors")
    assert not (tmp_path / "out.safetensors").exists()


def refuse_all(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))


def test_path_checks_distinguish_files_directories_and_links(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "nowhere").symlink_to(tmp_path / "nothing")
    told = {
        name: (is_directory(path), is_directory(path, follow=False), is_file(path), is_there(path))
        for name in ("", "file", "link", "loop", "nowhere", "nothing", "file/below", "n" * 300, "a\0b")
        for path in [str(tmp_path / name)]
    }
    assert told == {
        "": (True, True, False, True),
        "file": (False, False, True, True),
        "link": (True, False, False, True),
        "loop": (False, False, False, True),
        "nowhere": (False, False, False, True),
        **dict.fromkeys(("nothing", "file/below", "n" * 300, "a\0b"), (False, False, False, False)),
    }


def load_combined(path: str) -> None:
    fluid.io.load_persistables(EXE, Path(path).parent, build(), Path(path).name)


def populate(path: str) -> None:
    collection = fluid.collection.ParameterCollection()
    collection.add_parameters((3,))
    collection.populate(path)


@pytest.mark.parametrize(
    "read",
    [
        load_combined,
        populate,
        fluid.bundle.load,
        lambda path: fluid.collection.load(path, fluid.collection.ParameterCollection()),
        lambda path: TrainingLog(path).curves(),
    ],
    ids=["combined", "collection", "bundle", "expressions", "log"],
)
def test_a_pipe_or_a_device_in_place_of_a_file_is_not_read(
    read: Callable[[str], object], tmp_path: Path
) -> None:
    """A pipe would be waited for, and a device may never end."""
    for name in ("it", "it.meta", "it.data"):
        os.mkfifo(tmp_path / name)
        (tmp_path / f"zero{name[2:]}").symlink_to("/dev/zero")
    with pytest.raises(PaddlelikeError, match="is a pipe; a file is expected"):
        read(str(tmp_path / "it"))
    with pytest.raises(PaddlelikeError, match="is a device; a file is expected"):
        read(str(tmp_path / "zero"))
