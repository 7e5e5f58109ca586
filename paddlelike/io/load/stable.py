"""Reading of files that another process may replace at the same time, so that no two saves are mixed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from paddlelike.errors import LoadError, PaddlelikeError
from paddlelike.io.calls import hold_warnings, warn_user
from paddlelike.storage.location import Location

__all__ = ["TRIES", "make_busy_error", "read_stable"]

T = TypeVar("T")

TRIES: Final = 5  # reading anew when another process saves into the directory at the same time


def read_stable(where: Location, read: Callable[[], T]) -> T:
    """Return ``read()`` of the files in a directory; it is called again if they were replaced meanwhile.

    A save that was interrupted in the directory is finished first.

    Raises
    ------
    LoadError
        The files were replaced each time.
    PaddlelikeError
        Whatever ``read`` raises while the files stay as they are.
    """
    for _ in range(TRIES):
        where.recover()
        stamp = where.stamp()
        try:
            with hold_warnings() as held:
                value = read()
        except PaddlelikeError:
            if where.stamp() == stamp:
                raise
        else:
            if where.stamp() == stamp:
                for message in held:
                    warn_user(message)
                return value
    raise make_busy_error(where.path)


def make_busy_error(where: str) -> LoadError:
    """Return the error for files that were replaced each time they were read."""
    return LoadError(
        f"nothing was loaded from {where}: it was saved anew, {TRIES} times, while it was being loaded",
        hint="load when no other process saves there",
    )
