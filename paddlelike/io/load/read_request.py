"""Planning and reading of a load from files that another process may replace at the same time."""

from __future__ import annotations

import os
from typing import NamedTuple

from paddlelike.core.scope import global_scope
from paddlelike.errors import LoadError, PaddlelikeError
from paddlelike.executor.run import Executor
from paddlelike.io import asynchronous
from paddlelike.io.calls import hold_warnings, warn_user
from paddlelike.io.contents.interface import Contents, Reading, Value
from paddlelike.io.load.in_place import InPlaceTargets
from paddlelike.io.load.misplaced import explain_misplaced
from paddlelike.io.load.request import LoadRequest, open_contents
from paddlelike.io.load.run import run_load
from paddlelike.io.load.stable import TRIES, make_busy_error
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
from paddlelike.storage.location import Location, locate

__all__ = ["Read", "read_request"]

Path = str | os.PathLike[str]


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


def read_request(
    executor: Executor,
    dirname: Path | None,
    filename: str | bytes | None,
    request: LoadRequest,
    *,
    lazily: bool,
    verify: bool | None,
    in_place: bool,
) -> Read:
    """Plan a load and run it; once more if the files were replaced meanwhile, so that no two saves are mixed.

    The scope is not changed, but by ``in_place``.

    Raises
    ------
    LoadError
        The plan is refused, a file is not what was saved, or the files were replaced each time.
    FormatError, StorageError
        A file cannot be read.
    """
    where = None if dirname is None else locate(dirname)
    over = InPlaceTargets(global_scope())
    asynchronous.wait_for_pending()
    for _ in range(TRIES):
        if where is not None:
            where.recover()  # completes a save that was interrupted in this directory
        stamp = None if where is None else where.stamp()
        try:
            with hold_warnings() as held:  # until it is known that no other save came between
                comparison = _comparison(where, filename, verify, lazily)
                contents = request.restrict(open_contents(dirname, filename, comparison))
                plan = request.plan(contents)
                refused = plan.refusal()
                if refused is not None:
                    elsewhere = _look_elsewhere(request, plan, dirname, filename, where)
                    raise elsewhere or _explain_refusal(refused, plan, contents, comparison, where)
                targets = over.take_targets(plan) if in_place else None
                reading, values = run_load(
                    executor, plan, contents, dirname, filename, lazily=lazily, targets=targets
                )
                notes = list(comparison.notes)
                notes += check_problems(
                    where, comparison, reading.bad, shown=contents.where, count=len(plan.steps)
                )
        except BaseException as error:
            if isinstance(error, PaddlelikeError) and where is not None and where.stamp() != stamp:
                continue
            over.raise_mixed(str(dirname), error)
            raise
        if where is None or where.stamp() == stamp:
            for message in held:
                warn_user(message)
            files = {held.name for step in plan.steps for held in step.held}
            compared = comparison.covers(files if filename is None else [os.fsdecode(filename)])
            reading = reading._replace(notes=tuple(notes))
            if compared and request.view is not None and filename is None and not comparison.complete:
                records = comparison.records or {}  # rows of large files are compared by pieces only
                compared = all(records[name].pieces or records[name].size <= PIECE for name in files)
            verified = compared and not notes
            return Read(stamp, plan, reading, values, verified)
    busy = make_busy_error(str(dirname))
    over.raise_mixed(str(dirname), busy)
    raise busy


def _look_elsewhere(
    request: LoadRequest,
    plan: LoadPlan,
    dirname: Path | None,
    filename: str | bytes | None,
    where: Location | None,
) -> LoadError | None:
    """Return the error for a directory without any file of the variables, if another path is meant."""
    if where is None or filename is not None or any(row.what != "missing" for row in plan.problems):
        return None
    if plan.steps or request.view is not None:
        return None
    return explain_misplaced(request, os.fsdecode(str(dirname)).rstrip("/"), where.list_names())


def _comparison(
    where: Location | None, filename: str | bytes | None, verify: bool | None, lazily: bool
) -> Comparison:
    """Return what a load compares its files with."""
    if where is None:
        if verify:
            raise LoadError("bytes in memory have no manifest to be compared with; load without verify=True")
        return NO_COMPARISON
    name = None if filename is None else os.fsdecode(filename)
    return choose_comparison(where, name, verify=verify, lazy=lazily)


def _explain_refusal(
    refused: LoadError, plan: LoadPlan, contents: Contents, comparison: Comparison, where: Location | None
) -> LoadError:
    """Return the error of a plan that is refused, with the files that are not what was saved."""
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
