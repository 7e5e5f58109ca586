"""Nested lists, tuples and dicts of variables, as arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["flatten", "have_same_structure", "map_structure", "pack_sequence_as"]


def map_structure(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """Return the structure of ``first`` with ``function`` applied to its leaves and those of ``others``.

    >>> map_structure(lambda a, b: a + b, {"x": [1, 2]}, {"x": [10, 20]})
    {'x': [11, 22]}
    """
    if isinstance(first, Mapping):
        return type(first)(
            {key: map_structure(function, first[key], *(o[key] for o in others)) for key in sorted(first)}
        )  # type: ignore[call-arg]
    if isinstance(first, list | tuple):
        parts = [map_structure(function, one, *more) for one, *more in zip(first, *others, strict=True)]
        if isinstance(first, tuple):
            return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
        return parts
    return function(first, *others)


def flatten(nested: Any) -> list[Any]:
    """Return the leaves in order; those of a dict sorted by key."""
    leaves: list[Any] = []
    map_structure(leaves.append, nested)
    return leaves


def have_same_structure(first: Any, second: Any) -> bool:
    """Return whether two nested values have leaves in the same places; lists and tuples are equivalent.

    >>> have_same_structure([1, (2, 3)], [4, [5, 6]]), have_same_structure([1], 1)
    (True, False)
    """
    if isinstance(first, Mapping):
        return (
            isinstance(second, Mapping)
            and first.keys() == second.keys()
            and all(have_same_structure(first[key], second[key]) for key in first)
        )
    if isinstance(first, list | tuple):
        return (
            isinstance(second, list | tuple)
            and len(first) == len(second)
            and all(have_same_structure(one, other) for one, other in zip(first, second, strict=True))
        )
    return not isinstance(second, Mapping | list | tuple)


def pack_sequence_as(structure: Any, leaves: list[Any]) -> Any:
    """Return ``leaves`` in the structure of another nested value.

    >>> pack_sequence_as([1, (2, 3)], ["a", "b", "c"])
    ['a', ('b', 'c')]
    """
    rest = iter(leaves)
    return map_structure(lambda _: next(rest), structure)
