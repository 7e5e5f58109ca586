"""The run of a load's program: values of the plan, read into new arrays or into the variables' arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paddlelike.core import Array, LoDTensor, Scope
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
    targets: Mapping[str, Array] | None,
) -> tuple[Reading, list[Value]]:
    """Build the program of a plan's load operators, run it, and return what its operators read.

    The scope is unchanged; with ``targets``, its arrays are overwritten.

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
        targets: Mapping[str, Array] | None,
    ) -> None:
        self._plan = plan
        self._contents = contents
        self._lazily = lazily
        self._targets = targets
        self.reading: Reading | None = None
        self.values: list[Value] = []  # by the steps of the plan

    def load(self, context: Context, ops: Sequence[OpView]) -> None:
        """Read the values of all operators; the load commits them to the scope once everything is read."""
        self.reading, self.values = read_values(self._contents, self._plan, self._lazily, self._targets)

    def save(self, context: Context, ops: Sequence[OpView]) -> None:
        """Raise LoadError: such a program saves nothing."""
        raise LoadError("a program that loads variables cannot save variables")

    def commit(self) -> None:
        """Raise AssertionError: the load commits its values itself."""
        raise AssertionError("the load commits its values itself")


class InPlaceTargets:
    """The arrays that a load overwrites, and the error if it fails before all are overwritten."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._begun = 0  # variables

    def take_targets(self, plan: LoadPlan) -> dict[str, Array]:
        """Return the arrays of the plan's variables that a load can overwrite, and mark them as written."""
        found: dict[str, Array] = {}
        for step in plan.steps:
            holder = self._scope.find_var(step.variable.name)
            tensor = None if holder is None else holder.value
            if step.recipe is not None or type(tensor) is not LoDTensor or tensor.held_array is None:
                continue
            if tensor.held_array.flags.c_contiguous and tensor.held_array.flags.writeable:
                found[step.variable.name] = tensor.held_array
                tensor.touch()  # even if the load fails, the next save must not treat it as unchanged
        self._begun = max(self._begun, len(found))
        return found

    def raise_mixed(self, where: str, error: BaseException) -> None:
        """Raise ``error`` with a note on the variables if any may hold a mix; otherwise return.

        Raises
        ------
        LoadError
            Variables may hold a mix of old and new values.
        """
        if not self._begun:
            return
        mix = f"with in_place=True up to {self._begun} variables now hold a mix of old and new values"
        if not isinstance(error, Exception):  # an interrupt stays one
            error.add_note(f"the load of {where} broke off: {mix}")
            return
        raise LoadError(
            f"the load of {where} broke off, and {mix}: {error}",
            hint="load a good directory, or run the startup program again",
        ) from error
