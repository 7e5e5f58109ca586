"""``fluid.default_scope_funcs``: a stack of scopes, one per thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from paddlelike.core import Scope, ScopeVariable

__all__ = ["enter_local_scope", "find_var", "get_cur_scope", "leave_local_scope", "scoped_function", "var"]

_local = threading.local()


def _stack() -> list[Scope]:
    if not hasattr(_local, "scopes"):
        _local.scopes = [Scope()]
    scopes: list[Scope] = _local.scopes
    return scopes


def get_cur_scope() -> Scope:
    """Return the top scope of this thread's stack."""
    return _stack()[-1]


def enter_local_scope() -> None:
    """Put a new child of the current scope on the stack."""
    _stack().append(get_cur_scope().new_scope())


def leave_local_scope() -> None:
    """Remove the current scope from the stack, and drop the scopes below its parent."""
    _stack().pop()
    get_cur_scope().drop_kids()


def var(name: str) -> ScopeVariable:
    """Return the variable ``name`` of the current scope; a new one if there is none."""
    return get_cur_scope().var(name)


def find_var(name: str) -> ScopeVariable | None:
    """Return the variable ``name`` of the current scope or one above it; None if there is none."""
    return get_cur_scope().find_var(name)


def scoped_function(func: Callable[[], Any]) -> None:
    """Call ``func`` with a new scope on the stack."""
    enter_local_scope()
    try:
        func()
    finally:
        leave_local_scope()
