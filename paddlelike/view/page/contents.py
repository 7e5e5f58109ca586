"""The contents of a page as plain values: variables, programs, findings, a load plan, a difference."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

from paddlelike.core import VarType, numpy_dtype
from paddlelike.errors import MissingFileError, PaddlelikeError
from paddlelike.foundation.garbage import pause_collection
from paddlelike.framework import Program, Variable
from paddlelike.inspection.diagnosis import diagnose_content, find_leftovers
from paddlelike.inspection.difference import compare
from paddlelike.inspection.inspect import Inspection, VariableFacts, guess_role, inspect_content
from paddlelike.interop.content import list_persistables, open_content
from paddlelike.io.load.preview import plan_load
from paddlelike.io.planning.load_plan import LoadPlan
from paddlelike.storage import manifest
from paddlelike.storage.names import MANIFEST
from paddlelike.view.follow import Follower
from paddlelike.view.page.graphs import collect_program

Progress = Callable[[int, int], None]


@pause_collection
def collect_contents(
    path: str | os.PathLike[str],
    *,
    program: str | None = None,
    against: str | None = None,
    statistics: bool = True,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Return the contents of the page of a path, as JSON values.

    Parameters
    ----------
    program
        The path of the program for which a load is planned. None means no plan.
    against
        Another path of any format to compare with; added values are those in ``path`` alone.
    statistics
        Whether to read every value, for statistics, histograms and findings.

    Raises
    ------
    MissingFileError
        There is nothing under a path.
    LoadError
        ``program`` holds no program, or several.
    StorageError
        A directory cannot be listed.
    """
    wanted = None
    if program is not None:
        with open_content(program) as content:
            wanted = content.get_program()
    left = find_leftovers(os.fspath(path))
    with open_content(path) as content:
        found = inspect_content(content, statistics=statistics, histograms=statistics, progress=progress)
        programs = dict(content.programs)
        diagnosis = diagnose_content(content, found, left) if statistics else None
    declared = _collect_declared(found, programs)
    page: dict[str, Any] = {
        "path": found.path,
        "title": found.title,
        "library": found.library,
        "saved": found.saved,
        "files": [list(file) for file in found.files],
        "variables": [*map(_collect_variable, found.variables), *declared],
        "unnamed": list(found.unnamed),
        "checked": diagnosis is not None,
        "findings": [] if diagnosis is None else [one._asdict() for one in diagnosis.findings],
        "calls": [] if diagnosis is None else [list(one) for one in diagnosis.calls],
        "programs": [collect_program(name, one) for name, one in programs.items()],
        "history": _collect_history(os.fspath(path)),
        "plan": None if wanted is None else _collect_plan(path, wanted, program),
        "difference": None if against is None else _collect_difference(against, path, progress),
    }
    return page


def _collect_history(path: str) -> list[dict[str, Any]]:
    """Return the saves below a directory in order, each with the number of its new or changed files.

    The result is empty with fewer than two saves.
    """
    saves: list[dict[str, Any]] = Follower(path).look()["saves"] if os.path.isdir(path) else []
    before: dict[str, str | None] = {}
    for save in saves:
        sums = _read_checksums(os.path.join(path, save["name"]))
        save["changed"] = sum(name not in before or before[name] != one for name, one in sums.items())
        before = sums
    return saves if len(saves) > 1 else []


def _read_checksums(save: str) -> dict[str, str | None]:
    names = (os.path.join(save, MANIFEST), f"{save}.pdmanifest")
    with open(next(one for one in names if os.path.exists(one)), "rb") as file:
        return {name: record.checksum for name, record in manifest.decode(file.read()).files.items()}


def _collect_variable(one: VariableFacts) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": one.name,
        "file": one.file,
        "role": one.role,
        "dtype": one.dtype,
        "shape": list(one.shape),
        "nbytes": one.nbytes,
        "lod": one.lod_levels,
        "height": one.height,
        "problem": one.problem,
        "flags": [],
    }
    if one.statistics is not None:
        some = one.statistics
        facts |= {"flags": list(some.flags), "nan": some.nan, "inf": some.inf, "zeros": some.zeros}
        facts |= {"mean": some.mean, "std": some.std, "min": some.minimum, "max": some.maximum}
    if one.histogram is not None:
        facts["histogram"] = one.histogram._asdict()
    if one.sample is not None:
        facts["sample"] = one.sample._asdict()
    return facts


def _collect_declared(found: Inspection, programs: dict[str, Program]) -> list[dict[str, Any]]:
    """Return the variables that a program needs from files but that no file contains."""
    held = {one.name for one in found.variables}
    missing: dict[str, Variable] = {}
    if not found.unnamed:
        for file, program in programs.items():
            named = {f"{file[: file.rfind('/') + 1]}{one.name}": one for one in list_persistables(program)}
            missing |= {name: one for name, one in named.items() if name not in held}
    return [
        {
            "name": name,
            "file": None,
            "role": guess_role(name),
            "dtype": one.dtype.name,
            "shape": list(one.shape),
            "nbytes": _count_bytes(one),
            "lod": one.lod_level,
            "height": None,
            "problem": None,
            "flags": ["in no file"],
        }
        for name, one in sorted(missing.items())
    ]


def _count_bytes(variable: Variable) -> int:
    if any(dim < 0 for dim in variable.shape):
        return 0
    return math.prod(variable.shape) * numpy_dtype(variable.dtype).itemsize


def _collect_plan(path: str | os.PathLike[str], program: Program, where: str | None) -> dict[str, Any]:
    try:
        plan = _make_plan(path, program)
    except (PaddlelikeError, OSError) as error:
        return {"program": where, "error": str(error)}
    rows = [
        {
            "variable": row.variable,
            "file": row.file,
            "what": row.what,
            "problem": row in plan.problems,
            "wants": _describe(row.wants),
            "has": _describe(row.has),
            "why": row.why,
            "hint": row.hint,
        }
        for row in plan.rows
    ]
    proposals = [[one.file, one.variable] for one in plan.proposals]
    return {"program": where, "fits": bool(plan), "rows": rows, "proposals": proposals, "hint": plan.hint}


def _make_plan(path: str | os.PathLike[str], program: Program) -> LoadPlan:
    """Return the plan of a load from a directory, or from its only file if that is a combined one."""
    text = os.fspath(path)
    with open_content(text) as content:
        combined = [file.name for file in content.files if file.kind == "combined"]
    if content.is_file and combined:
        directory, name = os.path.split(text)
        return plan_load(directory or ".", program, filename=name)
    return plan_load(text, program, filename=combined[0] if len(combined) == 1 else None)


def _describe(facts: tuple[VarType, tuple[int, ...]] | None) -> str:
    return "" if facts is None else f"{facts[0].name} {list(facts[1])}"


def _collect_difference(
    left: str, right: str | os.PathLike[str], progress: Progress | None
) -> dict[str, Any]:
    try:
        return compare(left, right, progress=progress).to_dict()
    except MissingFileError:
        raise
    except (PaddlelikeError, OSError) as error:
        return {"left": left, "right": os.fspath(right), "error": str(error)}
