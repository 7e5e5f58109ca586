"""The rounds to which a server can return: its initial values, and the saves of trainer 0 that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from paddlelike.core import LoDTensor, Scope, SelectedRows, scope_guard
from paddlelike.distributed.server.position import find_position
from paddlelike.errors import LoadError, PaddlelikeError
from paddlelike.executor.run import Executor
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program
from paddlelike.io.load.load import load_persistables, load_vars
from paddlelike.ops.kernels.growing_rows import GrowingRows
from paddlelike.storage.location import LocalDirectory

Value = LoDTensor | SelectedRows


class RollbackPoints:
    """The rounds to which one server can return.

    The start values are copied, so a server that may go back needs twice the memory of its variables.

    Parameters
    ----------
    scope, names
        The server's scope, and the variables in it that are the server's.
    program
        The server's program, which says which rows of a saved directory are its own.
    root
        A directory of ``save_persistables``, or one that holds such directories; None without saves.
    start
        Returns the round of the start values.
    """

    def __init__(
        self,
        scope: Scope,
        names: list[str],
        *,
        program: Program,
        endpoint: str,
        root: str | None,
        start: Callable[[], int],
    ) -> None:
        self._scope = scope
        self._program = program
        self._endpoint = endpoint
        self._root = root
        self._start = start
        self._copies = {name: _copy(value) for name, value in self._values(names)}

    def rounds(self) -> list[int]:
        """Return the rounds, sorted."""
        return sorted({self._start(), *self._find_saves()})

    def restore(self, round: int) -> None:
        """Set every variable to its value at the beginning of ``round``.

        Raises
        ------
        LoadError
            The save of that round no longer exists, or cannot be read.
        """
        saves = self._find_saves()
        if round in saves:
            with scope_guard(self._scope):
                load_persistables(Executor(), saves[round], self._program)
        elif round == self._start():
            for name, value in self._copies.items():
                self._scope.var(name).set_value(_copy(value))
        else:
            raise LoadError(
                f"the server at {self._endpoint} cannot go back to round {round}, which was not saved",
                hint=f"saves are looked for in {self._root} (PADDLELIKE_CHECKPOINT_DIR)",
            )

    def _values(self, names: list[str]) -> Iterator[tuple[str, Value]]:
        for name in names:
            holder = self._scope.find_var(name)
            if holder is not None and isinstance(holder.value, LoDTensor | SelectedRows):
                yield name, holder.value

    def _find_saves(self) -> dict[int, str]:
        """Return the directory of a save for each round; of several, the last one by name."""
        found: dict[int, str] = {}
        for path in self._directories():
            try:
                position = find_position(LocalDirectory(path).read_manifest(), self._endpoint)
            except (PaddlelikeError, OSError, ValueError) as error:
                warn_user(f"{path} is left out of the saves to go back to: {error}")
                continue
            if position is not None and isinstance(position.get("round"), int):
                found[position["round"]] = path
        return found

    def _directories(self) -> list[str]:
        root = None if self._root is None else Path(self._root)
        if root is None or not root.is_dir():
            return []
        return [*sorted(str(path) for path in root.iterdir() if path.is_dir()), str(root)]


def load_table(scope: Scope, program: Program, directory: str, names: Sequence[str] | None) -> None:
    """Load this server's rows of some variables, or of all, while it serves."""
    with scope_guard(scope):
        if names is None:
            load_persistables(Executor(), directory, program)
            return
        load_vars(Executor(), directory, program, vars=[program.global_block().var(name) for name in names])


def _copy(value: Value) -> Value:
    if isinstance(value, GrowingRows):
        return value.copy()
    array = None if value.held_array is None else np.array(value.held_array)
    if isinstance(value, SelectedRows):
        return SelectedRows(value.row_array.copy(), value.height(), array)
    return LoDTensor(array, value.lod())
