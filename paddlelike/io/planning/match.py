"""Guesses which file is meant for a variable: similar names, other counters in names, unique shapes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, NamedTuple

from paddlelike.core.dtypes import VarType

__all__ = ["Named", "Proposal", "explain_renumbering", "explain_repetition", "propose"]

_FLUID_KIND: Final = re.compile(r"\.(w|b)_\d+(?:_(.*?))?(?:_\d+)?$")
_OTHER_KINDS: Final = {"weight": "w", "kernel": "w", "w": "w", "bias": "b", "b": "b"}


class Named(NamedTuple):
    """A name, with the element type and shape of its value."""

    name: str
    dtype: VarType
    shape: tuple[int, ...]


class Proposal(NamedTuple):
    """A file that is probably meant for a variable, and the reason."""

    file: str
    variable: str
    why: str


def mask_numbers(name: str) -> str:
    """Return the name with ``#`` in place of every counter that Fluid puts into names.

    >>> mask_numbers("conv2d_12.w_0_velocity_0")
    'conv2d_#.w_#_velocity_#'
    """
    return re.sub(r"_\d+(?=\.|_|$)", "_#", name)


def explain_repetition(missing: Sequence[Named], fitting: Sequence[Named]) -> str | None:
    """Return a hint if a program holds the saved network and as many copies of all of it, else None.

    Of a network with a layer more than the saved one some variables have no like, or other shapes. The copies
    may be without an optimizer and its state.
    """
    absent, there = (Counter((mask_numbers(n.name), n.shape) for n in some) for some in (missing, fitting))
    counted = {key for key in there if "#" in key[0]}
    of_layers = {key for key in counted if re.search(r"\.[wb]_#$", key[0])}
    times = {absent[key] / there[key] for key in (counted if absent.keys() - of_layers else of_layers)}
    if not absent or absent.keys() - counted or len(times) != 1 or not times.pop().is_integer():
        return None
    first = missing[0].name
    return (
        f"the program holds the network more than once: {first!r} beside "
        f"{_find_alike(first, [one.name for one in fitting])[0]!r}, as when a cell of a notebook is run "
        "again. Build it under `with fluid.program_guard(fluid.Program(), fluid.Program()), "
        "fluid.unique_name.guard():`, so that every run gives the same names"
    )


def explain_renumbering(missing: Sequence[str], unexpected: Sequence[str]) -> str | None:
    """Return a hint if the names differ only in their counters, else None."""
    if not missing or not unexpected:
        return None
    have = {mask_numbers(name) for name in unexpected}
    if not all(mask_numbers(name) in have for name in missing):
        return None
    first = _find_alike(missing[0], unexpected)[0]
    return (
        f"the names differ only in their numbers (the program asks for {missing[0]!r}, the files "
        f"have {first!r}): the network was probably built twice in this process; build it under "
        "`with fluid.unique_name.guard():`, or in a new process (or map the names: plan_load(...).rules() "
        "proposes rules for rules=)"
    )


def _find_alike(name: str, others: Sequence[str]) -> list[str]:
    """Return the names that differ from ``name`` only in their counters, in natural order."""
    masked = mask_numbers(name)
    return sorted((one for one in others if mask_numbers(one) == masked), key=_make_natural_key)


def propose(
    wanted: Sequence[Named], unused: Sequence[Named], fits: Callable[[Named, Named], bool]
) -> list[Proposal]:
    """Return proposals of files for variables without one, each used once, in the order of ``wanted``.

    These are tried in turn: names that differ only in their counters, in order; names that differ only by a
    prefix; the only pair of a shape and kind (weight, bias, velocity ...); the only pair of a shape; and if
    all remaining files have the same shapes in the same order as the variables, that order.
    """
    found: dict[str, Proposal] = {}
    left = {file.name: file for file in unused}

    def take(pairs: Iterable[tuple[Named, Named]], why: str) -> None:
        for variable, file in pairs:
            if variable.name not in found and file.name in left and fits(variable, file):
                found[variable.name] = Proposal(file.name, variable.name, why)
                del left[file.name]

    for step, why in (
        (_pair_by_number, "the same but for its numbers"),
        (_pair_by_ending, "the same but for a prefix"),
        (_pair_by_kind, "the only one of this shape and kind"),
        (_pair_by_shape, "the only one of this shape"),
    ):
        take(step([v for v in wanted if v.name not in found], list(left.values())), why)
    rest = [variable for variable in wanted if variable.name not in found]
    files = sorted(left.values(), key=lambda file: _make_natural_key(file.name))
    if len(rest) == len(files) and all(fits(*pair) for pair in zip(rest, files, strict=True)):
        take(zip(rest, files, strict=True), "the same shapes in the same order")
    return [found[variable.name] for variable in wanted if variable.name in found]


def _pair_by_number(wanted: Sequence[Named], files: Sequence[Named]) -> list[tuple[Named, Named]]:
    return _pair_groups(wanted, files, lambda named: mask_numbers(named.name), once=False)


def _pair_by_ending(wanted: Sequence[Named], files: Sequence[Named]) -> list[tuple[Named, Named]]:
    """Return pairs where one name is the other with a prefix, if each name is in one such pair only."""

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
    """Return the only pairs of a shape, except where the kinds of both are known, which then differ."""
    pairs = _pair_groups(wanted, files, lambda named: (named.dtype, named.shape), once=True)
    return [(v, f) for v, f in pairs if not (_find_kind(v.name) and _find_kind(f.name))]


def _pair_groups(
    wanted: Sequence[Named], files: Sequence[Named], key: Callable[[Named], Hashable], *, once: bool
) -> list[tuple[Named, Named]]:
    """Return pairs of the same key, in the order of their names; ``once``: of keys with one pair only."""
    groups: dict[Hashable, tuple[list[Named], list[Named]]] = defaultdict(lambda: ([], []))
    for variable in wanted:
        groups[key(variable)][0].append(variable)
    for file in files:
        groups[key(file)][1].append(file)
    pairs: list[tuple[Named, Named]] = []
    for ours, theirs in groups.values():
        if len(ours) == len(theirs) and (len(ours) == 1 or not once):
            ours.sort(key=lambda named: _make_natural_key(named.name))
            theirs.sort(key=lambda named: _make_natural_key(named.name))
            pairs += zip(ours, theirs, strict=True)
    return pairs


def _find_kind(name: str) -> str | None:
    """Return the kind of a value, by Fluid's or other naming: weight, bias or an optimizer state."""
    found = _FLUID_KIND.search(name)
    if found:
        return f"{found[1]} {found[2] or ''}".strip()
    return _OTHER_KINDS.get(re.split(r"[./:@]", name)[-1])


def _make_natural_key(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts conv2d_9 before conv2d_10."""
    parts = re.split(r"0*(\d+)", name)
    return [(len(part), part) if index % 2 else (0, part) for index, part in enumerate(parts)]
