"""``fluid.wrapped_decorator``: decorators whose functions keep their signature."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ParamSpec, TypeVar

__all__ = ["signature_safe_contextmanager", "wrap_decorator"]

P = ParamSpec("P")
T = TypeVar("T")


def wrap_decorator(
    decorator_func: Callable[[Callable[P, T]], Callable[P, T]],
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator like ``decorator_func`` whose functions keep their name, docstring and signature.

    Parameters
    ----------
    decorator_func
        A decorator that takes and returns a function.

    Returns
    -------
    callable
        The decorator.

    See Also
    --------
    fluid.layer_helper.LayerHelper, fluid.wrapped_decorator.signature_safe_contextmanager

    >>> @wrap_decorator
    ... def twice(function):
    ...     return lambda x: 2 * function(x)
    >>> @twice
    ... def add_one(x):
    ...     return x + 1
    >>> add_one(3), add_one.__name__
    (8, 'add_one')
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        decorated = decorator_func(function)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return decorated(*args, **kwargs)

        return call

    return decorate


def signature_safe_contextmanager(
    func: Callable[..., Iterator[Any]],
) -> Callable[..., AbstractContextManager[Any]]:
    """Return a function whose result is a context manager: :func:`contextlib.contextmanager`.

    Parameters
    ----------
    func
        A generator that yields once.

    Returns
    -------
    callable
        A function with the name, docstring and signature of ``func``.

    See Also
    --------
    fluid.layer_helper.LayerHelper, fluid.wrapped_decorator.wrap_decorator

    >>> @signature_safe_contextmanager
    ... def announce(name):
    ...     print("begin", name)
    ...     yield
    >>> with announce("fc"):
    ...     pass
    begin fc
    """
    return contextmanager(func)
