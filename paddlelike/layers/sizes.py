"""Sizes that may be known only at run time: lists of ints and variables, or one variable.

Such an argument becomes an attribute, with -1 in place of each variable, and one or more inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import describe


def has_variables(values: Sequence[Any]) -> bool:
    """Return whether any of ``values`` is a variable."""
    return any(isinstance(value, Variable) for value in values)


def replace_variables(values: Sequence[Any]) -> list[int]:
    """Return ``values`` as integers, -1 for variables."""
    return [-1 if isinstance(value, Variable) else int(value) for value in values]


def as_list(layer: str, argument: str, value: object) -> list[Any]:
    """Return ``value`` as a list. Raises TypeError unless it is a list or tuple."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"layer {layer!r}: {argument} must be a list or tuple of ints, got {describe(value)}")
    return list(value)


def repeat_size(layer: str, argument: str, value: object, count: int) -> list[int]:
    """Return ``count`` sizes; one int means ``count`` equal ones. Raises ValueError for anything else."""
    if isinstance(value, list | tuple):
        if len(value) == count:
            return [int(one) for one in value]
    elif isinstance(value, int):
        return [value] * count
    raise ValueError(f"layer {layer!r}: {argument} must be an int or {count} ints, got {describe(value)}")
