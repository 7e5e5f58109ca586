"""Places: the devices of tensors. On CPUs programs run with numpy or JAX, on GPUs with JAX."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Final

from paddlelike.core.versioned import Versioned
from paddlelike.errors import UnsupportedError
from paddlelike.hooks import Hook
from paddlelike.lazy import dataclass

_count_gpus: Final[Hook[[], int]] = Hook("count_gpus")

_HINT: Final = "fluid.CPUPlace() works on every machine; for GPUs: pip install 'jax[cuda12]'"


@dataclass(frozen=True)
class Place(Versioned):
    """Base of all places."""

    def __str__(self) -> str:
        fields = ", ".join(str(value) for value in vars(self).values())
        return type(self).__name__ + (f"({fields})" if fields else "")


@dataclass(frozen=True)
class CPUPlace(Place):
    """The memory of this machine.

    >>> import paddlelike as fluid
    >>> exe = fluid.Executor(fluid.CPUPlace())
    """


@dataclass(frozen=True)
class CUDAPlace(Place):
    """A GPU by its id; programs run on it with JAX.

    Parameters
    ----------
    device_id
        The index of the GPU, from 0.

    >>> import paddlelike as fluid
    >>> fluid.CUDAPlace(0)
    CUDAPlace(device_id=0)
    """

    device_id: int = 0


@dataclass(frozen=True)
class CUDAPinnedPlace(Place):
    """Page-locked memory. No program runs on it.

    See Also
    --------
    fluid.cuda_pinned_places, fluid.cuda_places, fluid.cpu_places, fluid.CUDAPlace

    >>> print(CUDAPinnedPlace())
    CUDAPinnedPlace
    """


def count_gpus() -> int:
    """Return the number of GPUs that JAX finds for programs; 0 without JAX."""
    return _count_gpus.function()


def is_compiled_with_cuda() -> bool:
    """Return whether there is a GPU that programs can run on.

    Returns
    -------
    bool
        True where JAX finds a GPU.

    >>> import paddlelike as fluid
    >>> isinstance(fluid.is_compiled_with_cuda(), bool)
    True
    """
    return count_gpus() > 0


def require_device(place: Place | None) -> Place:
    """Return ``place`` if programs can run there: on the CPU (None) or on a GPU that JAX sees.

    Raises UnsupportedError for other places, TypeError for anything that is not a place.
    """
    if place is not None and not isinstance(place, Place):
        raise TypeError(
            f"{place!r} is a {type(place).__name__}, expected a place\n"
            "  hint: fluid.CPUPlace(), or fluid.CUDAPlace(0) for the first GPU"
        )
    if place is None or isinstance(place, CPUPlace):
        return CPUPlace()
    if isinstance(place, CUDAPlace) and 0 <= place.device_id < count_gpus():
        return place
    raise UnsupportedError(f"{place}: {_describe_lack(place)}", hint=_HINT)


def _describe_lack(place: Place) -> str:
    """Return why no program runs on a place."""
    if not isinstance(place, CUDAPlace):
        return "no program runs there"
    count = count_gpus()
    if not count and find_spec("jax") is None:
        return "JAX, with which programs run on GPUs, is not installed"
    return f"JAX sees {count or 'no'} GPU{'s' * (count > 1)} here"


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """Return ``device_count`` CPU places.

    Parameters
    ----------
    device_count
        The number of places; None for the environment variable CPU_NUM, by default 1.

    Returns
    -------
    list
        ``device_count`` objects of :class:`CPUPlace`.

    Raises
    ------
    ValueError
        CPU_NUM is not a number of 1 or more.

    >>> import paddlelike as fluid
    >>> fluid.cpu_places(2)
    [CPUPlace(), CPUPlace()]
    """
    if device_count is None:
        given = os.environ.get("CPU_NUM", "1")
        if not given.strip().isdecimal() or not (device_count := int(given)):
            raise ValueError(f"the environment variable CPU_NUM is {given!r}, expected a count of at least 1")
    return [CPUPlace()] * device_count


def cuda_places(device_ids: list[int] | None = None) -> list[CUDAPlace]:
    """Return places of GPUs.

    Parameters
    ----------
    device_ids
        The numbers of the GPUs. None means those that the environment variable FLAGS_selected_gpus lists,
        or all GPUs if it is not set.

    Returns
    -------
    places : list of CUDAPlace
        One place for each number.

    Raises
    ------
    UnsupportedError
        This machine has no GPU.

    See Also
    --------
    fluid.CUDAPinnedPlace, fluid.cuda_pinned_places, fluid.cpu_places, fluid.CUDAPlace

    >>> import paddlelike as fluid
    >>> places = fluid.cuda_places([0]) if fluid.is_compiled_with_cuda() else fluid.cpu_places(1)
    """
    gpus = count_gpus()
    if gpus == 0:
        raise UnsupportedError("there are no GPU places here", hint=_HINT)
    selected = os.environ.get("FLAGS_selected_gpus", "")  # noqa: SIM112  (Fluid's name)
    if device_ids is None:
        device_ids = [int(text) for text in selected.split(",") if text] or list(range(gpus))
    return [CUDAPlace(index) for index in device_ids]


def cuda_pinned_places(device_count: int | None = None) -> list[CUDAPinnedPlace]:
    """Return places of pinned memory.

    Parameters
    ----------
    device_count
        The number of places. None means the environment variable CPU_NUM, or 1 if it is not set.

    Returns
    -------
    places : list of CUDAPinnedPlace
        That many equal places.

    Raises
    ------
    UnsupportedError
        This machine has no GPU.

    See Also
    --------
    fluid.CUDAPinnedPlace, fluid.cuda_places, fluid.cpu_places, fluid.CUDAPlace

    >>> import paddlelike as fluid
    >>> if fluid.is_compiled_with_cuda():
    ...     places = fluid.cuda_pinned_places(2)
    """
    if count_gpus() == 0:
        raise UnsupportedError("there are no GPU places here", hint=_HINT)
    return [CUDAPinnedPlace()] * len(cpu_places(device_count))
