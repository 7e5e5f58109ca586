"""Tables of functions by operator, whose modules are imported when needed, and the error that functions
raise.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any, Generic, NoReturn, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class InexpressibleError(Exception):
    """Raised for an operator whose attributes or inputs the program, or the other system, cannot express."""


class Translation:
    """Base class of one operator's translation."""

    def refuse(self, reason: str) -> NoReturn:
        """Raise InexpressibleError with a reason."""
        raise InexpressibleError(reason)


class Table(Generic[F]):
    """A function for each operator type.

    Parameters
    ----------
    package
        The package of the modules, which add their functions when they are imported.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self._functions: dict[str, F] = {}
        self._is_loaded = False

    def add(self, *types: str) -> Callable[[F], F]:
        """Return a decorator that puts a function into the table, for operators of these types."""

        def decorate(function: F) -> F:
            for type_ in types:
                assert type_ not in self._functions, type_
                self._functions[type_] = function
            return function

        return decorate

    def load(self) -> Mapping[str, F]:
        """Import the modules of the package, and return the function of each operator type."""
        if not self._is_loaded:
            folder = importlib.import_module(self._package).__path__
            for module in pkgutil.walk_packages(folder, f"{self._package}."):
                importlib.import_module(module.name)
            self._is_loaded = True
        return self._functions
