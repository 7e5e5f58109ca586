"""``fluid.layers.layer_function_generator``: decorators of Fluid's layers, which other packages use too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def autodoc(comment: str = "") -> Callable[[T], T]:
    """Return a decorator that does not change a layer; Fluid's writes a docstring from C++ and ``comment``.

    >>> @autodoc("a layer")
    ... def double(x):
    ...     return 2 * x
    >>> double(3)
    6
    """
    return lambda layer: layer


def templatedoc(op_type: str | None = None) -> Callable[[T], T]:
    """Return a decorator that does not change a layer; Fluid's completes its docstring from C++."""
    return lambda layer: layer
