"""Numbered checkpoints of fleet's workers: all persistables in one file, and the epoch that was completed.

As in Fluid, ``PATH/__paddle_fleet_checkpoint__.N`` holds ``_paddle_fleet_param__`` and
``fleet_train_status``. A file system passed as ``fs`` (``paddle.distributed.fs_wrapper``) may keep them
elsewhere. Then a local directory is uploaded or downloaded as a whole.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Final, Protocol

from paddlelike.errors import LoadError
from paddlelike.executor import Executor
from paddlelike.framework import Program
from paddlelike.io import load_persistables, save_persistables
from paddlelike.storage.local.filesystem.system import sync_directory

_PREFIX: Final = "__paddle_fleet_checkpoint__"
_PARAMETERS: Final = "_paddle_fleet_param__"
_STATUS: Final = "fleet_train_status"


class TrainStatus:
    """The progress of a training: the last completed epoch, -1 before the first."""

    def __init__(self, epoch_no: int = -1) -> None:
        self._epoch_no = epoch_no

    def next(self) -> int:
        """Return the epoch to train next."""
        return self._epoch_no + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainStatus) and self._epoch_no == other._epoch_no

    def __hash__(self) -> int:
        return hash(self._epoch_no)


class FileSystem(Protocol):
    """The methods that are called on Fluid's file system objects."""

    def need_upload_download(self) -> bool:
        """Return whether checkpoints must be copied to and from this machine."""

    def list_dirs(self, fs_path: str) -> list[str]:
        """Return the names of the directories in a directory; [] if it does not exist."""

    def stat(self, fs_path: str) -> bool:
        """Return whether a file or directory exists."""

    def mkdir(self, fs_path: str) -> None:
        """Create a directory."""

    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        """Rename a directory."""

    def delete(self, fs_path: str) -> None:
        """Delete a file or directory, if it exists."""

    def upload(self, local_path: str, fs_path: str) -> None:
        """Copy a directory of this machine to this file system."""

    def download(self, fs_path: str, local_path: str) -> None:
        """Copy a directory of this file system to this machine."""


def write_checkpoint(
    executor: Executor,
    folder: str,
    train_status: TrainStatus,
    program: Program,
    fs: FileSystem | None,
    cache: str,
) -> None:
    """Save all persistables and the epoch as the next checkpoint. Raises SaveError as a save does."""
    remote = _find_remote(fs)
    name = f"{_PREFIX}.{find_last_checkpoint(folder, fs) + 1}"
    target = Path(folder, name)
    aside = Path(folder, f"{name}.tmp") if remote is None else Path(cache, f"{name}.saved_cache")
    shutil.rmtree(aside, ignore_errors=True)  # of a save that was interrupted
    save_persistables(executor, str(aside), program, _PARAMETERS)
    status = aside / _STATUS
    with status.open("w", encoding="utf-8") as file:
        json.dump({"epoch_no": train_status._epoch_no}, file)
        file.flush()
        os.fsync(file.fileno())
    sync_directory(str(aside))
    if remote is None:
        aside.rename(target)
        sync_directory(folder)
        return
    if not remote.stat(folder):
        remote.mkdir(folder)
    remote.delete(f"{folder}/{name}.tmp")
    remote.upload(str(aside), f"{folder}/{name}.tmp")
    remote.mv(f"{folder}/{name}.tmp", f"{folder}/{name}")
    shutil.rmtree(aside)


def read_checkpoint(
    executor: Executor, path: str, program: Program, fs: FileSystem | None, cache: str, *, ignore_empty: bool
) -> TrainStatus | None:
    """Load the newest checkpoint. Return its position, or None without a checkpoint.

    Raises LoadError for a damaged checkpoint, and without a checkpoint unless ``ignore_empty``.
    """
    number = find_last_checkpoint(path, fs)
    if number < 0:
        if ignore_empty:
            return None
        raise LoadError(f"{path} holds no checkpoint {_PREFIX}.N", hint="save_check_point writes them")
    folder, remote = Path(path, f"{_PREFIX}.{number}"), _find_remote(fs)
    if remote is not None:
        folder = Path(cache)
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        remote.download(f"{path}/{_PREFIX}.{number}", cache)
    status = _read_status(folder / _STATUS) if (folder / _STATUS).is_file() else TrainStatus()
    load_persistables(executor, str(folder), program, _PARAMETERS)
    if remote is not None:
        shutil.rmtree(folder)
    return status


def delete_checkpoints(path: str, fs: FileSystem | None, kept: int) -> None:
    """Delete all but the newest checkpoints."""
    remote = _find_remote(fs)
    numbers = _list_checkpoints(path, fs)
    for number in numbers:
        if number <= max(numbers) - kept:
            found = f"{path}/{_PREFIX}.{number}"
            shutil.rmtree(found) if remote is None else remote.delete(found)


def find_last_checkpoint(folder: str, fs: FileSystem | None) -> int:
    """Return the number of the newest checkpoint, -1 where there is none."""
    return max(_list_checkpoints(folder, fs), default=-1)


def _list_checkpoints(folder: str, fs: FileSystem | None) -> list[int]:
    remote, here = _find_remote(fs), Path(folder)
    if remote is not None:
        names = remote.list_dirs(folder)
    else:
        names = [one.name for one in here.iterdir()] if here.is_dir() else []
    numbers = [name.removeprefix(f"{_PREFIX}.") for name in names if name.startswith(_PREFIX)]
    return sorted(int(number) for number in numbers if number.isdecimal())


def _find_remote(fs: FileSystem | None) -> FileSystem | None:
    return fs if fs is not None and fs.need_upload_download() else None


def _read_status(path: Path) -> TrainStatus:
    try:
        epoch = json.loads(path.read_text(encoding="utf-8"))["epoch_no"]
    except (ValueError, KeyError, TypeError) as error:
        raise LoadError(
            f"{path} holds no epoch: {error}", hint="delete the checkpoint, or restore the file"
        ) from error
    if not isinstance(epoch, int) or epoch < 0:
        raise LoadError(f"{path} holds the epoch {epoch!r}, expected a number from 0 on")
    return TrainStatus(epoch)
