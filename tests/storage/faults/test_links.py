"""Links, pipes, devices and sockets where files are expected, and journals that reach for other files.

Links are followed when files are read; nothing is ever written through one, and ``verify`` names them.
"""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError, PaddlelikeError, SaveError, StorageError
from paddlelike.formats.paddle import lod_tensor
from paddlelike.storage import manifest
from paddlelike.storage.local import manifest_file
from paddlelike.storage.local.files import File, list_names, read_front, recover
from paddlelike.storage.local.filesystem.retired import walk
from paddlelike.storage.local.journal import recover as recover_layout
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.local.transaction import Transaction, write_all
from tests.io.loading import executor, program_of, value

ONES = np.ones((200, 100), "float32")  # large enough to be mapped
W = b"".join(lod_tensor.encode(ONES))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "w").write_bytes(W)
    with Transaction(tmp_path / "m") as transaction:
        transaction.add("w", [W])
        transaction.add("sub/v", [W])
    return tmp_path / "m"


def load(directory: Path, **options: Any) -> Any:
    program = program_of(w=([200, 100], "float32"))
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_vars(executor(), directory, program, vars=list(program.list_vars()), **options)
        return value("w")


# Links


@pytest.mark.parametrize("lazy", [False, True])
def test_a_link_is_followed_when_it_is_read(model: Path, lazy: bool) -> None:
    (model / "w").unlink()
    (model / "w").symlink_to("../outside/w")
    (model.parent / "latest").symlink_to("m")
    for directory in (model, model.parent / "latest"):
        np.testing.assert_array_equal(load(directory, lazy=lazy), ONES)
    np.testing.assert_array_equal(load(model, verify=True), ONES)


@pytest.mark.parametrize("to", ["nowhere", "w", "../outside", "/dev/zero", "/proc/self/mem", "/etc/hostname"])
def test_the_error_for_a_link_to_another_file_explains_it(model: Path, to: str) -> None:
    (model / "w").unlink()
    (model / "w").symlink_to(to)
    for lazy in (False, True):
        with pytest.raises(LoadError):
            load(model, lazy=lazy)


def test_verify_reports_links(model: Path) -> None:
    (model / "w").unlink()
    (model / "w").symlink_to("../outside/w")
    (model / "more").symlink_to("../outside")
    (model / "loop").symlink_to("loop")
    found = manifest_file.verify(model)
    assert not found
    assert (found.good, found.missing, found.extra) == (("sub/v",), ("w",), ("loop", "more"))
    assert "missing: w (it is a link to '../outside/w')" in str(found)
    assert list_names(model) == ["loop", "sub/v", "w"]


def test_a_save_replaces_a_link_but_not_its_target(model: Path) -> None:
    (model / "w").unlink()
    (model / "w").symlink_to("../outside/w")
    write_all(model, {"w": [b"new"]})
    assert not (model / "w").is_symlink()
    assert (model / "w").read_bytes() == b"new"
    assert (model.parent / "outside" / "w").read_bytes() == W


def test_nothing_is_saved_through_a_folder_that_is_a_link(model: Path) -> None:
    """Proves S7."""
    (model / "out").symlink_to("../outside")
    with pytest.raises(SaveError, match=r"out is a link to '\.\./outside'"):
        write_all(model, {"out/w": [b"new"], "w": [b"new"]})
    assert (model.parent / "outside" / "w").read_bytes() == W
    assert (model / "w").read_bytes() == W
    assert sorted(path.name for path in model.parent.iterdir()) == ["m", "outside"]


# What is not a file


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path.parent)  # a socket's path is short
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


