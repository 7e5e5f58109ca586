"""The interface of a store of checkpoints, and the names of checkpoints in its directory."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from paddlelike.storage.manifest import Manifest


class Names(NamedTuple):
    """The names of checkpoints in a directory."""

    pattern: str = r"step-\d{8,}"  # a regular expression without groups
    prefix: str = "step-"  # the beginning of each name
    ours_alone: bool = True  # whether only this package uses such names


STEPS: Final = Names()


class CheckpointStore(Protocol):
    """A directory of checkpoints, each in a directory of its own."""

    root: str

    def path(self, name: str) -> str:
        """Return the directory of the checkpoint of that name."""

    def paths(self) -> list[str]:
        """Return the directories that may be checkpoints."""

    def manifest(self, path: str) -> Manifest | None:
        """Return the manifest of a complete checkpoint, else None."""

    def is_there(self, path: str) -> bool:
        """Return whether a directory or anything else has that name, or files exist behind a URL."""

    def stamp(self, path: str | None = None) -> object:
        """Return a stamp that changes with the manifest of a checkpoint or the names in the directory.

        Return None if that is unknown, or if a save of the checkpoint has not ended.
        """

    def hold(self, path: str | None) -> AbstractContextManager[bool]:
        """Keep other processes from removing a checkpoint inside the ``with``; yield whether it exists."""

    def reserve(self, path: str) -> None:
        """Announce that a checkpoint will be saved under that name."""

    def sync(self, path: str) -> None:
        """Write a checkpoint to the disk, so that it survives a power cut. Raises OSError, StorageError."""

    def remove(self, path: str) -> None:
        """Remove a checkpoint. If a process reads or writes it, leave it to a later save."""

    def sweep(self) -> None:
        """Remove the leftovers of killed processes."""

    def recover(self) -> None:
        """Remove leftovers of ended processes before a restore."""
