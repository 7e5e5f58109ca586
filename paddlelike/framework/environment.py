"""Fluid's version and flags, and the functions for modes that paddlelike does not have."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

from paddlelike.errors import UnsupportedError

__all__ = [
    "FLUID_VERSION",
    "flag",
    "get_flags",
    "in_dygraph_mode",
    "load_op_library",
    "memory_optimize",
    "release_memory",
    "require_version",
    "set_flags",
]

FLUID_VERSION: Final = "1.8.5"  # the Fluid whose API and files these are

_DEFAULTS: Final[Mapping[str, Any]] = {
    "FLAGS_eager_delete_tensor_gb": 0.0,
    "FLAGS_cpu_deterministic": True,
    "FLAGS_check_nan_inf": False,  # whether an operator that computes nan or inf is an error
    "FLAGS_use_mkldnn": False,
    "FLAGS_lstm_cell_gradient": False,  # not a flag of Fluid: see set_flags
}
_flags: dict[str, Any] = {}  # set by set_flags


def in_dygraph_mode() -> bool:
    """Return False: programs are always built first and run afterwards."""
    return False


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Check that Fluid's version, 1.8.5, is at least ``min_version`` and at most ``max_version``.

    Raises RuntimeError when it is not, TypeError and ValueError for text that is no version.

    >>> require_version("1.6.0")
    """
    here = _parse_version(FLUID_VERSION)
    if _parse_version(min_version) > here or (max_version is not None and _parse_version(max_version) < here):
        wanted = f"{min_version} or newer" if max_version is None else f"{min_version} to {max_version}"
        raise RuntimeError(f"this script asks for Fluid {wanted}; the API here is that of {FLUID_VERSION}")


def _parse_version(version: str) -> tuple[int, ...]:
    if not isinstance(version, str):
        raise TypeError(f"a version is a string like '1.8.5', not {version!r}")
    parts = version.split(".")
    if not parts or not all(part.isdigit() for part in parts):
        raise ValueError(f"a version is integers separated by dots, like '1.8.5', not {version!r}")
    return tuple(int(part) for part in parts) + (0,) * (4 - len(parts))


def set_flags(flags: Mapping[str, Any]) -> None:
    """Set flags by name. Raises TypeError unless ``flags`` is a mapping.

    Fluid's flags are stored and returned by :func:`get_flags`; one of them has an effect:
    ``FLAGS_check_nan_inf`` (False): an operator that computes nan or inf is an error that names it. A flag
    can also be set by an environment variable of its name.

    ``FLAGS_lstm_cell_gradient`` (False) is not Fluid's: whether gradients of a float32 LSTM flow through its
    cell at every width. Real Fluid 1.8.5 loses them on a CPU where the width is a multiple of 8.
    """
    if not isinstance(flags, Mapping):
        raise TypeError(f"set_flags takes a dict of values by name, not {flags!r}")
    _flags.update(flags)


def get_flags(flags: str | Iterable[str]) -> dict[str, Any]:
    """Return the values of flags by name: as set, else from the environment, else Fluid's default.

    Raises ValueError for a flag that is not known and was not set.
    """
    names = [flags] if isinstance(flags, str) else list(flags)
    unknown = [name for name in names if name not in _flags and name not in _DEFAULTS]
    if unknown:
        raise ValueError(f"get_flags: {unknown} are neither flags with a default nor were they set")
    return {name: flag(name) for name in names}


def flag(name: str) -> Any:
    """Return the value of one flag. Raises KeyError for a flag that has no default and was not set."""
    if name in _flags:
        return _flags[name]
    default = _DEFAULTS[name]
    text = os.environ.get(name)
    if text is None:
        return default
    return text.lower() in ("1", "true") if isinstance(default, bool) else type(default)(text)


def memory_optimize(
    input_program: Any,
    skip_opt_set: Any = None,
    print_log: bool = False,
    level: int = 0,
    skip_grads: bool = True,
) -> None:
    """Do nothing: memory is always released after its last use."""


def release_memory(input_program: Any, skip_opt_set: Any = None) -> None:
    """Do nothing: memory is always released after its last use."""


def load_op_library(lib_filename: str) -> None:
    """Raise UnsupportedError: libraries of C++ operators cannot be loaded."""
    raise UnsupportedError(
        f"load_op_library: {lib_filename} cannot be loaded; paddlelike runs no C++ operators",
        hint="write the operator in Python: a subclass of paddlelike.framework.opdef.OpDef",
    )