KINDS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "pipe": (os.mkfifo, "is a pipe"),
    "directory": (Path.mkdir, "is a directory"),
    "socket": (_socket, "is a socket"),
    "device": (lambda path: path.symlink_to("/dev/null"), "is a device"),
    "endless": (lambda path: path.symlink_to("/dev/zero"), "is a device"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_call_waits_for_a_pipe_in_place_of_a_file(model: Path, kind: str) -> None:
    make, words = KINDS[kind]
    (model / "w").unlink()
    make(model / "w")
    path = str(model / "w")
    for call in (lambda: File(path), lambda: read_front(path, 10)):
        with pytest.raises(StorageError, match=words):
            call()
    for options in ({}, {"lazy": True}, {"verify": True}, {"strict": False}):
        with pytest.raises(LoadError):
            load(model, **options)
    assert manifest_file.verify(model).missing == ("w",)
    if kind != "directory":  # one that holds no files
        with pytest.raises(PaddlelikeError):
            fluid.io.load_program_state(str(model))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("helper", ["journal", "manifest", "lock"])
def test_no_call_waits_for_pipes_in_place_of_our_own_files(model: Path, helper: str, kind: str) -> None:
    staging = model.with_name(".m.saving-directory")
    staging.mkdir()
    path = {"manifest": model / "__manifest__"}.get(helper, staging / helper)
    path.unlink(missing_ok=True)
    KINDS[kind][0](path)
    if helper == "lock":
        with pytest.raises(SaveError, match="cannot be locked"):
            write_all(model, {"w": [b"new"]})
    elif helper == "journal":
        with pytest.raises(StorageError):
            recover(model)
    else:
        np.testing.assert_array_equal(load(model, verify=False), ONES)
        with pytest.raises(PaddlelikeError):
            load(model, verify=True)
    assert (model / "w").read_bytes() == W


# Journals of others


@pytest.mark.parametrize("direction", ["forward", "back"])
@pytest.mark.parametrize(
    ("is_prefix", "path"),
    [(True, "theirs"), (True, "m/w"), (True, "mm/x"), (False, "../theirs"), (False, "out/w")],
)
def test_a_journal_that_names_files_elsewhere_is_refused(
    model: Path, direction: str, is_prefix: bool, path: str
) -> None:
    """Proves S7."""
    root = model.parent
    (root / "theirs").write_bytes(b"theirs")
    (model / "out").symlink_to("../outside")
    layout = Layout(str(model), is_prefix=is_prefix)
    staging = Path(layout.staging)
    for name in ("new", "old"):
        (staging / name / "out").mkdir(parents=True)
    (staging / "new" / "theirs").write_bytes(b"evil")
    (staging / "new" / "out" / "w").write_bytes(b"evil")
    journal = {
        "format": 2,
        "direction": direction,
        "targets": [[path, None, [1, 2, 3]]],
        "folders": [],
        "sync": False,
    }
    if path == "out/w":
        facts = (root / "outside" / "w").stat()
        journal["targets"][0][1] = [facts.st_ino, facts.st_size, facts.st_mtime_ns]
    Path(layout.journal).write_text(json.dumps(journal))
    with pytest.raises(
        StorageError, match=r"is not the journal of a save|leads out of the directory through a link"
    ):
        recover_layout(layout)
    assert (root / "theirs").read_bytes() == b"theirs"
    assert (root / "outside" / "w").read_bytes() == W
    assert (model / "w").read_bytes() == W


@pytest.mark.parametrize("to", ["nowhere", "journal", "../outside", "../outside/w"])
def test_a_journal_that_is_a_link_is_refused(model: Path, to: str) -> None:
    staging = model.with_name(".m.saving-directory")
    staging.mkdir()
    (staging / "journal").symlink_to(to)
    with pytest.raises(StorageError):
        recover(model)
    with pytest.raises(SaveError):
        write_all(model, {"w": [b"new"], "more": [b"new"]})
    assert (model / "w").read_bytes() == W


@pytest.mark.parametrize("key", ["direction", "targets", "folders", "sync"])
@pytest.mark.parametrize(
    "wrong", [None, 1, "x", [1], {"a": "b"}, [["w", 1, 2]], [["w", [1, 2], None]], "gone"]
)
def test_a_damaged_journal_is_refused(model: Path, key: str, wrong: object) -> None:
    journal: dict[str, Any] = {
        "format": 2, "direction": "back", "targets": [["w", None, None]], "folders": [], "sync": False,
    }  # fmt: skip
    journal[key] = wrong
    if wrong == "gone":
        del journal[key]
    staging = model.with_name(".m.saving-directory")
    staging.mkdir()
    (staging / "journal").write_text(json.dumps(journal))
    with pytest.raises(StorageError, match="is not the journal of a save"):
        recover(model)
    assert (model / "w").read_bytes() == W


def test_a_manifest_that_names_files_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"s")
    record = manifest.Record(1, "sha256:" + "0" * 64, (1, 2))
    (tmp_path / "m.pdmanifest").write_bytes(manifest.encode({"secret": record}, is_prefix=True))
    found = manifest_file.verify(tmp_path / "m")
    assert found.problem is not None
    assert "'secret', which cannot be one of its files" in found.problem


