"""Apply rules in a conversion: rename, cut, join or transpose values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from paddlelike.core import Array, LoDTensor
from paddlelike.errors import LoadError
from paddlelike.formats.base import Value, get_array
from paddlelike.foundation.near_names import suggest_names
from paddlelike.foundation.warn import warn_user
from paddlelike.io.planning.recipe import reorder
from paddlelike.io.rules.rule import Init, Rename, Skip, find_sources, get_matcher, match_targets
from paddlelike.io.rules.rules import Rules, find_idle

Recipe = Callable[[Iterable[str]], Rules]  # from the names in the source
Store = Callable[[Value], Value]


def arrange(values: Mapping[str, Value], rules: Rules | Recipe, store: Store) -> dict[str, Value]:
    """Return the values that ``rules`` make of ``values``; ``store`` keeps a new value outside memory.

    The first rule that matches a name decides; other values keep their names.

    Raises
    ------
    LoadError
        A rule needs a program, names a missing value, does not fit the shapes, or gives a name that is taken.
    """
    rules = rules(values) if callable(rules) else rules
    _check(rules, values)
    for line in () if rules.is_recipe else find_idle(rules, list(values), ()):
        warn_user(f"convert: {line}")
    found: dict[str, Value] = {}
    first = {name: next((one for one in rules if _matches(one, name)), None) for name in values}
    joined = [find_sources(rule, name)[1:] for name, rule in first.items() if isinstance(rule, Rename)]
    used = {name for names in joined for name in names}
    for name, value in values.items():
        rule = first[name]
        if isinstance(rule, Skip) or (rule is None and name in used):
            continue
        new = {name: value} if rule is None else _apply(rule, name, values, store)
        doubled = sorted(set(new) & set(found))
        if doubled:
            raise LoadError(f"rules give two values the name {doubled[0]!r}, the second from {name!r}")
        found |= new
    return found


def _matches(rule: object, name: str) -> bool:
    if isinstance(rule, Skip):
        return get_matcher(rule.pattern)(name) is not None
    return isinstance(rule, Rename) and get_matcher(rule.sources[0])(name) is not None


def _check(rules: Rules, values: Mapping[str, Value]) -> None:
    """Raise LoadError for rules that a conversion cannot carry out."""
    for rule in rules:
        if isinstance(rule, Init) or (isinstance(rule, Rename) and (rule.overlap or rule.cast)):
            raise LoadError(
                f"the rule {Rules([rule])} is for a load: it takes the variables of a program",
                hint="a conversion renames, skips, transposes, cuts and joins; dtype= converts elements",
            )
        first = rule.sources[0] if isinstance(rule, Rename) else ""
        if first and not first.startswith("re:") and not set("*?") & set(first) and first not in values:
            near = suggest_names(first, list(values), lead="; ")
            raise LoadError(f"a rule names {first!r}, which the source does not hold{near}")


def _apply(rule: Any, name: str, values: Mapping[str, Value], store: Store) -> dict[str, Value]:
    """Return the values that a Rename makes from the value ``name``."""
    sources, targets = find_sources(rule, name), match_targets(rule, name)
    absent = [one for one in sources if one not in values]
    if absent:
        raise LoadError(f"a rule joins {name!r} and {absent[0]!r}, which the source does not hold")
    if not rule.changes:
        return dict.fromkeys(targets, values[name])
    try:
        arrays = list(_transform(rule, [get_array(values[one]) for one in sources], len(targets)))
    except (ValueError, IndexError) as error:  # numpy's: axes and shapes
        shapes = ", ".join(f"{one} {list(get_array(values[one]).shape)}" for one in sources)
        raise LoadError(f"the rule {Rules([rule])} does not fit {shapes}: {error}") from error
    return {
        target: store(LoDTensor(np.ascontiguousarray(array)))
        for target, array in zip(targets, arrays, strict=True)
    }


def _transform(rule: Rename, arrays: list[Array], count: int) -> Iterator[Array]:
    """Yield ``count`` arrays: select rows, reorder, transpose, join, then cut into parts of one size."""
    if rule.rows is not None:
        arrays = [array[slice(*rule.rows)] for array in arrays]
    if rule.order is not None:
        arrays = [reorder(array, rule.order) for array in arrays]
    if rule.transpose:
        arrays = [array.T for array in arrays]
    whole = arrays[0] if rule.concat is None else np.concatenate(arrays, rule.concat)
    yield from [whole] * count if rule.split is None else np.split(whole, count, rule.split)
