"""Planning and reading of a load whose files another process may replace at the same time."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from paddlelike.core import global_scope
from paddlelike.errors import LoadError
from paddlelike.executor.run import Executor
from paddlelike.io import asynchronous
from paddlelike.io.contents.interface import Contents, Reading, Value
from paddlelike.io.load.request import LoadRequest
from paddlelike.io.load.run import InPlaceTargets, run_load
from paddlelike.io.load.source import read_stamped
from paddlelike.io.load.values import read_values
from paddlelike.io.planning.load_plan import LoadPlan
from paddlelike.io.verify import (
    NO_COMPARISON,
    Comparison,
    check_problems,
    choose_comparison,
    count_unlike,
    is_of_another_save,
    make_refusal,
)
from paddlelike.storage.hashing import PIECE
from paddlelike.storage.location import Location


class Read(NamedTuple):
    """The result of reading for a load.

    Attributes
    ----------
    stamp
        The stamp of the directory while it was read.
    verified
        Whether everything was compared with the manifest.
    """

    stamp: object
    plan: LoadPlan
    reading: Reading
    values: list[Value]
    verified: bool


def read_request(executor: Executor, request: LoadRequest) -> Read:
    """Plan a load and run it; once more if the files were replaced meanwhile, so that no two saves are mixed.

    The scope is unchanged, except with the option ``in_place``.

    Raises
    ------
    LoadError
        The plan is refused, a file differs from its record, or the files were replaced each time.
    FormatError, StorageError
        A file cannot be read.
    """
    over = InPlaceTargets(global_scope())
    asynchronous.wait_for_pending()
    try:
        read, stamp = read_stamped(request.source, partial(_read_once, executor, request, over))
    except BaseException as error:
        over.raise_mixed(request.source.path, error)
        raise
    return read._replace(stamp=stamp)


def _read_once(executor: Executor, request: LoadRequest, over: InPlaceTargets) -> Read:
    """Plan a load and run it."""
    source = request.source
    comparison = _choose_comparison(request)
    contents = request.restrict(source.open(comparison))
    plan = request.plan(contents)
    refused = plan.refusal()
    if refused is not None:
        raise _look_elsewhere(request, plan) or _explain_refusal(
            refused, plan, contents, comparison, source.where
        )
    targets = over.take_targets(plan) if request.options.in_place else None
    reading, values = run_load(executor, request, plan, contents, targets)
    problems = check_problems(
        source.where, comparison, reading.bad, shown=contents.where, count=len(plan.steps)
    )
    notes = (*comparison.notes, *problems)
    verified = not notes and _is_compared(request, plan, comparison)
    return Read(None, plan, reading._replace(notes=(*notes, *reading.notes)), values, verified)


def _choose_comparison(request: LoadRequest) -> Comparison:
    """Return the records for comparing the files of a load."""
    source, options = request.source, request.options
    if source.where is not None:
        return choose_comparison(source.where, source.filename, verify=options.verify, lazy=options.lazy)
    if options.verify:
        raise LoadError("bytes in memory have no manifest to be compared with; load without verify=True")
    return NO_COMPARISON


def _is_compared(request: LoadRequest, plan: LoadPlan, comparison: Comparison) -> bool:
    """Return whether everything that a load read was compared with the manifest."""
    filename = request.source.filename
    files = {held.name for step in plan.steps for held in step.held} if filename is None else {filename}
    if not comparison.covers(files):
        return False
    if request.view is None or filename is not None or comparison.complete:
        return True
    records = comparison.list_values()  # rows of large files are compared by pieces only
    return all(records[name].pieces or records[name].size <= PIECE for name in files)


def _look_elsewhere(request: LoadRequest, plan: LoadPlan) -> LoadError | None:
    """Return the error for a directory without files of the variables, if another path has such files."""
    if not request.source.has_file_each or any(row.what != "missing" for row in plan.problems):
        return None
    if plan.steps or request.view is not None:
        return None
    from paddlelike.io.load.misplaced import explain_misplaced  # late: for an error

    return explain_misplaced(request)


def _explain_refusal(
    refused: LoadError, plan: LoadPlan, contents: Contents, comparison: Comparison, where: Location | None
) -> LoadError:
    """Return the error of a refused plan, with the files that differ from their records."""
    if comparison.complete:
        bad = read_values(contents, plan)[0].bad
        return make_refusal(contents.where, bad, len(plan.steps)) if bad else refused
    lost = [
        row.variable
        for row in plan.problems
        if row.what == "missing" and row.variable in (comparison.records or {})
    ]
    if lost:
        listed = ", ".join(map(repr, lost[:8]))
        return type(refused)(
            refused.message,
            hint=f"the manifest lists {listed}: deleted after the save, or not copied with the directory",
        )
    bad = [] if comparison.records is None else contents.read([]).bad
    if not bad or where is None or is_of_another_save(where, comparison, bad):
        return refused
    lines = "".join(f"\n  {problem}" for problem in sorted(bad))
    return type(refused)(f"{refused.message}\n{count_unlike(bad)}:{lines}", hint=refused.hint)
