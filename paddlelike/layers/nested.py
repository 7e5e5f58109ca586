"""Nested lists, tuples and dicts of variables, taken and given as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["flattened", "mapped", "packed", "same_structure"]


def mapped(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """The same structure with ``function`` applied to each leaf, and to the leaves of ``others`` there.

    >>> mapped(lambda a, b: a + b, {"x": [1, 2]}, {"x": [10, 20]})
    {'x': [11, 22]}
    """
    if isinstance(first, Mapping):
        return type(first)(
            {key: mapped(function, first[key], *(o[key] for o in others)) for key in sorted(first)}
        )  # type: ignore[call-arg]
    if isinstance(first, list | tuple):
        parts = [mapped(function, one, *more) for one, *more in zip(first, *others, strict=True)]
        if isinstance(first, tuple):
            return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
        return parts
    return function(first, *others)


def flattened(nested: Any) -> list[Any]:
    """The leaves in order; those of a dict by key."""
    leaves: list[Any] = []
    mapped(leaves.append, nested)
    return leaves


def same_structure(first: Any, second: Any) -> bool:
    """Whether two nests have leaves in the same places; lists and tuples are alike.

    >>> same_structure([1, (2, 3)], [4, [5, 6]]), same_structure([1], 1)
    (True, False)
    """
    if isinstance(first, Mapping):
        return (
            isinstance(second, Mapping)
            and first.keys() == second.keys()
            and all(same_structure(first[key], second[key]) for key in first)
        )
    if isinstance(first, list | tuple):
        return (
            isinstance(second, list | tuple)
            and len(first) == len(second)
            and all(same_structure(one, other) for one, other in zip(first, second, strict=True))
        )
    return not isinstance(second, Mapping | list | tuple)


def packed(structure: Any, leaves: list[Any]) -> Any:
    """``leaves`` in the structure of another nest.

    >>> packed([1, (2, 3)], ["a", "b", "c"])
    ['a', ('b', 'c')]
    """
    rest = iter(leaves)
    return mapped(lambda _: next(rest), structure)
