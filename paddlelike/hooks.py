"""Hooks: functions of higher floors that lower floors call. They are the only way to call against the order
of imports.

A lower floor must not import a higher one. It declares a hook, which has a name and types. The package's
``__init__`` says where the function of each hook is defined; the module is imported at the first use.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

__all__ = ["Hook", "provide"]

P = ParamSpec("P")
R = TypeVar("R")

_FUNCTIONS: dict[str, str] = {}


def provide(**functions: str) -> None:
    """Register the functions of hooks, each as ``"module:name"``, without importing them."""
    _FUNCTIONS.update(functions)


class Hook(Generic[P, R]):
    """The name of a function that a higher floor defines, with the types of its arguments and result.

    >>> provide(join_paths="os.path:join")
    >>> join_paths: Hook[[str, str], str] = Hook("join_paths")
    >>> join_paths.function("a", "b")
    'a/b'
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def function(self) -> Callable[P, R]:
        """The function. Its module is imported if necessary. Raises KeyError if the hook has no function."""
        return _resolve(_FUNCTIONS[self.name])


@functools.cache
def _resolve(function: str) -> Callable[..., Any]:
    found: Callable[..., Any] = pkgutil.resolve_name(function)
    return found
