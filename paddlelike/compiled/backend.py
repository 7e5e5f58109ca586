"""JAX, imported at its first use; devices; and the settings that Paddle's numbers need."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.core import CUDAPlace, Place
from paddlelike.errors import ExtraMissingError, UnsupportedError
from paddlelike.framework.flags import flag
from paddlelike.hooks import Hook

if TYPE_CHECKING:
    import jax

_join_workers: Final[Hook[[], None]] = Hook("join_workers")


def load_jax() -> ModuleType:
    """Return the module ``jax``. Raises ExtraMissingError when it is not installed.

    JAX draws from numpy's generator while it is imported (for the port of a cluster). A script must draw the
    same numbers with either backend, so the state of the generator is restored.
    """
    state = None if "jax" in sys.modules else np.random.get_state()  # noqa: NPY002
    try:
        import jax
    except ImportError as error:
        raise ExtraMissingError("compiled programs need JAX", extra="jax") from error
    finally:
        if state is not None:
            np.random.set_state(state)  # noqa: NPY002
    _prepare(jax)
    return jax


@functools.cache
def _prepare(jax: ModuleType) -> None:
    """Set JAX to compute in the caller's thread on CPUs, since the caller waits for the results.

    Another thread takes 35 microseconds more. This has no effect where JAX has used its CPUs before. A
    worker also joins its job here.
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    _join_workers.function()


@functools.cache
def count_gpus() -> int:
    """Return the number of GPUs that JAX finds; 0 if JAX is not installed or is for CPUs only."""
    if find_spec("jax") is None:
        return 0
    try:
        return len(load_jax().local_devices(backend="gpu"))
    except RuntimeError:  # JAX's error for a missing kind of device
        return 0


def count_devices() -> int:
    """Return how many devices JAX has, CPUs among them."""
    return len(load_jax().local_devices(backend="cpu")) + count_gpus()


def computes_on_cpu() -> bool:
    """Return whether the current trace will be compiled for a CPU."""
    jax = load_jax()
    device = jax.config.jax_default_device
    return bool((jax.default_backend() if device is None else device.platform) == "cpu")


def find_device(place: Place) -> jax.Device:
    """Return the JAX device of a place.

    Raises UnsupportedError when JAX sees no such GPU.
    """
    jax = load_jax()
    if not isinstance(place, CUDAPlace):
        return jax.local_devices(backend="cpu")[0]
    gpus = jax.local_devices(backend="gpu") if count_gpus() else []
    found = [one for one in gpus if one.local_hardware_id == place.device_id]  # a worker may see its own GPUs
    if not found:
        raise UnsupportedError(
            f"{place}: JAX sees {len(gpus)} GPUs",
            hint="install JAX for GPUs: pip install 'jax[cuda12]'; fluid.CPUPlace() works on every machine",
        )
    return found[0]


def find_devices(places: Sequence[Place]) -> list[Any]:
    """Return a different device for each place. Raises UnsupportedError when there are too few."""
    if any(isinstance(place, CUDAPlace) for place in places):
        return [find_device(place) for place in places]
    cpus = load_jax().local_devices(backend="cpu")
    if len(cpus) < len(places):
        raise UnsupportedError(
            f"the program is to run on {len(places)} CPU places, JAX has {len(cpus)} CPU devices",
            hint=f"set XLA_FLAGS=--xla_force_host_platform_device_count={len(places)} before the first "
            "import of jax, or run it with numpy",
        )
    return list(cpus[: len(places)])


def find_options(*, on_cpu: bool) -> dict[str, bool]:
    """Return the options for XLA's compiler.

    A value of float16 is rounded even if the next operator converts it to float32 again. With
    ``FLAGS_cudnn_deterministic`` GPUs add up in a fixed order.
    """
    options = {"xla_allow_excess_precision": False}
    if not on_cpu and flag("FLAGS_cudnn_deterministic"):
        options["xla_gpu_deterministic_ops"] = True
    return options


def wide_types() -> AbstractContextManager[None]:
    """Return a context with the 64-bit types that labels and counters of programs have."""
    return _find_switch()(True)


@functools.cache
def _find_switch() -> Callable[[bool], AbstractContextManager[None]]:
    switch: Callable[[bool], AbstractContextManager[None]] = load_jax().enable_x64
    return switch


@contextmanager
def settings(device: jax.Device | None) -> Iterator[None]:
    """Run the ``with`` block on ``device``, with 64-bit types and products in full precision."""
    jax = load_jax()
    with wide_types(), jax.default_device(device), jax.default_matmul_precision("highest"):
        yield
