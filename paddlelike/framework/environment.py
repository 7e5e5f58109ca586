"""Fluid's version, and the functions for modes that paddlelike does not have."""

from __future__ import annotations

from typing import Final

from paddlelike.errors import UnsupportedError

FLUID_VERSION: Final = "1.8.5"  # the Fluid whose API and files these are
PADDLE_VERSION: Final = 1008005  # the same, as programs that were built here hold it
PADDLE3_VERSION: Final = 3_000_000  # Paddle 3.0.0, likewise
PADDLE2_VERSION: Final = 2_000_000  # Paddle 2.0.0, from which on operators of the same type may differ


def in_dygraph_mode() -> bool:
    """Return False: programs are always built first and run afterwards."""
    return False


def _dygraph_tracer() -> None:
    """Return None, since nothing is traced."""


def _current_expected_place() -> None:
    """Return None, as Fluid where no dynamic graph runs."""


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Check that Fluid's version, 1.8.5, is at least ``min_version`` and at most ``max_version``.

    Raises RuntimeError when it is not, TypeError and ValueError for text that is not a version.

    Parameters
    ----------
    min_version
        The lowest version, as text.
    max_version
        The highest version; None for no limit.

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


def memory_optimize(
    input_program: object,
    skip_opt_set: object = None,
    print_log: bool = False,
    level: int = 0,
    skip_grads: bool = True,
) -> None:
    """Do nothing: memory is always released after its last use."""


def release_memory(input_program: object, skip_opt_set: object = None) -> None:
    """Do nothing: memory is always released after its last use."""


def load_op_library(lib_filename: str) -> None:
    """Raise UnsupportedError: libraries of C++ operators cannot be loaded."""
    raise UnsupportedError(
        f"load_op_library: {lib_filename} cannot be loaded; paddlelike runs no C++ operators",
        hint="write the operator in Python: a subclass of paddlelike.framework.opdef.OpDef",
    )
