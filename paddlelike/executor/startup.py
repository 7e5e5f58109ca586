"""Decisions before a program runs: numpy or JAX, and warnings of probable mistakes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from paddlelike.core import CUDAPlace, Place, Scope
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program
from paddlelike.framework.flags import flag
from paddlelike.framework.passes.views import has_updates
from paddlelike.hooks import Hook


def warn_alone(program: Program) -> None:
    """Warn, once, when a program of the mode nccl2 updates parameters by the gradients of this worker
    alone.
    """
    if has_updates(program):
        count, program._workers = program._workers, 1
        warn_user(
            f"this program was transpiled for {count} workers in the mode nccl2, in which only "
            "CompiledProgram(program).with_data_parallel adds their gradients up: run as it is, this worker "
            "trains alone"
        )


def warn_overwriting(scope: Scope, names: list[str]) -> None:
    """Warn when a startup program is about to replace loaded values."""
    loaded = []
    for name in names:
        holder = scope.find_var(name)
        if holder is not None and holder.origin is not None:
            loaded.append((name, holder.origin))
            holder.origin = None
    if loaded:
        name, origin = loaded[0]
        more = f" and {len(loaded) - 1} more" if len(loaded) > 1 else ""
        warn_user(
            f"this program initializes {name!r}{more}, which replaces the values loaded from {origin}; "
            "run the startup program before loading, not after"
        )


_explain_compiled: Final[Hook[[Program, list[str], list[str], Place], str]] = Hook("explain_compiled")

BACKENDS: Final = ("numpy", "jax")


def choose_backend(place: Place, backend: str | None = None) -> str:
    """Return the backend, "numpy" or "jax": as requested, else by FLAGS_backend; JAX on a GPU.

    Raises ValueError for another value of the flag.
    """
    if backend is None:
        backend = str(flag("FLAGS_backend"))
    if backend == "numpy" and not isinstance(place, CUDAPlace):
        return backend
    if backend not in BACKENDS:
        raise ValueError(f"FLAGS_backend is {backend!r}, expected one of {', '.join(BACKENDS)}")
    if isinstance(place, CUDAPlace):
        backend = "jax"
    if backend == "jax" and flag("FLAGS_check_nan_inf"):
        return "numpy"  # it checks after each operator
    return backend


def explain_pieces(program: Program, feed: Iterable[str] | None, fetches: list[str], place: Place) -> str:
    """Describe which operators JAX runs together, and why numpy runs others, given the names in ``feed``."""
    return _explain_compiled.function(program, list(feed or ()), fetches, place)
