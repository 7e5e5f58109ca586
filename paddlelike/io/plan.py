"""The plan of a load: every header read and compared with the program before anything is changed.

What does not fit is collected and told at once, with near names, and with a guess where the whole set of
names has drifted because a network was built twice in one process.
"""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from paddlelike.core.dtypes import VarType
from paddlelike.errors import FormatError, LoadError, MissingFileError, StorageError
from paddlelike.formats import combined, lod_tensor, selected_rows
from paddlelike.framework.variable import Variable
from paddlelike.storage.local import File, list_names, open_file

__all__ = ["Found", "check", "check_headers", "near_names", "plan_combined", "plan_directory"]


class Found(NamedTuple):
    """A variable that the files hold as the program wants it."""

    variable: Variable
    header: lod_tensor.Header | selected_rows.Header


class Problem(NamedTuple):
    """Why one variable cannot be loaded."""

    name: str
    what: str
    missing: bool = False
    hint: str | None = None


def plan_directory(directory: str, variables: Iterable[Variable]) -> tuple[list[Found], list[str]]:
    """What a directory of one file per variable holds, and the files nobody asks for.

    Raises
    ------
    LoadError
        With every variable that is missing or does not fit; MissingFileError when files are missing only.
    """
    variables = list(variables)
    if not os.path.isdir(directory):
        what = "is a file" if os.path.exists(directory) else "does not exist"
        raise MissingFileError(
            f"nothing can be loaded: directory {directory} {what}",
            hint="a combined file needs filename=" if os.path.isfile(directory) else "check the path",
        )
    present = list_names(directory)
    found: list[Found] = []
    problems: list[Problem] = []
    known = set(present)
    for variable in variables:
        if os.path.normpath(variable.name) not in known:
            problems.append(Problem(variable.name, "there is no such file", missing=True))
            continue
        result = _read_header(directory, variable)
        (found if isinstance(result, Found) else problems).append(result)  # type: ignore[arg-type]
    wanted = {os.path.normpath(v.name) for v in variables}
    unexpected = [name for name in present if name not in wanted]
    if problems:
        raise _refusal(directory, problems, len(variables), unexpected)
    return found, unexpected


def _read_header(directory: str, variable: Variable) -> Found | Problem:
    try:
        with open_file(directory, variable.name) as file:
            if variable.type == VarType.SELECTED_ROWS:
                header: lod_tensor.Header | selected_rows.Header = selected_rows.read_header(file)
            else:
                header = lod_tensor.read_header(file)
    except (FormatError, StorageError) as error:
        return Problem(variable.name, error.message, hint=error.hint)
    problem = check(variable, header.dtype, header.shape)
    return Problem(variable.name, problem) if problem else Found(variable, header)


def plan_combined(source: File | bytes, where: str, variables: Iterable[Variable]) -> list[Found]:
    """What a combined file holds, matched with the variables by the order of their names."""
    ordered = sorted(variables, key=lambda v: v.name)
    try:
        headers = list(combined.read_headers(source))
    except FormatError as error:
        raise LoadError(
            f"{where} is no combined file of variables: {error.message}", hint=error.hint
        ) from error
    return check_headers(headers, where, ordered)


def check_headers(headers: list[lod_tensor.Header], where: str, ordered: list[Variable]) -> list[Found]:
    """The headers of a combined file, matched with variables sorted by name."""
    if len(headers) != len(ordered):
        raise LoadError(
            f"{where} holds {len(headers)} variables, the program asks for {len(ordered)}"
            + _first_difference(headers, ordered),
            hint="a combined file stores no names: load it with the program, and the call (params or "
            "persistables), that saved it",
        )
    problems = []
    for variable, header in zip(ordered, headers, strict=True):
        problem = check(variable, header.dtype, header.shape)
        if problem:
            problems.append(Problem(variable.name, problem))
    if problems:
        raise _refusal(where, problems, len(ordered), [])
    return [Found(v, h) for v, h in zip(ordered, headers, strict=True)]


def _first_difference(headers: list[lod_tensor.Header], ordered: list[Variable]) -> str:
    for number, (variable, header) in enumerate(zip(ordered, headers, strict=False)):
        problem = check(variable, header.dtype, header.shape)
        if problem:
            return f"; they part at number {number}, {variable.name!r}: {problem}"
    return ""


def check(variable: Variable, dtype: VarType, shape: tuple[int, ...]) -> str | None:
    """Why a stored tensor does not fit a variable, or None."""
    want = variable.shape
    if dtype != variable.dtype:
        return (
            f"the file holds {dtype.name}{list(shape)}, the program wants {variable.dtype.name}{list(want)}"
        )
    if not want:
        return None  # declared without a shape: the file tells
    same = len(want) == len(shape) and all(w in (-1, s) for w, s in zip(want, shape, strict=True))
    one = math.prod(shape) == math.prod(want) == 1  # Paddle 2 writes [1] without dims
    rows = variable.type == VarType.SELECTED_ROWS and want[1:] == tuple(shape)[1:]
    if same or one or rows:
        return None
    return f"the file has shape {list(shape)}, the program wants {list(want)}"


def _refusal(where: str, problems: list[Problem], count: int, unexpected: list[str]) -> LoadError:
    """One error that tells everything."""
    lines = []
    for problem in problems[:20]:
        near = near_names(problem.name, unexpected) if problem.missing else ""
        lines.append(f"\n  {problem.name}: {problem.what}{near}")
    if len(problems) > 20:
        lines.append(f"\n  and {len(problems) - 20} more")
    drift = _drift([p.name for p in problems if p.missing], unexpected)
    hint = drift or next((p.hint for p in problems if p.hint), None) or _advice(problems)
    kind = MissingFileError if all(p.missing for p in problems) else LoadError
    return kind(
        f"nothing was loaded from {where}: {len(problems)} of {count} variables do not fit{''.join(lines)}",
        hint=hint,
    )


def near_names(name: str, names: list[str]) -> str:
    """`` (near: ...)`` for names like ``name``, or an empty string."""
    near = difflib.get_close_matches(name, names[:5000], 3, 0.7)
    return f" (near: {', '.join(near)})" if near else ""


def _advice(problems: list[Problem]) -> str:
    if all(p.missing for p in problems):
        return (
            "the program and the one that saved must be the same network with the same names; "
            "load_vars with vars= loads a part"
        )
    return "the program must be the network that saved these files; nothing in the scope was changed"


def _drift(missing: list[str], unexpected: list[str]) -> str | None:
    """A hint when the names differ only in their numbers: the network was built twice."""

    def plain(name: str) -> str:
        return re.sub(r"_\d+(?=\.|_|$)", "_#", name)

    if not missing or not unexpected:
        return None
    have = {plain(name) for name in unexpected}
    if sum(plain(name) in have for name in missing) < len(missing):
        return None
    return (
        f"the names differ only in their numbers (the program asks for {missing[0]!r}, the directory has "
        f"{unexpected[0]!r}): the network was probably built twice in this process; build it under "
        "fluid.unique_name.guard(), or in a new process"
    )
