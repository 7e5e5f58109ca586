"""``fluid.layers.layer_function_generator``: decorators of Fluid's layers, which packages put on theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def autodoc(comment: str = "") -> Callable[[T], T]:
    """Return a decorator that leaves a layer as it is: Fluid's writes a docstring from C++ and ``comment``.

    >>> @autodoc("a layer")
    ... def double(x):
    ...     return 2 * x
    >>> double(3)
    6
    """
    return lambda layer: layer


def templatedoc(op_type: str | None = None) -> Callable[[T], T]:
    """Return a decorator that leaves a layer as it is: Fluid's completes its docstring from C++."""
    return lambda layer: layer
