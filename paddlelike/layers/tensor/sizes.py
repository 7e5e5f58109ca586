"""Sizes that may be known when a program runs only: lists of numbers and variables, or one variable.

Such an argument becomes an attribute (with -1 where a variable stands), and one or more inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import describe

__all__ = ["as_list", "has_variables", "numbers_known", "repeated"]


def has_variables(values: Sequence[Any]) -> bool:
    """Whether any of ``values`` is a variable."""
    return any(isinstance(value, Variable) for value in values)


def numbers_known(values: Sequence[Any]) -> list[int]:
    """``values`` as integers, -1 for variables."""
    return [-1 if isinstance(value, Variable) else int(value) for value in values]


def as_list(layer: str, argument: str, value: Any) -> list[Any]:
    """``value``, which must be a list or tuple, as a list. Raises TypeError."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"layer {layer!r}: {argument} is a list or tuple of ints, not {describe(value)}")
    return list(value)


def repeated(layer: str, argument: str, value: Any, count: int) -> list[int]:
    """A size per dim: one int stands for ``count`` equal ones. Raises ValueError."""
    if isinstance(value, list | tuple):
        if len(value) == count:
            return [int(one) for one in value]
    elif isinstance(value, int):
        return [value] * count
    raise ValueError(f"layer {layer!r}: {argument} is an int or {count} ints, not {describe(value)}")
