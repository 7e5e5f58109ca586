"""Names for the values of a combined file, which holds none."""

from __future__ import annotations

from collections.abc import Iterable

from paddlelike.errors import LoadError
from paddlelike.framework import Variable
from paddlelike.io.calls import is_parameter
from paddlelike.io.contents.interface import Positional
from paddlelike.io.planning.load_plan import explain_misfit


def assign_names(
    contents: Positional, variables: Iterable[Variable], names: Iterable[str] | None, *, by_name: bool
) -> None:
    """Assign names to the values of a combined file: ``names``, or the names of the requested variables.

    Parameters
    ----------
    by_name
        Prefer the names that the manifest records to the names of the requested variables.

    Raises
    ------
    LoadError
        There are fewer or more values than names.
    """
    ordered = sorted(variables, key=lambda variable: variable.name)
    known = [variable.name for variable in ordered] if names is None else sorted(names)
    if names is None and by_name:
        known = contents.saved_names or known
    headers = contents.headers
    if len(known) != len(headers):
        whose = "the program needs" if names is None else "names= has"
        raise LoadError(
            f"{contents.where} holds {len(headers)} variables, {whose} {len(known)}"
            + (_describe_first_difference(contents, ordered) if names is None else ""),
            hint="a combined file stores no names: load it with the program, and the call (params or "
            "persistables), that saved it, or pass names=" + _describe_matching_part(contents, ordered),
        )
    contents.assign_names(known)


def _describe_first_difference(contents: Positional, ordered: list[Variable]) -> str:
    for index, (variable, header) in enumerate(zip(ordered, contents.headers, strict=False)):
        problem = explain_misfit(variable, header.dtype, header.shape)
        if problem:
            return f"; the first difference is at index {index}, {variable.name!r}: {problem}"
    return ""


def _describe_matching_part(contents: Positional, ordered: list[Variable]) -> str:
    part = [variable for variable in ordered if is_parameter(variable)]
    if len(part) != len(contents.headers) or any(
        explain_misfit(v, h.dtype, h.shape) for v, h in zip(part, contents.headers, strict=True)
    ):
        return ""
    return f"; it holds exactly the {len(part)} parameters of this program: load_params"
