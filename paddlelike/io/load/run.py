"""The run of a load's program: its operators read the values of the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.errors import LoadError
from paddlelike.executor.run import Executor
from paddlelike.foundation.progress import show_progress
from paddlelike.framework.opdef import Context, OpView
from paddlelike.io.contents.interface import Contents, Reading, Value
from paddlelike.io.load.request import LoadRequest
from paddlelike.io.load.values import read_values
from paddlelike.io.planning.load_plan import LoadPlan
from paddlelike.io.programs import build_load_program, run_program


def run_load(
    executor: Executor,
    request: LoadRequest,
    plan: LoadPlan,
    contents: Contents,
    targets: Mapping[str, np.ndarray[Any, Any]] | None,
) -> tuple[Reading, list[Value]]:
    """Build the program of a plan's load operators, run it, and return what its operators read.

    The scope is not changed; with ``targets`` the arrays in there are.

    Raises
    ------
    LoadError, FormatError, StorageError
        A file cannot be read, or is not the one whose header was read.
    """
    pairs = [(step.variable, step.held[0].name) for step in plan.steps]
    source = request.source
    if source.where is None:
        program = build_load_program(pairs, None, source.data)
    else:
        program = build_load_program(pairs, source.path, source.filename)
    files = _PlannedFiles(plan, contents, lazily=request.options.lazy, targets=targets)
    sizes = (held.header.nbytes for step in plan.steps for held in step.held)
    with show_progress(f"loading {source.path}", sizes):
        run_program(executor, program, files)
    assert files.reading is not None
    return files.reading, files.values


class _PlannedFiles:
    """The files of a run whose operators load the values of a plan."""

    def __init__(
        self,
        plan: LoadPlan,
        contents: Contents,
        *,
        lazily: bool,
        targets: Mapping[str, np.ndarray[Any, Any]] | None,
    ) -> None:
        self._plan = plan
        self._contents = contents
        self._lazily = lazily
        self._targets = targets
        self.reading: Reading | None = None
        self.values: list[Value] = []  # by the steps of the plan

    def load(self, context: Context, ops: Sequence[OpView]) -> None:
        """Read the values of all operators; the load commits them to the scope when everything is read."""
        self.reading, self.values = read_values(self._contents, self._plan, self._lazily, self._targets)

    def save(self, context: Context, ops: Sequence[OpView]) -> None:
        """Raise LoadError: such a program saves nothing."""
        raise LoadError("a program that loads variables does not save any")

    def commit(self) -> None:
        """Raise AssertionError: the load commits its values itself."""
        raise AssertionError("the load commits its values itself")
