"""Places: the devices of tensors. Only the CPU has kernels; the others exist for scripts that name them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from paddlelike.core.versioned import Versioned
from paddlelike.errors import UnsupportedError

__all__ = [
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "Place",
    "cpu_places",
    "cuda_pinned_places",
    "cuda_places",
    "is_compiled_with_cuda",
    "require_cpu",
]


@dataclass(frozen=True)
class Place(Versioned):
    """Base of all places."""

    def __str__(self) -> str:
        fields = ", ".join(str(value) for value in vars(self).values())
        return type(self).__name__ + (f"({fields})" if fields else "")


@dataclass(frozen=True)
class CPUPlace(Place):
    """The memory of this machine."""


@dataclass(frozen=True)
class CUDAPlace(Place):
    """A GPU by its id. No program runs on it."""

    device_id: int = 0


@dataclass(frozen=True)
class CUDAPinnedPlace(Place):
    """Page-locked memory. No program runs on it."""


def is_compiled_with_cuda() -> bool:
    """Return False: there are no GPU kernels."""
    return False


def require_cpu(place: Place | None) -> CPUPlace:
    """Return ``place`` if it is a CPU place; None is one. Raises UnsupportedError for other places."""
    if place is None or isinstance(place, CPUPlace):
        return CPUPlace()
    raise UnsupportedError(
        f"{place} has no kernels here, only CPUPlace() has",
        hint="use fluid.CPUPlace(), or CUDAPlace(0) if fluid.core.is_compiled_with_cuda() else CPUPlace()",
    )


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """Return ``device_count`` CPU places; None: as many as the environment variable CPU_NUM says (1).

    Raises ValueError when CPU_NUM is not an integer.
    """
    if device_count is None:
        device_count = int(os.environ.get("CPU_NUM", "1"))
    return [CPUPlace()] * device_count


def cuda_places(device_ids: list[int] | None = None) -> list[CUDAPlace]:
    """Raise UnsupportedError: there are no GPU kernels."""
    raise UnsupportedError("there are no GPU places here", hint="use fluid.cpu_places()")


def cuda_pinned_places(device_count: int | None = None) -> list[CUDAPinnedPlace]:
    """Raise UnsupportedError: there are no GPU kernels."""
    raise UnsupportedError("there are no GPU places here", hint="use fluid.cpu_places()")