# Staging areas from elsewhere


def _exchanged(model: Path) -> Path:
    """A staging area that says: the exchange was done, what is in "new" is the generation before."""
    staging = model.with_name(".m.saving-directory")
    staging.mkdir()
    token = manifest_file.read_manifest(model).token
    (staging / "staged").write_text(json.dumps({"token": token, "written": {}, "files": {}}))
    return staging


def _whole_link(model: Path) -> None:
    model.with_name(".m.saving-directory").symlink_to("outside")


def _generation_link(model: Path) -> None:
    (_exchanged(model) / "new").symlink_to("../outside")


def _folder_in_the_way(model: Path) -> None:
    (model / "out").symlink_to("../outside")
    (_exchanged(model) / "new" / "out").mkdir(parents=True)
    (model.with_name(".m.saving-directory") / "new" / "out" / "late").write_bytes(b"evil")


def _known_files(model: Path) -> None:
    staging, outside = _exchanged(model), model.with_name("outside")
    (staging / "new").mkdir()
    (staging / "new" / "out").symlink_to("../../outside")
    inode = (outside / "w").stat().st_ino
    staged = json.loads((staging / "staged").read_text())
    staged["files"] = {"out/w": inode, "../../outside/w": inode}
    (staging / "staged").write_text(json.dumps(staged))


def _staged_pipe(model: Path) -> None:
    staging = model.with_name(".m.saving-directory")
    (staging / "new").mkdir(parents=True)
    os.mkfifo(staging / "staged")


def _spare_link(model: Path) -> None:
    spare = model.with_name(".m.saving-directory") / "spare"
    spare.mkdir(parents=True)
    (spare / "sub").symlink_to("../../outside")
    (spare / "w").symlink_to("../../outside/w")


def _spare_pipe(model: Path) -> None:
    model.with_name(".m.saving-directory").mkdir()
    os.mkfifo(model.with_name(".m.saving-directory") / "spare")


