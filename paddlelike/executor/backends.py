"""What runs a program: numpy, or JAX."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from paddlelike.core.places import CUDAPlace, Place
from paddlelike.framework.flags import flag
from paddlelike.framework.graph.program import Program
from paddlelike.hooks import Hook

_explain_compiled: Final[Hook[[Program, list[str], list[str], Place], str]] = Hook("explain_compiled")

BACKENDS: Final = ("numpy", "jax")


def choose_backend(place: Place, backend: str | None = None) -> str:
    """Return what runs programs: "numpy" or "jax", as asked for, else as FLAGS_backend says; JAX on a GPU.

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
        return "numpy"  # which knows after each operator
    return backend


def explain_pieces(program: Program, feed: Iterable[str] | None, fetches: list[str], place: Place) -> str:
    """Return which operators JAX runs together, and why numpy runs others; of ``feed`` the names count."""
    return _explain_compiled.function(program, list(feed or ()), fetches, place)
