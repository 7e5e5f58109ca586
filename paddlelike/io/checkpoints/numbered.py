"""Checkpoints by a file name: ``model`` is the newest one; ``model.0``, ``model.1``, ... are beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack

from paddlelike.core import global_scope
from paddlelike.errors import MissingFileError
from paddlelike.executor.run import Executor
from paddlelike.io.asynchronous import PendingSave
from paddlelike.io.checkpoints.checkpoint import Checkpoint, encode_entry
from paddlelike.io.checkpoints.checkpoints import Checkpoints
from paddlelike.io.checkpoints.store import Names
from paddlelike.io.report import SaveReport
from paddlelike.storage.location import is_remote
from paddlelike.storage.options import SaveKeywords

if TYPE_CHECKING:
    from paddlelike.framework.typing import ProgramLike


class NumberedCheckpoints(Checkpoints):
    """The checkpoints ``filename``, ``filename.0``, ``filename.1``, ...: directories side by side.

    ``filename0`` is listed as well: CNTK names its files without the dot. The step of a checkpoint is the
    number of samples that it was trained with.

    Parameters
    ----------
    filename
        A path or a URL; its directory is made when missing, and other files in it are left alone.
    keep_best
        The number of numbered checkpoints with the best metric to keep, or None for all.
    best, options
        The same as for :class:`Checkpoints`.
    """

    def __init__(
        self,
        filename: str | os.PathLike[str],
        keep_best: int | None = None,
        *,
        best: Literal["smallest", "largest"] = "smallest",
        **options: Unpack[SaveKeywords],
    ) -> None:
        path = os.fspath(filename)
        folder, self._name = path.rpartition("/")[::2] if is_remote(path) else os.path.split(path)
        if not self._name:
            raise ValueError(f"the path of a checkpoint must end with a file name, got {path!r}")
        self._keeps_all = keep_best is None
        super().__init__(folder or ".", None, keep_best or 0, best=best, **options)
        self.path = self._checkpoints.path(self._name)

    def save_numbered(
        self,
        executor: Executor,
        program: ProgramLike | None,
        step: int,
        index: int | None = None,
        metric: float | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> SaveReport | PendingSave:
        """Save the checkpoint ``filename.index``, or without an index ``filename``.

        Raises the errors of :meth:`Checkpoints.save`.
        """
        name = self._name if index is None else f"{self._name}.{index}"
        ranked_as = None if index is None or self._keeps_all else name
        entry = encode_entry(step, metric, global_scope().generator.state, state, ranked_as)
        return self._save_as(name, entry, executor, program)

    def restore_newest(
        self,
        executor: Executor,
        program: ProgramLike | None,
        check: Callable[[Checkpoint], None] | None = None,
    ) -> dict[str, Any] | None:
        """Load the checkpoint of the highest step; when it is damaged, the previous one, with a warning.

        Parameters
        ----------
        check
            Called before anything is loaded; raises for a checkpoint that must not be.

        Returns
        -------
        As :meth:`Checkpoints.restore`.
        """
        self._recover()
        found, damaged = self._list()
        return self._restore_first(found[::-1], executor, program, only=False, check=check, damaged=damaged)

    def restore_named(
        self,
        executor: Executor,
        program: ProgramLike | None,
        check: Callable[[Checkpoint], None] | None = None,
    ) -> dict[str, Any]:
        """Load the checkpoint ``filename`` itself.

        Raises
        ------
        MissingFileError
            There is none; the message names the checkpoints beside it.
        LoadError
            It is damaged, or does not fit the program.
        """
        self._recover()
        found, damaged = self._list()
        named = [one for one in found if one.path == self.path]
        damaged = {path: what for path, what in damaged.items() if path == self.path}
        state = self._restore_first(named, executor, program, only=True, check=check, damaged=damaged)
        if state is None and os.path.isfile(self.path):
            raise MissingFileError(
                f"{self.path} is a file, and a checkpoint is a directory",
                hint="fluid.import_cntk_checkpoint reads the checkpoints of CNTK",
            )
        if state is None:
            others = ", ".join(os.path.basename(one.path) for one in found)
            raise MissingFileError(
                f"there is no checkpoint {self.path}" + (", but beside it are " + others if others else ""),
                hint="Trainer.save_checkpoint writes it" if not others else "give the name of one of those",
            )
        return state

    def _order(self, one: Checkpoint) -> tuple[int, bool]:
        """Return the sort key of the list; of equal steps, the name without a number is last."""
        return one.step, one.path == self.path

    def _get_names(self) -> Names:
        return Names(rf"{re.escape(self._name)}(?:\.?\d+)?", self._name, ours_alone=False)

    def _tidy(self, newest: int) -> None:
        """Remove numbered checkpoints that are not among the best.

        Copies under other names stay, and so do checkpoints of a session that keeps all.
        """
        if not self._keeps_all:
            found = self._found
            numbered = [one for one in found if one.ranked_as == os.path.basename(one.path)]
            kept = {one.path for one in self._rank(numbered)[: self._keep_best]}
            kept.add(found[-1].path if found else "")  # among equals, the one without a number
            old = [one for one in numbered if one.path not in kept]
            self._remove_all(old, [one for one in found if one not in old])

    @property
    def _may_remove(self) -> bool:
        return not self._keeps_all