def _spare_is_a_link(model: Path) -> None:
    model.with_name(".m.saving-directory").mkdir()
    (model.with_name(".m.saving-directory") / "spare").symlink_to("../outside")


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        _spare_is_a_link,
        _whole_link,
        _generation_link,
        _folder_in_the_way,
        _known_files,
        _staged_pipe,
        _spare_link,
        _spare_pipe,
    ],
)
def test_a_staging_area_that_is_a_link_is_not_followed(
    model: Path, make: Callable[[Path], None], keep: bool
) -> None:
    make(model)
    try:
        with Transaction(model, keep_generation=keep) as transaction:
            transaction.add("w", [b"new"])
            transaction.add("sub/v", [b"new"])
    except PaddlelikeError:
        assert (model / "w").read_bytes() == W
    else:
        assert (model / "w").read_bytes() == (model / "sub" / "v").read_bytes() == b"new"
    assert {path.name: path.read_bytes() for path in model.with_name("outside").iterdir()} == {"w": W}
    recover(model)


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A thousand folders in each other, with a file at the end; it is taken apart one by one."""
    folders = [tmp_path / "m"]
    folders[0].mkdir()
    for _ in range(1100):
        folders.append(folders[-1] / "d")
        folders[-1].mkdir()
    (folders[-1] / "w").write_bytes(W)
    yield folders[0]
    (folders[-1] / "w").unlink(missing_ok=True)
    for folder in reversed(folders):
        folder.rmdir()


@pytest.mark.slow
def test_a_thousand_nested_folders_are_listed_but_not_loaded(deep: Path) -> None:
    assert list_names(deep) == ["d/" * 1100 + "w"]
    assert sum(folder for _, _, folder in walk(str(deep))) == 1100
    with pytest.raises(LoadError):
        load(deep)
    with pytest.raises(PaddlelikeError):
        fluid.io.load_program_state(str(deep))
    assert not manifest_file.verify(deep)


def test_an_error_of_fstat_names_the_file(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As network file systems have it, whose handles become stale."""

    def fail(fd: int) -> os.stat_result:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(os, "fstat", fail)
    with pytest.raises(StorageError, match="w cannot be read: Stale file handle"):
        File(str(model / "w"))
    monkeypatch.undo()
    free = os.open(model, os.O_RDONLY)
    os.close(free)
    monkeypatch.setattr(os, "fstat", fail)
    for _ in range(3):
        with pytest.raises(StorageError):
            File(str(model / "w"))
    monkeypatch.undo()
    again = os.open(model, os.O_RDONLY)
    os.close(again)
    assert again == free  # each was closed


# Paths that lead nowhere


@pytest.mark.parametrize("aim", ["outside", "nowhere"])
def test_a_link_named_like_a_prefix_is_not_part_of_it(model: Path, aim: str) -> None:
    prefix, program = str(model.parent / "latest"), program_of(w=([200, 100], "float32"))
    Path(prefix).symlink_to(model.parent / aim)
    with fluid.scope_guard(fluid.Scope()):
        fluid.global_scope().var("w").get_tensor().set(ONES)
        fluid.save(program, prefix)
        fluid.load(program, prefix, executor())
        saved = Path(f"{prefix}.pdparams")
        saved.write_bytes(saved.read_bytes()[:-1] + b"?")
        with pytest.raises(LoadError, match=r"latest\.pdparams: its bytes are not those that were saved"):
            fluid.load(program, prefix, executor())
    assert sorted(path.name for path in (model.parent / "outside").iterdir()) == ["w"]


@pytest.mark.parametrize("call", [manifest_file.verify, recover, lambda path: Transaction(path)])
def test_a_path_that_cannot_be_resolved_raises_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[str], object]
) -> None:
    with pytest.raises(StorageError, match=r"is not a path: .*embedded null"):
        call(f"{tmp_path}/a\0b")

    def refuse(path: object) -> str:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os.path, "realpath", refuse)  # as for a link in /proc of another user
    with pytest.raises(StorageError, match="cannot be looked up: Permission denied"):
        call(f"{tmp_path}/m")


@pytest.mark.parametrize("call", ["mkdir", "open", "rename to another inode"])
def test_a_file_system_that_loses_lock_files_is_reported_without_endless_retries(
    model: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    real = getattr(os, call, os.open)

    def refuse(path: object, *args: Any, **more: Any) -> Any:
        if not str(path).endswith(("lock", ".saving-directory")):
            return real(path, *args, **more)
        if call != "rename to another inode":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        fd = real(path, *args, **more)
        if (folder := more.get("dir_fd")) is not None:  # the lock file
            os.rename(path, f"{path}-moved", src_dir_fd=folder, dst_dir_fd=folder)
        return fd

    monkeypatch.setattr(os, call if call == "mkdir" else "open", refuse)
    with pytest.raises(SaveError, match=r"no file can be created in|is not there after it was created"):
        write_all(model, {"w": [b"new"], "v": [b"new"]})
    monkeypatch.undo()
    assert manifest_file.verify(model)
