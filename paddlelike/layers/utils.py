"""Nested lists, tuples and dicts of variables, as arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from paddlelike.framework import Variable

Structure = TypeVar("Structure")


def map_structure(func: Callable[..., Any], *structure: Any) -> Any:
    """Apply ``func`` to the leaves of one or several structures; return a structure of the results.

    >>> map_structure(lambda a, b: a + b, {"x": [1, 2]}, {"x": [10, 20]})
    {'x': [11, 22]}
    """
    first, *others = structure
    if isinstance(first, Mapping):
        return type(first)(
            {key: map_structure(func, first[key], *(o[key] for o in others)) for key in sorted(first)}
        )  # type: ignore[call-arg]
    if isinstance(first, list | tuple):
        parts = [map_structure(func, one, *more) for one, *more in zip(first, *others, strict=True)]
        if isinstance(first, tuple):
            return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
        return parts
    return func(first, *others)


def flatten(nest: object) -> list[Any]:
    """Return the leaves in order; the leaves of a dict are sorted by key."""
    leaves: list[Any] = []
    map_structure(leaves.append, nest)
    return leaves


def have_same_structure(first: object, second: object) -> bool:
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


def pack_sequence_as(structure: Structure, flat_sequence: Sequence[Any]) -> Structure:
    """Return the leaves in ``flat_sequence`` in the structure of another nested value.

    >>> pack_sequence_as([1, (2, 3)], ["a", "b", "c"])
    ['a', ('b', 'c')]
    """
    rest = iter(flat_sequence)
    packed: Structure = map_structure(lambda _: next(rest), structure)
    return packed


def is_sequence(seq: object) -> bool:
    """Return whether ``seq`` is a list, tuple, dict or other sequence, but not text."""
    return isinstance(seq, Mapping | Sequence) and not isinstance(seq, str)


def hold_mutable_vars(structure: Iterable[object]) -> bool:
    """Return whether an item of ``structure`` is itself a sequence."""
    return any(is_sequence(one) for one in structure)


def _contain_var(list_or_tuple: Iterable[object]) -> bool:
    return any(isinstance(one, Variable) for one in list_or_tuple)


def _is_symmetric_padding(padding: Sequence[int], data_dim: int) -> bool:
    return len(padding) == data_dim or list(padding[::2]) == list(padding[1::2])


def copy_mutable_vars(structure: Structure) -> Structure:
    """Return the structure with new containers and the same leaves."""
    copied: Structure = map_structure(lambda leaf: leaf, structure)
    return copied


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raise ValueError unless two nested values have leaves in the same places.

    With ``check_types``, raise TypeError for a list in the place of a tuple, or for another class of dict.
    """
    if not have_same_structure(nest1, nest2):
        raise ValueError(f"expected two values of the same structure, got {nest1!r} and {nest2!r}")
    if not check_types or not is_sequence(nest1):
        return
    if type(nest1) is not type(nest2):
        raise TypeError(f"expected two {type(nest1).__name__}, got {nest1!r} and {nest2!r}")
    keys = nest1.keys() if isinstance(nest1, Mapping) else range(len(nest1))
    for key in keys:
        assert_same_structure(nest1[key], nest2[key])


def convert_to_list(value: Any, n: int, name: str, dtype: type = int) -> list[Any]:
    """Return ``value`` as a list of length ``n``; a single number is repeated.

    Raises ValueError for another length or other items; the message names the argument ``name``.

    >>> convert_to_list(3, 2, "stride"), convert_to_list((1, 2), 2, "stride")
    ([3, 3], [1, 2])
    """
    if isinstance(value, dtype):
        return [value] * n
    try:
        items = list(value)
        for one in items:
            dtype(one)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be one {dtype.__name__} or {n} of them, got {value!r}") from None
    if len(items) != n:
        raise ValueError(f"{name} must have length {n}, got {value!r}")
    return items
