"""Numbered checkpoints of fleet's workers: all persistables in one file, and the epoch that was completed.

``PATH/__paddle_fleet_checkpoint__.N`` holds ``_paddle_fleet_param__`` and ``fleet_train_status``, as Fluid.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Final

from paddlelike.errors import LoadError, UnsupportedError
from paddlelike.executor import Executor
from paddlelike.framework.graph.program import Program
from paddlelike.io import load_persistables, save_persistables
from paddlelike.storage.local.filesystem.system import sync_directory

__all__ = ["TrainStatus", "delete_checkpoints", "read_checkpoint", "refuse_file_systems", "write_checkpoint"]

_PREFIX: Final = "__paddle_fleet_checkpoint__"
_PARAMETERS: Final = "_paddle_fleet_param__"
_STATUS: Final = "fleet_train_status"


class TrainStatus:
    """How far a training is: the last epoch that was completed, -1 before the first."""

    def __init__(self, epoch_no: int = -1) -> None:
        self._epoch_no = epoch_no

    def next(self) -> int:
        """Return the epoch to train next."""
        return self._epoch_no + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainStatus) and self._epoch_no == other._epoch_no

    def __hash__(self) -> int:
        return hash(self._epoch_no)


def write_checkpoint(executor: Executor, folder: Path, train_status: TrainStatus, program: Program) -> None:
    """Save all persistables and the epoch as the next checkpoint. Raises SaveError as a save does."""
    number = _find_last(folder) + 1
    target = folder / f"{_PREFIX}.{number}"
    aside = folder / f"{_PREFIX}.{number}.tmp"
    shutil.rmtree(aside, ignore_errors=True)  # of a save that was interrupted
    save_persistables(executor, str(aside), program, _PARAMETERS)
    status = aside / _STATUS
    with status.open("w", encoding="utf-8") as file:
        json.dump({"epoch_no": train_status._epoch_no}, file)
        file.flush()
        os.fsync(file.fileno())
    sync_directory(str(aside))
    aside.rename(target)
    sync_directory(str(folder))


def read_checkpoint(
    executor: Executor, path: Path, program: Program, *, ignore_empty: bool
) -> TrainStatus | None:
    """Load the newest checkpoint; return how far it is, None where there is none.

    Raises LoadError for a damaged one, and where there is none unless ``ignore_empty``.
    """
    number = _find_last(path)
    if number < 0:
        if ignore_empty:
            return None
        raise LoadError(f"{path} holds no checkpoint {_PREFIX}.N", hint="save_check_point writes them")
    folder = path / f"{_PREFIX}.{number}"
    status = _read_status(folder / _STATUS) if (folder / _STATUS).is_file() else TrainStatus()
    load_persistables(executor, str(folder), program, _PARAMETERS)
    return status


def delete_checkpoints(path: Path, kept: int) -> None:
    """Delete all but the newest checkpoints."""
    last = _find_last(path)
    for number in _list_checkpoints(path):
        if number <= last - kept:
            shutil.rmtree(path / f"{_PREFIX}.{number}")


def refuse_file_systems(fs: object) -> None:
    """Raise UnsupportedError for one of Fluid's objects that stand for a file system."""
    if fs is not None:
        raise UnsupportedError(
            f"checkpoints of fleet are kept in local or mounted directories, not by fs={fs!r}",
            hint="fluid.io.Checkpoints keeps them in remote directories, by their URL",
        )


def _list_checkpoints(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    names = [one.name.removeprefix(f"{_PREFIX}.") for one in folder.iterdir() if one.name.startswith(_PREFIX)]
    return sorted(int(name) for name in names if name.isdecimal())


def _find_last(folder: Path) -> int:
    return max(_list_checkpoints(folder), default=-1)


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
