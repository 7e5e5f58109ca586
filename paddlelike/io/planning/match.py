"""Which names may be meant by which: near names, numbers that have drifted, shapes that only fit once."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, NamedTuple

from paddlelike.core.dtypes import VarType

__all__ = ["Named", "Proposal", "drift", "near_names", "propose"]

_MANY: Final = 5000  # names among which near ones are looked for
_FLUID_KIND: Final = re.compile(r"\.(w|b)_\d+(?:_(.*?))?(?:_\d+)?$")
_OTHER_KINDS: Final = {"weight": "w", "kernel": "w", "w": "w", "bias": "b", "b": "b"}


class Named(NamedTuple):
    """A name with what is known of its value."""

    name: str
    dtype: VarType
    shape: tuple[int, ...]


class Proposal(NamedTuple):
    """A file that may be meant for a variable, and why."""

    file: str
    variable: str
    why: str


def near_names(name: str, names: list[str]) -> str:
    """`` (near: ...)`` for names like ``name``, or an empty string."""
    near = difflib.get_close_matches(name, names[:_MANY], 3, 0.7)
    return f" (near: {', '.join(near)})" if near else ""


def without_numbers(name: str) -> str:
    """The name with ``#`` for every number that Fluid counts.

    >>> without_numbers("conv2d_12.w_0_velocity_0")
    'conv2d_#.w_#_velocity_#'
    """
    return re.sub(r"_\d+(?=\.|_|$)", "_#", name)


def drift(missing: Sequence[str], unexpected: Sequence[str]) -> str | None:
    """A hint when the names differ only in their numbers: the network was built twice."""
    if not missing or not unexpected:
        return None
    have = {without_numbers(name) for name in unexpected}
    if not all(without_numbers(name) in have for name in missing):
        return None
    alike = [name for name in unexpected if without_numbers(name) == without_numbers(missing[0])]
    return (
        f"the names differ only in their numbers (the program asks for {missing[0]!r}, the files have "
        f"{min(alike, key=_natural)!r}): the network was probably built twice in this process; build it "
        "under fluid.unique_name.guard(), or in a new process (or map the names: plan_load(...).rules() "
        "proposes how, to be given as rules=)"
    )


def propose(
    wanted: Sequence[Named], unused: Sequence[Named], fits: Callable[[Named, Named], bool]
) -> list[Proposal]:
    """Files for variables that have none, each used once, in the order of ``wanted``.

    In turn: names that differ in their numbers only, in order; a name with something in front of it; the only
    ones of a shape and kind (weight, bias, velocity ...), or of a shape; and if all that is left has the same
    shapes in the same order, that order.
    """
    found: dict[str, Proposal] = {}
    left = {file.name: file for file in unused}

    def take(pairs: Iterable[tuple[Named, Named]], why: str) -> None:
        for variable, file in pairs:
            if variable.name not in found and file.name in left and fits(variable, file):
                found[variable.name] = Proposal(file.name, variable.name, why)
                del left[file.name]

    for step, why in (
        (_by_number, "the same but for its numbers"),
        (_by_ending, "the same but for what is in front"),
        (_by_kind, "the only one of this shape and kind"),
        (_by_shape, "the only one of this shape"),
    ):
        take(step([v for v in wanted if v.name not in found], list(left.values())), why)
    rest = [variable for variable in wanted if variable.name not in found]
    files = sorted(left.values(), key=lambda file: _natural(file.name))
    if len(rest) == len(files) and all(fits(*pair) for pair in zip(rest, files, strict=True)):
        take(zip(rest, files, strict=True), "the same shapes in the same order")
    return [found[variable.name] for variable in wanted if variable.name in found]


def _by_number(wanted: Sequence[Named], files: Sequence[Named]) -> list[tuple[Named, Named]]:
    return _in_groups(wanted, files, lambda named: without_numbers(named.name), once=False)


def _by_ending(wanted: Sequence[Named], files: Sequence[Named]) -> list[tuple[Named, Named]]:
    """Pairs where one name ends with the other, after a sign; only where there is one such pair."""

    def endings(name: str) -> list[str]:
        return [name[found.end() :] for found in re.finditer(r"[/.:@]", name)]

    ours, theirs = {v.name: v for v in wanted}, {f.name: f for f in files}
    pairs: list[tuple[Named, Named]] = []
    longer = [(theirs[f], [ours[e] for e in endings(f) if e in ours]) for f in theirs]
    pairs += [(variables[0], file) for file, variables in longer if len(variables) == 1]
    shorter = [(ours[v], [theirs[e] for e in endings(v) if e in theirs]) for v in ours]
    pairs += [(variable, found[0]) for variable, found in shorter if len(found) == 1]
    counts: dict[Named, int] = defaultdict(int)
    for pair in pairs:
        for one in pair:
            counts[one] += 1
    return [pair for pair in pairs if counts[pair[0]] == counts[pair[1]] == 1]


def _by_kind(wanted: Sequence[Named], files: Sequence[Named]) -> list[tuple[Named, Named]]:
    def key(named: Named) -> Hashable:
        return named.dtype, named.shape, _kind(named.name) or named.name

    return _in_groups(wanted, files, key, once=True)


def _by_shape(wanted: Sequence[Named], files: Sequence[Named]) -> list[tuple[Named, Named]]:
    """Where a kind is not known: of two known kinds that differ, none is meant by the other."""
    pairs = _in_groups(wanted, files, lambda named: (named.dtype, named.shape), once=True)
    return [(v, f) for v, f in pairs if not (_kind(v.name) and _kind(f.name))]


def _in_groups(
    wanted: Sequence[Named], files: Sequence[Named], key: Callable[[Named], Hashable], *, once: bool
) -> list[tuple[Named, Named]]:
    """Variables and files of the same key, in order; ``once``: where there is only one of each."""
    groups: dict[Hashable, tuple[list[Named], list[Named]]] = defaultdict(lambda: ([], []))
    for variable in wanted:
        groups[key(variable)][0].append(variable)
    for file in files:
        groups[key(file)][1].append(file)
    pairs: list[tuple[Named, Named]] = []
    for ours, theirs in groups.values():
        if len(ours) == len(theirs) and (len(ours) == 1 or not once):
            ours.sort(key=lambda named: _natural(named.name))
            theirs.sort(key=lambda named: _natural(named.name))
            pairs += zip(ours, theirs, strict=True)
    return pairs


def _kind(name: str) -> str | None:
    """Weight, bias or which optimizer state, where the name tells, in Fluid's way or that of others."""
    found = _FLUID_KIND.search(name)
    if found:
        return f"{found[1]} {found[2] or ''}".strip()
    return _OTHER_KINDS.get(re.split(r"[./:@]", name)[-1])


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts conv2d_9 before conv2d_10."""
    parts = re.split(r"0*(\d+)", name)
    return [(len(part), part) if number % 2 else (0, part) for number, part in enumerate(parts)]
