"""``fluid.wrapped_decorator``: decorators whose functions keep their signature."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

__all__ = ["signature_safe_contextmanager", "wrap_decorator"]


def wrap_decorator(decorator_func: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator like ``decorator_func`` whose functions keep their name, docstring and signature.

    >>> @wrap_decorator
    ... def twice(function):
    ...     return lambda x: 2 * function(x)
    >>> @twice
    ... def add_one(x):
    ...     return x + 1
    >>> add_one(3), add_one.__name__
    (8, 'add_one')
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        decorated = decorator_func(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return decorated(*args, **kwargs)

        return call

    return decorate


def signature_safe_contextmanager(
    func: Callable[..., Iterator[Any]],
) -> Callable[..., AbstractContextManager[Any]]:
    """Return a function whose result is a context manager: :func:`contextlib.contextmanager`."""
    return contextmanager(func)
