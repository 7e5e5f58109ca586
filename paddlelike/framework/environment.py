"""What scripts ask of Fluid as a whole: its version, its flags, modes that are not here."""

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
    "FLAGS_lstm_cell_gradient": False,  # ours alone: see paddlelike/ops/lstm.py
}
_flags: dict[str, Any] = {}  # those that were set


def in_dygraph_mode() -> bool:
    """Always False: programs are built first and run afterwards."""
    return False


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Raise unless Fluid's version, 1.8.5, lies between the two (both included).

    >>> require_version("1.6.0")
    """
    here = _numbers(FLUID_VERSION)
    if _numbers(min_version) > here or (max_version is not None and _numbers(max_version) < here):
        wanted = f"{min_version} or newer" if max_version is None else f"{min_version} to {max_version}"
        raise RuntimeError(f"this script asks for Fluid {wanted}; the API here is that of {FLUID_VERSION}")


def _numbers(version: str) -> tuple[int, ...]:
    if not isinstance(version, str):
        raise TypeError(f"a version is text like '1.8.5', not {version!r}")
    parts = version.split(".")
    if not parts or not all(part.isdigit() for part in parts):
        raise ValueError(f"a version is numbers with dots between them, like '1.8.5', not {version!r}")
    return tuple(int(part) for part in parts) + (0,) * (4 - len(parts))


def set_flags(flags: Mapping[str, Any]) -> None:
    """Set flags by name. Fluid's own are kept and given back; one of them acts here too.

    ``FLAGS_check_nan_inf`` (False): an operator that computes nan or inf is an error that names it. A flag
    can also come from an environment variable of its name.

    ``FLAGS_lstm_cell_gradient`` (False) is not Fluid's: whether gradients of a float32 LSTM pass its cell at
    every width. Real Fluid 1.8.5 loses them on a CPU where the width is a multiple of 8.
    """
    if not isinstance(flags, Mapping):
        raise TypeError(f"set_flags takes a dict of values by name, not {flags!r}")
    _flags.update(flags)


def get_flags(flags: str | Iterable[str]) -> dict[str, Any]:
    """The values of flags by name: as set, else from the environment, else Fluid's default."""
    names = [flags] if isinstance(flags, str) else list(flags)
    unknown = [name for name in names if name not in _flags and name not in _DEFAULTS]
    if unknown:
        raise ValueError(f"flags {unknown} are not known here and were not set")
    return {name: flag(name) for name in names}


def flag(name: str) -> Any:
    """The value of one flag."""
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
    """Nothing: memory is always let go after its last use."""


def release_memory(input_program: Any, skip_opt_set: Any = None) -> None:
    """Nothing: memory is always let go after its last use."""


def load_op_library(lib_filename: str) -> None:
    """Not here: libraries of C++ operators cannot be loaded."""
    raise UnsupportedError(
        f"{lib_filename} cannot be loaded: there are no C++ operators here",
        hint="write the operator in Python: a subclass of paddlelike.framework.opdef.registry.OpDef",
    )
