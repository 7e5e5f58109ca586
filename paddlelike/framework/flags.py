"""Fluid's flags: set by a function or by an environment variable of their name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from paddlelike.foundation.near_names import suggest_names

_EFFECTIVE: Final[Mapping[str, Any]] = {
    "FLAGS_check_nan_inf": False,  # whether an operator that computes nan or inf is an error
    "FLAGS_paddle_num_threads": 1,  # threads of kernels during a run
    "FLAGS_cudnn_deterministic": False,  # for programs on GPUs; programs on CPUs always are deterministic
    "FLAGS_backend": "numpy",  # not Fluid's: the engine, "numpy" or "jax"
    "FLAGS_fluid_quirks": True,  # not Fluid's: see paddlelike.framework.quirks
    "FLAGS_use_fast_kernels": True,  # not Fluid's: see paddlelike.ops.kernels.fast
}
#: The other public flags of Fluid 1.8.5 for CPUs: kept and returned, without an effect here.
_STORED: Final[Mapping[str, Any]] = {
    "FLAGS_allocator_strategy": "auto_growth",
    "FLAGS_benchmark": False,
    "FLAGS_cpu_deterministic": True,
    "FLAGS_eager_delete_tensor_gb": 0.0,
    "FLAGS_enable_parallel_graph": False,
    "FLAGS_enable_rpc_profiler": False,
    "FLAGS_fraction_of_cpu_memory_to_use": 1.0,
    "FLAGS_fuse_parameter_groups_size": 1,
    "FLAGS_fuse_parameter_memory_size": -1.0,
    "FLAGS_init_allocated_mem": False,
    "FLAGS_initial_cpu_memory_in_mb": 500,
    "FLAGS_inner_op_parallelism": 0,
    "FLAGS_memory_fraction_of_eager_deletion": 1.0,
    "FLAGS_multiple_of_cupti_buffer_size": 1,
    "FLAGS_pe_profile_fname": "",
    "FLAGS_print_sub_graph_dir": "",
    "FLAGS_reader_queue_speed_test_mode": False,
    "FLAGS_tracer_profile_fname": "xxgperf",
    "FLAGS_use_pinned_memory": True,
    "FLAGS_use_system_allocator": False,
}
_DEFAULTS: Final[Mapping[str, Any]] = {**_EFFECTIVE, **_STORED}
_flags: dict[str, Any] = {}  # set by set_flags
#: The dict inside ``os.environ``, by encoded name; its own ``get`` raises and catches an error.
_environment: Final[Mapping[Any, Any] | None] = getattr(os.environ, "_data", None)


def set_flags(flags: Mapping[str, Any]) -> None:
    """Set flags by name; if one of them is refused, none is set.

    Fluid's flags are stored and returned by :func:`get_flags`; these have an effect here:

    ``FLAGS_check_nan_inf`` (False)
        An operator that computes nan or inf raises an error that names the operator.
    ``FLAGS_paddle_num_threads`` (1)
        The number of threads that kernels use while a program runs; by default the value of
        ``OMP_NUM_THREADS``.
    ``FLAGS_cudnn_deterministic`` (False)
        Programs compiled for a GPU after this give the same bits in every run: sums over many threads have a
        fixed order, and algorithms are not chosen by measured times. On CPUs all programs are deterministic
        without the flag.
    ``FLAGS_backend`` ("numpy")
        Not Fluid's: ``"jax"`` runs programs as XLA computations, see :mod:`paddlelike.compiled`.
    ``FLAGS_fluid_quirks`` (True)
        Not Fluid's: whether the odd results of Fluid 1.8.5 are reproduced here; see ``fluid.quirks()``.
    ``FLAGS_use_fast_kernels`` (True)
        Not Fluid's: whether large arrays use loops compiled by numba (extra ``fast``), if numba is installed.
        Setting it to True without numba is an error.

    A flag can also be set by an environment variable of its name.

    Parameters
    ----------
    flags
        The new values, by name.

    Raises
    ------
    TypeError
        ``flags`` is not a mapping, or a value has another type.
    ValueError
        Fluid 1.8.5 does not have such a flag on CPUs.

    >>> set_flags({"FLAGS_check_nan_inf": False})
    """
    if not isinstance(flags, Mapping):
        raise TypeError(f"set_flags takes a dict of values by name, not {flags!r}")
    _check_names("set_flags", flags)
    _flags.update({name: _convert(name, value) for name, value in flags.items()})


def get_flags(flags: str | Iterable[str]) -> dict[str, Any]:
    """Return flags by name: the value that was set, otherwise the value in the environment, otherwise
    Fluid's default.

    Parameters
    ----------
    flags
        The name of a flag, or a list of names.

    Returns
    -------
    dict
        The value of each flag by its name.

    Raises
    ------
    TypeError
        ``flags`` is neither a name nor a list of names.
    ValueError
        There is no such flag.

    >>> import paddlelike as fluid
    >>> fluid.get_flags("FLAGS_check_nan_inf")
    {'FLAGS_check_nan_inf': False}
    """
    if not isinstance(flags, str | list | tuple):
        raise TypeError(f"get_flags takes a name or a list of names, not {flags!r}")
    names = [flags] if isinstance(flags, str) else list(flags)
    _check_names("get_flags", names)
    return {name: flag(name) for name in names}


def flag(name: str) -> Any:
    """Return the value of one flag. Raises KeyError for a flag that is not known.

    A value in the environment that is not of the flag's type is a ValueError.
    """
    if name in _flags:
        return _flags[name]
    default = _DEFAULTS[name]
    if _environment is not None and _encode(name) not in _environment:  # the usual case, at every run
        return default
    text = read_environment(name)
    if text is None:
        return default
    if isinstance(default, bool):
        return text.lower() in ("1", "true", "yes", "t", "y")
    return type(default)(text)


def is_set(name: str) -> bool:
    """Return whether a flag was set, by the function or in the environment."""
    return name in _flags or read_environment(name) is not None


def read_environment(name: str) -> str | None:
    """Return an environment variable, or None if it is not set: ten times faster than ``os.environ.get``."""
    if _environment is None:
        return os.environ.get(name)
    found = _environment.get(_encode(name))
    return None if found is None else os.environ.decodevalue(found)


@cache
def _encode(name: str) -> Any:
    return os.environ.encodekey(name)


def _check_names(function: str, names: Iterable[str]) -> None:
    """Raise ValueError for a flag that is not known."""
    for name in names:
        if name in _DEFAULTS:
            continue
        near = suggest_names(name, _DEFAULTS, lead="; ")
        raise ValueError(f"{function}: {name!r} is not a flag of Fluid 1.8.5 on CPUs{near}")


def _convert(name: str, value: Any) -> object:
    """Return a value in the type of the flag. Raises TypeError for one that does not fit."""
    default = _DEFAULTS[name]
    kind = type(default)
    number = isinstance(value, bool | int | float)
    if number == isinstance(default, str) or (not number and not isinstance(value, str)):
        raise TypeError(f"set_flags: {name} is {value!r}, expected {kind.__name__}, as {default!r}")
    return kind(value)
