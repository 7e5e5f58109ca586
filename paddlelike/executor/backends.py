"""What runs a program: numpy, or JAX."""

from __future__ import annotations

from typing import Final

from paddlelike.core.places import CUDAPlace, Place
from paddlelike.framework.flags import flag

__all__ = ["BACKENDS", "choose_backend"]

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
