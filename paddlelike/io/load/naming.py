"""Names for the values of a combined file, which holds none."""

from __future__ import annotations

from collections.abc import Iterable

from paddlelike.errors import LoadError
from paddlelike.framework.graph.variable import Variable
from paddlelike.io.load.contents import Combined
from paddlelike.io.load.plan import check

__all__ = ["name_combined"]


def name_combined(
    contents: Combined, variables: Iterable[Variable], names: Iterable[str] | None, *, by_name: bool
) -> None:
    """Give the values of a combined file their names: ``names``, or those of the variables asked for.

    ``by_name``: those of the manifest instead, if it has them.

    Raises
    ------
    LoadError
        There are fewer or more values than names, so that nothing can be said.
    """
    ordered = sorted(variables, key=lambda variable: variable.name)
    known = [variable.name for variable in ordered] if names is None else sorted(names)
    if names is None and by_name:
        known = contents.saved_names or known
    headers = contents.headers
    if len(known) != len(headers):
        whose = "the program asks for" if names is None else "names= has"
        raise LoadError(
            f"{contents.where} holds {len(headers)} variables, {whose} {len(known)}"
            + (_first_difference(contents, ordered) if names is None else ""),
            hint="a combined file stores no names: load it with the program, and the call (params or "
            "persistables), that saved it, or say them by names=" + _part_that_fits(contents, ordered),
        )
    contents.name(known)


def _first_difference(contents: Combined, ordered: list[Variable]) -> str:
    for number, (variable, header) in enumerate(zip(ordered, contents.headers, strict=False)):
        problem = check(variable, header.dtype, header.shape)
        if problem:
            return f"; they part at number {number}, {variable.name!r}: {problem}"
    return ""


def _part_that_fits(contents: Combined, ordered: list[Variable]) -> str:
    from paddlelike.io.select import is_parameter

    part = [variable for variable in ordered if is_parameter(variable)]
    if len(part) != len(contents.headers) or any(
        check(v, h.dtype, h.shape) for v, h in zip(part, contents.headers, strict=True)
    ):
        return ""
    return f"; it holds exactly the {len(part)} parameters of this program: load_params"
