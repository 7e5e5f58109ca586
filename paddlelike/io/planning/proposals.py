"""Guesses of the file for a variable, by similar names, other counters in names, or unique shapes."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, NamedTuple

from paddlelike.framework.hints import Named, make_natural_key, mask_numbers

_FLUID_KIND: Final = re.compile(r"\.(w|b)_\d+(?:_(.*?))?(?:_\d+)?$")
_OTHER_KINDS: Final = {"weight": "w", "kernel": "w", "w": "w", "bias": "b", "b": "b"}


class Proposal(NamedTuple):
    """The probable file for a variable, and the reason."""

    file: str
    variable: str
    why: str


def propose(
    wanted: Sequence[Named], unused: Sequence[Named], fits: Callable[[Named, Named], bool]
) -> list[Proposal]:
    """Return proposals of files for variables without one, each used once, in the order of ``wanted``.

    These are tried in turn: names that differ only in their counters, in order; names that differ only by a
    prefix; the only pair with a shape and kind (weight, bias, velocity ...); the only pair with a shape; and
    the given order, if all remaining files have the shapes of the variables in that order. A single number,
    such as the learning rate of another schedule, is matched only by its name.
    """
    found: dict[str, Proposal] = {}
    left = {file.name: file for file in unused}

    def take(pairs: Iterable[tuple[Named, Named]], why: str) -> None:
        for variable, file in pairs:
            if variable.name not in found and file.name in left and fits(variable, file):
                found[variable.name] = Proposal(file.name, variable.name, why)
                del left[file.name]

    for step, why in (
        (_pair_by_number, "equal except for its numbers"),
        (_pair_by_ending, "equal except for a prefix"),
        (_pair_by_kind, "the only one of this shape and kind"),
        (_pair_by_shape, "the only one of this shape"),
    ):
        take(step([v for v in wanted if v.name not in found], list(left.values())), why)
    rest = [one for one in wanted if one.name not in found and not _is_number(one)]
    files = sorted(
        (file for file in left.values() if not _is_number(file)), key=lambda file: make_natural_key(file.name)
    )
    if len(rest) == len(files) and all(fits(*pair) for pair in zip(rest, files, strict=True)):
        take(zip(rest, files, strict=True), "the same shapes in the same order")
    return [found[variable.name] for variable in wanted if variable.name in found]


def _pair_by_number(wanted: Sequence[Named], files: Sequence[Named]) -> list[tuple[Named, Named]]:
    return _pair_groups(wanted, files, lambda named: mask_numbers(named.name), once=False)


def _pair_by_ending(wanted: Sequence[Named], files: Sequence[Named]) -> list[tuple[Named, Named]]:
    """Return pairs of names where one name ends with the other, if each name is in one such pair only."""

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


def _pair_by_kind(wanted: Sequence[Named], files: Sequence[Named]) -> list[tuple[Named, Named]]:
    def key(named: Named) -> Hashable:
        return named.dtype, named.shape, _find_kind(named.name) or named.name

    return _pair_groups(wanted, files, key, once=True)


def _pair_by_shape(wanted: Sequence[Named], files: Sequence[Named]) -> list[tuple[Named, Named]]:
    """Return pairs that are the only ones of their shape, unless both kinds are known and differ."""
    pairs = _pair_groups(wanted, files, lambda named: (named.dtype, named.shape), once=True)
    return [
        (v, f)
        for v, f in pairs
        if not (_find_kind(v.name) and _find_kind(f.name)) and not (_is_number(v) or _is_number(f))
    ]


def _is_number(named: Named) -> bool:
    """Return whether a value is a single number whose name is not descriptive, such as a learning rate."""
    return math.prod(named.shape) == 1 and _find_kind(named.name) is None


def _pair_groups(
    wanted: Sequence[Named], files: Sequence[Named], key: Callable[[Named], Hashable], *, once: bool
) -> list[tuple[Named, Named]]:
    """Return pairs with the same key, in the order of names; with ``once``, only keys with one pair."""
    groups: dict[Hashable, tuple[list[Named], list[Named]]] = defaultdict(lambda: ([], []))
    for variable in wanted:
        groups[key(variable)][0].append(variable)
    for file in files:
        groups[key(file)][1].append(file)
    pairs: list[tuple[Named, Named]] = []
    for ours, theirs in groups.values():
        if len(ours) == len(theirs) and (len(ours) == 1 or not once):
            ours.sort(key=lambda named: make_natural_key(named.name))
            theirs.sort(key=lambda named: make_natural_key(named.name))
            pairs += zip(ours, theirs, strict=True)
    return pairs


def _find_kind(name: str) -> str | None:
    """Return the kind of a value, by Fluid's or other naming: weight, bias or an optimizer state."""
    found = _FLUID_KIND.search(name)
    if found:
        return f"{found[1]} {found[2] or ''}".strip()
    return _OTHER_KINDS.get(re.split(r"[./:@]", name)[-1])
