"""Fluid's switch between static and dynamic graphs. All graphs are static here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, overload

from paddlelike.framework import in_dygraph_mode as enabled
from paddlelike.left_out import make_getattr

__all__ = ["disable_dygraph", "disable_imperative", "enabled", "no_grad"]
__getattr__ = make_getattr(__name__, "dygraph.base")

_Function = TypeVar("_Function", bound=Callable[..., Any])


@overload
def no_grad(func: None = None) -> AbstractContextManager[None]: ...
@overload
def no_grad(func: _Function) -> _Function: ...
def no_grad(func: _Function | None = None) -> AbstractContextManager[None] | _Function:
    """Return ``func`` itself, or a context manager that does nothing, as in Fluid's static programs.

    Parameters
    ----------
    func
        A function to decorate; None for a context.

    Returns
    -------
    callable or context manager
        ``func``, or a context that does nothing.

    See Also
    --------
    fluid.dygraph.enabled, fluid.dygraph.ParallelEnv

    >>> with no_grad():
    ...     pass
    """
    return nullcontext() if func is None else func


def disable_dygraph() -> None:
    """Do nothing: graphs are static.

    See Also
    --------
    fluid.memory_optimize, fluid.release_memory

    >>> disable_dygraph()
    """


disable_imperative = disable_dygraph
