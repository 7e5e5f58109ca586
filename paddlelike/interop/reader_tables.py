"""Tables of functions by operator; the modules that hold the functions are imported when they are needed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Table(Generic[F]):
    """A function for each operator type.

    Parameters
    ----------
    package
        The package of the families' modules.
    families
        The names of the modules, which add their functions when they are imported.
    """

    def __init__(self, package: str, families: Sequence[str]) -> None:
        self._modules = [f"{package}.{family}" for family in families]
        self._functions: dict[str, F] = {}

    def add(self, *types: str) -> Callable[[F], F]:
        """Return a decorator that puts a function into the table, for operators of these types."""

        def decorate(function: F) -> F:
            for type_ in types:
                assert type_ not in self._functions, type_
                self._functions[type_] = function
            return function

        return decorate

    def load(self) -> Mapping[str, F]:
        """Import the families, and return the function of each operator type."""
        for module in self._modules:
            importlib.import_module(module)
        self._modules = []
        return self._functions
