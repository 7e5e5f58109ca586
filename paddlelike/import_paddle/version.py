"""``paddle.version``: the Paddle version of this API."""

from __future__ import annotations

from typing import Final

__all__ = ["commit", "full_version", "istaged", "major", "minor", "mkl", "patch", "rc", "show", "with_mkl"]

full_version: Final = "1.8.5"
major, minor, patch = full_version.split(".")
rc: Final = "0"
istaged: Final = True
commit: Final = "paddlelike"
with_mkl: Final = "OFF"


def show() -> None:
    """Print the version."""
    parts = {"full_version": full_version, "major": major, "minor": minor, "patch": patch, "rc": rc}
    for name, value in parts.items():
        print(f"{name}: {value}")  # noqa: T201


def mkl() -> str:
    """Return "OFF": there is no MKL."""
    return with_mkl
