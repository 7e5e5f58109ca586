"""Where tensors live. Only the CPU has kernels here; the other places are names that scripts may use."""

from __future__ import annotations

import os
from dataclasses import dataclass

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
class Place:
    """Base of all places."""

    def __str__(self) -> str:
        numbers = ", ".join(str(number) for number in vars(self).values())
        return type(self).__name__ + (f"({numbers})" if numbers else "")


@dataclass(frozen=True)
class CPUPlace(Place):
    """The memory of this machine."""


@dataclass(frozen=True)
class CUDAPlace(Place):
    """A GPU by number. It can be named, not used."""

    device_id: int = 0


@dataclass(frozen=True)
class CUDAPinnedPlace(Place):
    """Page-locked memory. It can be named, not used."""


def is_compiled_with_cuda() -> bool:
    """Always False: there are no GPU kernels."""
    return False


def require_cpu(place: Place | None) -> CPUPlace:
    """``place`` if it is a CPU place (the default); else an error that says what to pass."""
    if place is None or isinstance(place, CPUPlace):
        return CPUPlace()
    raise UnsupportedError(
        f"{place} has no kernels here, only CPUPlace has",
        hint="use fluid.CPUPlace(), or CUDAPlace(0) if fluid.core.is_compiled_with_cuda() else CPUPlace()",
    )


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """``device_count`` CPU places; None: as many as the environment variable CPU_NUM says (1)."""
    if device_count is None:
        device_count = int(os.environ.get("CPU_NUM", "1"))
    return [CPUPlace()] * device_count


def cuda_places(device_ids: list[int] | None = None) -> list[CUDAPlace]:
    """The GPUs by number; an error, since there are no GPU kernels."""
    raise UnsupportedError("there are no GPU places here", hint="use fluid.cpu_places()")


def cuda_pinned_places(device_count: int | None = None) -> list[CUDAPinnedPlace]:
    """Page-locked places; an error, since there are no GPU kernels."""
    raise UnsupportedError("there are no GPU places here", hint="use fluid.cpu_places()")
