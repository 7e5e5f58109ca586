"""Functions of higher floors that lower floors call.

A lower floor must not import a higher one. It looks a function up by the name of the hook. The face registers
where each function is defined when the package is imported; the module is imported at the first look-up.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable
from typing import Any

__all__ = ["find_provider", "provide"]

_PROVIDERS: dict[str, str] = {}


def provide(hook: str, function: str) -> None:
    """Let ``function``, as ``"module:name"``, carry out ``hook``; nothing is imported yet."""
    _PROVIDERS[hook] = function


def find_provider(hook: str) -> Callable[..., Any] | None:
    """Return the function that carries out ``hook``, importing its module; None if there is none.

    >>> provide("join_paths", "os.path:join")
    >>> find_provider("join_paths")("a", "b")
    'a/b'
    """
    function = _PROVIDERS.get(hook)
    return None if function is None else _resolve(function)


@functools.cache
def _resolve(function: str) -> Callable[..., Any]:
    found: Callable[..., Any] = pkgutil.resolve_name(function)
    return found
